//! Our own dialect: TOML with the keys of the reference page.
//!
//! The words of other programs are not read here, but known well enough to say what they are
//! called in this file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::problem::Problem;
use crate::source::SourceFile;
use crate::tree::{Entry, Node, Table, Text, Value};

/// A word of another program, where it would stand, and what to write instead.
struct Foreign {
    word: &'static str,
    level: Level,
    help: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Server,
    Mcp,
}

const SERVERS: &str = "here servers stand under `[servers.NAME]`";
const EXPOSE: &str = "here it is `expose = [\"…\"]`";
const HIDE: &str = "here it is `hide = [\"…\"]`";
const TIMEOUT: &str = "here it is `timeout = \"60s\"`";
const STARTUP: &str = "here it is `startup_timeout = \"30s\"`";

const FOREIGN: &[Foreign] = &[
    top("mcp_servers", SERVERS),
    top("mcpServers", SERVERS),
    top("server", SERVERS),
    top("context_servers", SERVERS),
    top("extensions", SERVERS),
    top("serverAuth", "here it is `[gateway.auth]`"),
    top("acl", "here it is `[access]`"),
    Foreign { word: "servers", level: Level::Mcp, help: SERVERS },
    server("includeTools", EXPOSE),
    server("tool_allowlist", EXPOSE),
    server("enabled_tools", EXPOSE),
    server("allowed_tools", EXPOSE),
    server("available_tools", EXPOSE),
    server("excludeTools", HIDE),
    server("disabled_tools", HIDE),
    server("denied_tools", HIDE),
    server("httpUrl", "here it is `url`; Streamable HTTP is the default"),
    server("uri", "here it is `url`"),
    server("cmd", "here it is `command`"),
    server("envs", "here it is `env`"),
    server("environment", "here it is `env`"),
    server("env_vars", "here it is `env_passthrough = [\"NAME\"]`"),
    server("http_headers", "here it is `headers`"),
    server("bearer_token_env_var", "here it is `headers = { Authorization = \"Bearer ${NAME}\" }`"),
    server("trust_level", "here it is `trust`"),
    server("tool_acl", "here it is `effect = { read = [\"…\"], write = [\"…\"] }`"),
    server("alwaysLoad", "here it is `always_load`"),
    server("lazy", "here it is `start = \"lazy\"`"),
    server("elicitation_enabled", "here it is `elicitation`"),
    server("tool_timeout_sec", TIMEOUT),
    server("tool_timeout_secs", TIMEOUT),
    server("request_timeout_ms", TIMEOUT),
    server("startup_timeout_sec", STARTUP),
    server("startup_timeout_ms", STARTUP),
    server("headersHelper", "here it is `headers_helper`"),
    server("authProviderType", "here it is `auth_provider`"),
    server("id", "the server's name is the NAME in `[servers.NAME]`"),
    server("name", "the server's name is the NAME in `[servers.NAME]`"),
];

/// Reads TOML. A file with a syntax error contributes nothing.
pub(super) fn read(file: &SourceFile) -> Result<Table, Box<Problem>> {
    match DeTable::parse(&file.text) {
        Ok(table) => Ok(table_of(table.get_ref())),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            let mut problem = Problem::error(format!("not valid TOML: {}", error.message()))
                .help("nothing of this file is used until this is mended");
            problem.place = Some(file.place(&span));
            Err(Box::new(problem))
        }
    }
}

/// What a key of another program is called here.
pub(crate) fn help_for_key(path: &str, key: &str) -> Option<String> {
    let level = match path.split_once('.') {
        None if path.is_empty() => Level::Top,
        None if path == "mcp" => Level::Mcp,
        Some(("servers", _)) => Level::Server,
        _ => return None,
    };
    let known = FOREIGN.iter().find(|foreign| foreign.word == key && foreign.level == level);
    known.map(|foreign| foreign.help.to_owned())
}

/// What a value of another program is called here.
pub(crate) fn help_for_value(key: &str, node: &Node) -> Option<String> {
    let help = match (key, node.as_text(), node.as_bool()) {
        ("trust", _, Some(true)) => {
            "to run its tools without asking, write `permissions = { allow = [\"*\"] }`"
        }
        ("trust", _, Some(false)) => "remove it; a server is untrusted unless you say otherwise",
        (
            "type" | "transport",
            Some("streamable-http" | "streamable_http" | "streamableHttp" | "remote"),
            _,
        ) => "here it is `type = \"http\"`",
        ("type" | "transport", Some("local"), _) => "here it is `type = \"stdio\"`",
        _ => return None,
    };
    Some(help.to_owned())
}

const fn top(word: &'static str, help: &'static str) -> Foreign {
    Foreign { word, level: Level::Top, help }
}

const fn server(word: &'static str, help: &'static str) -> Foreign {
    Foreign { word, level: Level::Server, help }
}

fn table_of(table: &DeTable<'_>) -> Table {
    let entries = table.iter().map(|(key, value)| {
        let entry = Entry { key: key.span(), node: node_of(value.get_ref(), value.span()) };
        (key.get_ref().to_string(), entry)
    });
    Table { entries: entries.collect() }
}

fn node_of(value: &DeValue<'_>, span: Range<usize>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(Text::plain(text.to_string())),
        DeValue::Integer(number) => Value::Number(decimal(number)),
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(moment) => Value::Moment(moment.to_string()),
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| node_of(item.get_ref(), item.span());
            Value::List(items.iter().map(node).collect())
        }
        DeValue::Table(table) => Value::Table(table_of(table)),
    };
    Node { value, span }
}

/// A whole number in decimal, however it was written; as it stands when it is too large.
fn decimal(number: &toml::de::DeInteger<'_>) -> String {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => value.to_string(),
        Err(_) => number.as_str().to_owned(),
    }
}
