//! What becomes of a call: every exit of the road, and what is written down about it.
//!
//! The scene is one server, `files`. Its tool `read` is allowed, `write` asks, `drop` is denied
//! and `secret_key` is hidden.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;
#[path = "road/gone.rs"]
mod gone;
#[path = "road/faithful.rs"]
mod faithful;
#[path = "road/laws.rs"]
mod laws;
#[path = "road/counted.rs"]
mod counted;
#[path = "road/definition.rs"]
mod definition;
#[path = "road/replay.rs"]
mod replay;
#[path = "road/tasks.rs"]
mod tasks;
#[path = "road/side.rs"]
mod side;
#[path = "road/parts.rs"]
mod parts;
#[path = "road/flows.rs"]
mod flows;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::Approval;
use capstan_hub::{Answer, Call, Entry, Ground, Keep, Limits};
use capstan_model::{
    CallError, Caller, Effect, ErrorCode, Front, Kind, ServerName, Target, Verdict,
};
use capstan_policy::PolicySource;
use capstan_policy::effect::EffectRules;
use capstan_policy::exposure::Exposure;
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;

use world::{Person, Server, World, json, policy};

struct Scene {
    world: World,
    person: Arc<Person>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn of(server: Server, person: Person) -> Self {
        let requests = Arc::clone(&server.requests);
        Self { world: World::new(vec![server], scene_policy()), person: Arc::new(person), requests }
    }

    fn with_person(person: Person) -> Self {
        Self::of(files(), person)
    }

    fn with_server(server: Server) -> Self {
        Self::of(server, Person::nobody())
    }

    fn set_limits(&mut self, limits: Limits) {
        self.world.change(|hub| hub.limits = limits);
        self.world.session = self.world.hub.session();
    }

    async fn call(&self, name: &str) -> Result<Json, CallError> {
        self.send(tool(name)).await
    }

    async fn send(&self, call: Call) -> Result<Json, CallError> {
        self.world.call(&self.person, call).await
    }

    fn served(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The only entry of the audit log.
    #[track_caller]
    fn entry(&self) -> String {
        let entries = self.world.entries();
        assert_eq!(entries.len(), 1, "one call, one entry: {entries:?}");
        entries.iter().map(told).collect()
    }
}

fn files() -> Server {
    Server::new("files", &["read", "write", "drop", "secret_key"])
}

fn scene_policy() -> PolicySource {
    let own = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut policy = policy(&["drop"], &["write"], &["read", "secret_key"]);
    let files = policy.servers.get_mut(&server()).unwrap();
    files.exposure = Exposure::new(None, &own(&["secret_*"])).unwrap();
    files.effects = EffectRules::new(&own(&["read"]), &own(&["write", "drop"])).unwrap();
    policy
}

fn tool(name: &str) -> Call {
    Call::new(Caller::operator(Front::Cli), Target::tool(name), Some(&json("{}")))
}

fn says(approval: Approval) -> Person {
    Person { approves: Box::new(move || ready(approval).boxed()), ..Person::nobody() }
}

fn answering(answer: &'static str) -> Server {
    let runs = move |_, _| ready(Ok(Answer::Whole(json(answer)))).boxed();
    Server { runs: Box::new(runs), ..files() }
}

fn server() -> ServerName {
    "files".parse().unwrap()
}

fn unreachable() -> CallError {
    CallError::Unreachable { server: server(), reason: "it does not start".to_owned() }
}

fn timed_out() -> CallError {
    CallError::TimedOut { server: server(), limit: Duration::from_mins(1), may_have_run: true }
}

fn went_away() -> CallError {
    CallError::OutcomeUnknown { server: server(), reason: "it ended".to_owned() }
}

fn refused_by_server(code: i64) -> CallError {
    let (server, message) = (server(), "no".to_owned());
    CallError::Server { server, code, message, whole: None, is_modern: true }
}

fn not_mcp() -> CallError {
    CallError::Protocol { server: server(), problem: "a list".to_owned() }
}

/// Everything an entry says but the caller and the times.
fn told(entry: &Entry) -> String {
    let word = |word: Option<&str>| word.unwrap_or("-").to_owned();
    format!(
        "{} {} {}; {} {} by {}, {}; {} {}; {}>{}",
        entry.kind.as_str(),
        word(entry.server.as_deref()),
        entry.item,
        word(entry.effect.map(Effect::as_str)),
        word(entry.verdict.map(Verdict::as_str)),
        word(entry.rule.as_deref()),
        word(entry.approval.map(Ground::as_str)),
        entry.outcome.as_str(),
        word(entry.outcome.code().map(ErrorCode::as_str)),
        entry.request_bytes,
        entry.answer_bytes,
    )
}

#[tokio::test]
async fn an_allowed_call_reaches_the_server_and_its_answer_comes_back() {
    let scene = Scene::with_server(files());
    assert_eq!(scene.call("files__read").await.unwrap(), json(r#"{"content":[]}"#));
    assert_eq!(scene.served(), [r#"tools/call {"name":"read","arguments":{}}"#]);
    let entry = "tool files read; read allow by permissions.allow: read, -; answered -; 37>14";
    assert_eq!(scene.entry(), entry);
}

#[tokio::test(start_paused = true)]
async fn an_entry_says_who_called_when_and_how_long_it_took() {
    let runs = |_, _| {
        let answer = Ok(Answer::Whole(json("{}")));
        tokio::time::sleep(Duration::from_secs(3)).map(|()| answer).boxed()
    };
    let scene = Scene::with_server(Server { runs: Box::new(runs), ..files() });
    tokio::time::advance(Duration::from_mins(1)).await;
    let mut call = tool("files__read");
    Arc::make_mut(&mut call.caller).caller_id = Some("editor 1.0".to_owned());
    let caller = call.caller.clone();
    scene.send(call).await.unwrap();
    let entry = scene.world.log.0.lock().unwrap().pop().unwrap();
    assert_eq!(entry.caller, caller);
    assert_eq!(entry.time.as_second(), 60);
    assert_eq!(entry.duration, Duration::from_secs(3));
}

#[tokio::test]
async fn a_misspelt_name_is_answered_with_the_nearest_ones() {
    let table = [
        ("flies__read", "-", "flies__read", vec!["files__read"]),
        ("mcp_files__read", "-", "mcp_files__read", vec![]),
        ("nonsense", "-", "nonsense", vec![]),
        ("files__raed", "files", "raed", vec!["files__read"]),
        ("files:wrlte", "files", "wrlte", vec!["files__write"]),
        ("files__nothing", "files", "nothing", vec![]),
        // Neither what is hidden nor what is denied is given away.
        ("files__secret_kez", "files", "secret_kez", vec![]),
        ("files__dorp", "files", "dorp", vec![]),
    ];
    for (name, server, item, expected) in table {
        let scene = Scene::with_server(files());
        let CallError::Unknown { kind, nearest, .. } = scene.call(name).await.unwrap_err() else {
            panic!("{name} is known");
        };
        assert_eq!(
            (kind, nearest),
            (Kind::Tool, expected.iter().map(ToString::to_string).collect())
        );
        assert_eq!(scene.served(), [""; 0]);
        let sent = tool(name).params.len();
        let entry = format!("tool {server} {item}; - - by -, -; failed not_found; {sent}>0");
        assert_eq!(scene.entry(), entry);
    }
}

#[tokio::test]
async fn params_that_two_readers_could_read_differently_are_refused_before_any_rule_is_read() {
    let ambiguous = [
        r#"{"name":"read","name":"drop"}"#,
        r#"{"name":"read","arguments":{"path":"a","path":"/etc"}}"#,
        r#"{"name":"read","arguments":{"path":"a","p\u0061th":"/etc"}}"#,
        r#"{"name":"read","arguments":{"deep":[{"x":1,"x":2}]}}"#,
        r#"{"name":"read","_meta":{"a":1,"a":1}}"#,
    ];
    for name in ["files__read", "files__write", "files__drop", "files__secret_key"] {
        for params in ambiguous {
            let lists = |_| panic!("the server was asked for its tools");
            let scene = Scene::with_server(Server { lists: Box::new(lists), ..files() });
            let refused = scene.send(Call { params: json(params), ..tool(name) }).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidInput);
            assert_eq!((scene.served().len(), scene.person.seen.lock().unwrap().len()), (0, 0));
            let head = format!("tool files {}; - - by -, -;", name.trim_start_matches("files__"));
            let tail = format!("failed invalid_input; {}>0", params.len());
            assert_eq!(scene.entry(), format!("{head} {tail}"));
        }
    }
}

#[tokio::test]
async fn params_that_are_no_object_are_refused_and_cost_no_quota() {
    let mut scene = Scene::with_server(files());
    scene.set_limits(Limits { quota: Some(1), ..Limits::default() });
    for params in ["[]", "null", r#""read""#] {
        let refused = scene.send(Call { params: json(params), ..tool("files__read") }).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidInput, "{params}");
    }
    assert_eq!(scene.served(), [""; 0]);
    scene.call("files__read").await.unwrap();
}

#[tokio::test]
async fn a_hidden_or_denied_tool_never_reaches_the_server_and_the_rule_is_named() {
    let table = [
        ("drop", "write", "permissions.deny: drop"),
        ("secret_key", "unknown", "servers.files.hide: secret_*"),
    ];
    for (item, effect, rule) in table {
        let scene = Scene::with_person(says(Approval::once(Ground::ByHand)));
        let error = scene.call(&format!("files__{item}")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("`files__{item}` is denied by rule `{rule}`"));
        assert_eq!((scene.served().len(), scene.person.seen.lock().unwrap().len()), (0, 0));
        let sent = tool(&format!("files__{item}")).params.len();
        let head = format!("tool files {item}; {effect} deny by {rule}, -;");
        assert_eq!(scene.entry(), format!("{head} failed policy_blocked; {sent}>0"));
    }
}

#[tokio::test]
async fn where_a_rule_asks_the_operator_decides_and_the_ground_is_written_down() {
    let blocked = "failed policy_blocked; 38>0";
    let table = [
        (Approval::once(Ground::ByHand), 1, "by_hand; answered -; 38>14"),
        (Approval::once(Ground::Asked), 1, "asked; answered -; 38>14"),
        (Approval::No(Ground::Refused), 0, &format!("refused; {blocked}")),
        (Approval::No(Ground::Nobody), 0, &format!("nobody; {blocked}")),
    ];
    for (approval, served, end) in table {
        let scene = Scene::with_person(says(approval));
        let result = scene.call("files__write").await;
        assert_eq!(result.is_ok(), served == 1);
        assert_eq!(scene.served().len(), served);
        let shown = ["tool files__write {} (write) by `permissions.ask: write`"];
        assert_eq!(*scene.person.seen.lock().unwrap(), shown);
        let head = "tool files write; write ask by permissions.ask: write,";
        assert_eq!(scene.entry(), format!("{head} {end}"));
    }
}

#[tokio::test]
async fn the_call_after_the_last_of_the_quota_is_blocked_and_refusals_do_not_count() {
    let mut scene = Scene::with_server(files());
    scene.set_limits(Limits { quota: Some(100), ..Limits::default() });
    for name in ["files__drop", "files__write", "files__nothing", "nobody__read"] {
        scene.call(name).await.unwrap_err();
    }
    for _ in 0..100 {
        scene.call("files__read").await.unwrap();
    }
    scene.world.log.0.lock().unwrap().clear();
    let error = scene.call("files__read").await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), (ErrorCode::QuotaBlocked, false));
    assert_eq!(scene.served().len(), 100);
    let head = "tool files read; read allow by permissions.allow: read, -;";
    assert_eq!(scene.entry(), format!("{head} failed quota_blocked; 37>0"));
    // Another conversation has a quota of its own.
    scene.world.session = scene.world.hub.session();
    scene.call("files__read").await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_not_reached_is_tried_twice_at_most_and_the_second_try_is_free() {
    let runs = |count: usize, _| {
        let answer = if count == 2 { Ok(Answer::Whole(json("{}"))) } else { Err(unreachable()) };
        ready(answer).boxed()
    };
    let mut scene = Scene::with_server(Server { runs: Box::new(runs), ..files() });
    scene.set_limits(Limits { quota: Some(2), ..Limits::default() });
    scene.call("files__read").await.unwrap();
    let tries = scene.served();
    assert_eq!((tries.len(), tries.first() == tries.last()), (2, true));
    scene.world.log.0.lock().unwrap().clear();
    assert_eq!(scene.call("files__read").await.unwrap_err().code(), ErrorCode::Transient);
    assert_eq!(scene.served().len(), 4);
    let head = "tool files read; read allow by permissions.allow: read, -;";
    assert_eq!(scene.entry(), format!("{head} failed transient; 37>0"));
    let third = scene.call("files__read").await.unwrap_err();
    assert_eq!((third.code(), scene.served().len()), (ErrorCode::QuotaBlocked, 4));
}

#[tokio::test]
async fn a_server_that_cannot_even_list_is_unreachable_and_costs_no_quota() {
    let lists = |_| ready(Err(unreachable())).boxed();
    let mut scene = Scene::with_server(Server { lists: Box::new(lists), ..files() });
    scene.set_limits(Limits { quota: Some(0), ..Limits::default() });
    assert_eq!(scene.call("files__read").await.unwrap_err().code(), ErrorCode::Transient);
    assert_eq!(scene.served(), [""; 0]);
    assert_eq!(scene.entry(), "tool files read; - - by -, -; failed transient; 37>0");
}

#[tokio::test]
async fn whatever_may_have_run_is_never_sent_again() {
    let table: [(fn() -> CallError, ErrorCode); 6] = [
        (timed_out, ErrorCode::Transient),
        (went_away, ErrorCode::OutcomeUnknown),
        (|| refused_by_server(-32603), ErrorCode::ServerError),
        (|| refused_by_server(-32602), ErrorCode::InvalidInput),
        // For a legacy server, the code of a header mismatch has no meaning.
        (|| refused_by_server(-32020), ErrorCode::ServerError),
        (not_mcp, ErrorCode::ServerError),
    ];
    for (fails, code) in table {
        let runs = move |_, _| ready(Err(fails())).boxed();
        let scene = Scene::with_server(Server { runs: Box::new(runs), ..files() });
        let error = scene.call("files__read").await.unwrap_err();
        assert_eq!((error.code(), scene.served().len()), (code, 1), "{error}");
        let head = "tool files read; read allow by permissions.allow: read, -;";
        assert_eq!(scene.entry(), format!("{head} failed {}; 37>0", code.as_str()));
    }
}

#[tokio::test]
async fn a_tool_that_says_it_failed_is_delivered_and_written_down_as_such() {
    let answer = r#"{"content":[{"type":"text","text":"no such file"}],"isError":true}"#;
    let scene = Scene::with_server(answering(answer));
    assert_eq!(scene.call("files__read").await.unwrap().as_str(), answer);
    let head = "tool files read; read allow by permissions.allow: read, -;";
    assert_eq!(scene.entry(), format!("{head} tool_error -; 37>{}", answer.len()));
}

#[tokio::test]
async fn an_answer_is_delivered_up_to_the_limit_and_no_further() {
    let head = "tool files read; read allow by permissions.allow: read, -;";
    let limits = Limits { max_answer: 10, ..Limits::default() };
    let mut scene = Scene::with_server(answering(r#"{"a":1234}"#));
    scene.set_limits(limits);
    assert_eq!(scene.call("files__read").await.unwrap().len(), 10);
    assert_eq!(scene.entry(), format!("{head} answered -; 37>10"));
    let mut scene = Scene::with_server(answering(r#"{"a":12345}"#));
    scene.set_limits(limits);
    let error = scene.call("files__read").await.unwrap_err();
    assert!(matches!(error, CallError::AnswerTooLarge { size: 11, limit: 10, .. }), "{error}");
    assert_eq!(scene.entry(), format!("{head} failed server_error; 37>0"));
    assert_eq!(scene.served().len(), 1);
}

#[tokio::test]
async fn a_result_that_is_no_object_is_no_answer() {
    let head = "tool files read; read allow by permissions.allow: read, -;";
    for odd in ["null", "true", "7", r#""done""#, r#"[{"content":[]}]"#] {
        let scene = Scene::with_server(answering(odd));
        let error = scene.call("files__read").await.unwrap_err();
        assert!(matches!(error, CallError::Protocol { .. }), "{odd}: {error}");
        assert_eq!(scene.entry(), format!("{head} failed server_error; 37>0"));
    }
}

#[tokio::test]
async fn arguments_are_written_down_only_on_request_and_never_with_a_secret() {
    let arguments = json(r#"{"api_key":"hunter22","path":"a.txt"}"#);
    let call =
        || Call::new(Caller::operator(Front::Cli), Target::tool("files__read"), Some(&arguments));
    let mut scene = Scene::with_person(Person::nobody());
    scene.send(call()).await.unwrap();
    scene.set_limits(Limits { keep_arguments: Keep::Redacted, ..Limits::default() });
    scene.send(call()).await.unwrap();
    let kept: Vec<_> = scene.world.entries().into_iter().map(|entry| entry.arguments).collect();
    assert_eq!(kept, [None, Some(r#"{"api_key":"***","path":"a.txt"}"#.to_owned())]);
}
