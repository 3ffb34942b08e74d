//! The client that the MCP conformance suite tests: `capstan`, with the suite's server as its only
//! one.
//!
//! The suite runs `capstan-conformance-client URL` for every scenario and says in the environment
//! which it is. Every step is a run of `capstan` of its own, in one home. The first step that fails
//! ends the run.

use std::env;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use capstan_testkit::{Ended, World, binary};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The longest that one run of `capstan` may take: less than the 30 seconds after which the suite
/// gives up, so that it is this program that says what hangs.
const LIMIT: Duration = Duration::from_secs(25);

/// The first revision of MCP without a handshake. Revisions are dates and sort as text.
const FIRST_MODERN: &str = "2026-07-28";

fn main() {
    let url = env::args().next_back().unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let revision = variable("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    if env::args().nth(1).as_deref() == Some(BROWSE) {
        return browse(&url);
    }
    let context = variable("MCP_CONFORMANCE_CONTEXT");
    let context: Context = context.as_deref().map(read).unwrap_or_default();
    let client = Client::new(&url, Era::of(&revision), &context);
    match Plan::of(&scenario) {
        // A client that logs in by itself needs no person.
        Plan::List | Plan::ByItself => drop(client.tools()),
        Plan::Call(calls) => {
            for (tool, arguments) in calls {
                client.call(tool, arguments);
            }
        }
        Plan::Given => client.call_given(context),
        Plan::LogIn => {
            client.log_in();
            client.call_with_logins();
        }
        Plan::EchoSchema => client.echo_schema(),
        Plan::Everything => client.use_everything(),
    }
}

/// How servers of a revision are spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// What is done in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    /// Lists the tools and calls none.
    List,
    /// Calls these tools with these arguments.
    Call(&'static [(&'static str, &'static str)]),
    /// Makes the calls that the suite asks for.
    Given,
    /// Sends the schema of one tool through another.
    EchoSchema,
    /// Logs in, calls every tool, and logs in again when a call says so.
    LogIn,
    /// Uses a server with a login of the client itself.
    ByItself,
    /// Calls every tool, reads every resource, gets every prompt.
    Everything,
}

/// `capstan` in a home of its own.
struct Client {
    world: World,
    capstan: PathBuf,
}

/// What `capstan tools --json` says of a tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    input_schema: Box<RawValue>,
}

/// What the suite says of a scenario.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    tool_calls: Vec<GivenCall>,
    #[serde(flatten)]
    login: Map<String, Value>,
}

/// What the suite calls a setting of a login, and what the configuration calls it.
const LOGIN: [(&str, &str); 6] = [
    ("client_id", "client_id"),
    ("client_secret", "client_secret"),
    ("private_key_pem", "private_key"),
    ("idp_client_id", "idp_client_id"),
    ("idp_token_endpoint", "idp_token_url"),
    ("idp_id_token", "id_token"),
];

/// The client whose metadata the suite's authorization servers know.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The word with which this program is the browser.
const BROWSE: &str = "--browse";

/// The largest number of redirects that the browser follows.
const MAX_HOPS: usize = 10;

/// How often a call may ask for another login.
const MAX_LOGINS: usize = 4;

/// The command that an error names if a login helps.
const LOGIN_COMMAND: &str = "capstan login s";

/// A call that the suite asks for.
#[derive(Deserialize)]
struct GivenCall {
    name: String,
    arguments: Box<RawValue>,
}

/// A resource, as its server wrote it.
#[derive(Deserialize)]
struct Resource {
    uri: String,
}

/// A prompt, as its server wrote it.
#[derive(Deserialize)]
struct Prompt {
    name: String,
}

// === impl Era ===

impl Era {
    /// The era of a revision; without one the suite means its oldest lifecycle.
    fn of(revision: &str) -> Self {
        if revision >= FIRST_MODERN { Self::Modern } else { Self::Legacy }
    }

    /// Its word in the configuration.
    fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

// === impl Plan ===

impl Plan {
    fn of(scenario: &str) -> Self {
        match scenario {
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Self::List,
            "tools_call" => Self::Call(&[("add_numbers", r#"{"a":5,"b":3}"#)]),
            "elicitation-sep1034-client-defaults" => {
                Self::Call(&[("test_client_elicitation_defaults", "{}")])
            }
            "sse-retry" => Self::Call(&[("test_reconnection", "{}")]),
            "sep-2322-client-request-state" => Self::Call(&[
                ("test_mrtr_echo_state", "{}"),
                ("test_mrtr_unrelated", "{}"),
                ("test_mrtr_no_state", "{}"),
                ("test_mrtr_no_result_type", "{}"),
            ]),
            "http-custom-headers" => Self::Given,
            "json-schema-2020-12-preservation" => Self::EchoSchema,
            "auth/client-credentials-jwt"
            | "auth/client-credentials-basic"
            | "auth/enterprise-managed-authorization" => Self::ByItself,
            login if login.starts_with("auth/") => Self::LogIn,
            _ => Self::Everything,
        }
    }
}

// === impl Client ===

impl Client {
    fn new(url: &str, era: Era, context: &Context) -> Self {
        let world = World::new();
        let (url, era, login) = (json!(url), json!(era.word()), login_settings(&context.login));
        // What JSON writes as text, TOML reads as the same text.
        world.write_user_config(&format!(
            "[servers.s]\ntype = \"http\"\nurl = {url}\nprotocol = {era}\n\n\
             [servers.s.oauth_config]\n{login}\n\
             [permissions]\nallow = [\"*\"]\n"
        ));
        let chosen = env::var_os("CAPSTAN_BIN").map(PathBuf::from);
        Self { world, capstan: chosen.unwrap_or_else(|| binary("capstan")) }
    }

    fn tools(&self) -> Vec<Tool> {
        read(&self.run(["tools", "s", "--wait", "20s"]))
    }

    fn call(&self, tool: &str, arguments: &str) {
        drop(self.run(["call", &format!("s__{tool}"), arguments, "--elicit", "defaults"]));
    }

    fn log_in(&self) {
        drop(self.run(["login", "s"]));
    }

    /// Calls every tool. A call that needs another login gets it.
    fn call_with_logins(&self) {
        let tools = self.again_after_login(["tools", "s", "--wait", "20s", "--refresh"]);
        for tool in read::<Vec<Tool>>(&tools) {
            let (name, arguments) =
                (format!("s__{}", tool.name), sample(&read(tool.input_schema.get())));
            drop(self.again_after_login(["call", &name, &arguments.to_string()]));
        }
    }

    #[track_caller]
    fn again_after_login<const N: usize>(&self, arguments: [&str; N]) -> String {
        for _ in 0..MAX_LOGINS {
            let ended = self.start(arguments);
            // The error of a refusal that a login does not help with names no command.
            let needs_login =
                ended.stdout.contains(LOGIN_COMMAND) || ended.stderr.contains(LOGIN_COMMAND);
            if !needs_login {
                return ended.ok();
            }
            self.log_in();
        }
        self.start(arguments).ok()
    }

    fn call_given(&self, context: Context) {
        assert!(!context.tool_calls.is_empty(), "the suite asked for no call");
        for given in context.tool_calls {
            self.call(&given.name, given.arguments.get());
        }
    }

    fn echo_schema(&self) {
        let (focal, echo) = ("json_schema_2020_12_tool", "json_schema_echo");
        let tools = self.tools();
        let found = tools.iter().find(|tool| tool.name == focal);
        let schema = found.map(|tool| tool.input_schema.get());
        assert!(schema.is_some(), "`{focal}` is not listed");
        self.call(echo, &format!(r#"{{"schema":{}}}"#, schema.unwrap_or_default()));
    }

    fn use_everything(&self) {
        for tool in self.tools() {
            self.call(&tool.name, &sample(&read(tool.input_schema.get())).to_string());
        }
        for Resource { uri } in read::<Vec<_>>(&self.run(["resources", "s", "--wait", "20s"])) {
            drop(self.run(["read", &format!("@s:{uri}")]));
        }
        for Prompt { name } in read::<Vec<_>>(&self.run(["prompts", "s", "--wait", "20s"])) {
            drop(self.run(["prompt", &format!("s__{name}")]));
        }
    }

    /// What `capstan` printed, which must have gone well.
    #[track_caller]
    fn run<const N: usize>(&self, arguments: [&str; N]) -> String {
        self.start(arguments).ok()
    }

    #[track_caller]
    fn start<const N: usize>(&self, arguments: [&str; N]) -> Ended {
        let arguments = arguments.into_iter().chain(["--json"]).map(OsString::from);
        let own = env::current_exe().unwrap_or_default();
        let browser = format!("{} {BROWSE}", own.display());
        let program = self.world.program(&self.capstan, arguments).limit(LIMIT);
        program.env("BROWSER", browser).env("CAPSTAN_KEYRING", "off").run()
    }
}

/// The settings of a login, from what the suite says of the scenario.
fn login_settings(given: &Map<String, Value>) -> String {
    let mut lines = String::new();
    for (theirs, ours) in LOGIN {
        if let Some(value) = given.get(theirs) {
            lines.extend([ours, " = ", &value.to_string(), "\n"]);
        }
    }
    if given.contains_key("idp_id_token") {
        lines.push_str("grant = \"enterprise\"\n");
    } else if given.contains_key("private_key_pem") || scenario_is("auth/client-credentials-basic")
    {
        lines.push_str("grant = \"client_credentials\"\n");
    } else if !given.contains_key("client_id") {
        lines.extend(["client_id = \"", DOCUMENT, "\"\n"]);
    }
    lines
}

fn scenario_is(name: &str) -> bool {
    variable("MCP_CONFORMANCE_SCENARIO").as_deref() == Some(name)
}

/// Visits a page as a browser does: follows redirects until there are no more.
fn browse(url: &str) {
    let mut url = url.to_owned();
    for _ in 0..MAX_HOPS {
        let Some(rest) = url.strip_prefix("http://") else { return };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let Ok(mut stream) = TcpStream::connect(host) else { return };
        let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        if stream.write_all(request.as_bytes()).is_err()
            || stream.read_to_string(&mut answer).is_err()
        {
            return;
        }
        let head = answer.split("\r\n\r\n").next().unwrap_or_default();
        let locations = head.lines().filter_map(|line| line.split_once(": "));
        let mut locations = locations.filter(|(name, _)| name.eq_ignore_ascii_case("location"));
        let Some((_, next)) = locations.next() else { return };
        url = if next.starts_with('/') { format!("http://{host}{next}") } else { next.to_owned() };
    }
}

/// A variable of the environment that is set to text.
fn variable(name: &str) -> Option<String> {
    env::var_os(name).and_then(|value| value.into_string().ok())
}

/// Reads JSON that must have the expected shape.
#[track_caller]
#[expect(clippy::panic, reason = "a scenario fails by the exit code of this program")]
fn read<T: DeserializeOwned>(text: &str) -> T {
    match serde_json::from_str(text) {
        Ok(value) => value,
        Err(problem) => panic!("{problem} in {text}"),
    }
}

/// Arguments with something for every property that a schema requires.
fn sample(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let values = required.filter_map(Value::as_str).map(|name| {
        let kind = schema.get("properties").and_then(|all| all.get(name)?.get("type")?.as_str());
        let value = match kind {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            Some("null") => Value::Null,
            _ => json!("text"),
        };
        (name.to_owned(), value)
    });
    Value::Object(values.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_before_the_modern_era_are_spoken_to_with_a_handshake() {
        for revision in ["", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(Era::of(revision), Era::Legacy, "{revision}");
        }
        for revision in ["2026-07-28", "2027-01-01"] {
            assert_eq!(Era::of(revision), Era::Modern, "{revision}");
        }
    }

    #[test]
    fn a_scenario_that_is_not_known_uses_all_that_is_listed() {
        assert_eq!(Plan::of("http-standard-headers"), Plan::Everything);
        assert_eq!(Plan::of("of-a-later-suite"), Plan::Everything);
        assert_eq!(Plan::of("json-schema-ref-no-deref"), Plan::List);
    }

    #[test]
    fn a_sample_has_what_the_schema_requires_and_no_more() {
        let schema = json!({
            "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"},
                "d": {"type": "array"}, "e": {"type": "null"}, "f": {}
            },
            "required": ["a", "b", "d", "e", "f", "undescribed"]
        });
        let expected =
            json!({"a": "text", "b": 1, "d": [], "e": null, "f": "text", "undescribed": "text"});
        assert_eq!(sample(&schema), expected);
        assert_eq!(sample(&json!({"properties": {"a": {"type": "string"}}})), json!({}));
    }

    #[test]
    fn the_calls_that_the_suite_asks_for_are_taken_from_its_context_as_they_are_written() {
        let context: Context = read(
            r#"{"name":"x","toolCalls":[{"name":"t","arguments":{"f":1.50,"n":null}}],"more":1}"#,
        );
        let calls = context.tool_calls.iter();
        let written: Vec<_> = calls.map(|call| (&*call.name, call.arguments.get())).collect();
        assert_eq!(written, [("t", r#"{"f":1.50,"n":null}"#)]);
        assert!(read::<Context>(r#"{"name":"x"}"#).tool_calls.is_empty());
    }
}
