//! A hub with one server behind HTTP, and an operator who does as told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{
    About, Ask, AuditLog, Backend, BoxFuture, ClientSide, Clock, Elicitation, Item, Listing,
    Notice, Reply, Unanswered, Wishes,
};
use capstan_hub::{Call, Entry, Hub, HubBuilder, Requester};
use capstan_mcp::Others;
use capstan_mcp::settings::{Elicitation as Switch, max_message};
use capstan_mcp::{Era, HttpSettings, Prefer, Server};
use capstan_model::{CallError, Caller, Front, Secret, Target, Trust};
use capstan_policy::{Pattern, Policy, PolicySource, Rule, ServerPolicy};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::ready;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::peer::{Answer, Peer, Seen};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A hub with one server called `s`, which has a tool `do` that may write and a tool `look` that
/// does not.
pub(crate) struct Scene {
    pub(crate) server: Arc<Server>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) person: Arc<Person>,
    pub(crate) log: Arc<Log>,
}

/// An operator who gives one answer to all questions.
pub(crate) struct Person {
    reply: Reply,
    seen: Mutex<Vec<String>>,
}

/// An audit log that keeps everything.
pub(crate) struct Log(pub(crate) watch::Sender<Vec<Entry>>);

struct Time(Instant);

pub(crate) fn settings(url: &str) -> HttpSettings {
    HttpSettings {
        name: "s".parse().unwrap(),
        url: Secret::new(url.to_owned()),
        headers: vec![("X-Key".to_owned(), Secret::new("s3cr3t-key".to_owned()))],
        secrets: Vec::new(),
        addresses: capstan_safety::address::AddressPolicy::default(),
        prefer: Prefer::Http,
        startup_timeout: LIMIT,
        timeout: LIMIT,
        max_message: max_message(0),
        era: Era::Auto,
        roots: Vec::new(),
        elicitation: Switch::Offered,
        others: Others::default(),
    }
}

/// The two tools.
pub(crate) fn tools() -> Value {
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
        {"name": "do", "inputSchema": {"type": "object"}},
        {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
    ]})
}

/// What a well-behaved legacy server answers; a call gets `done`.
pub(crate) fn legacy(seen: &Seen) -> Answer {
    match (seen.verb.as_str(), seen.method()) {
        ("POST", "initialize") => {
            let hello = json!({"protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "peer", "version": "1"}});
            let session = format!("session-{}", seen.before);
            Answer::json(seen.result(&hello)).with("mcp-session-id", &session)
        }
        ("POST", "tools/list") => Answer::json(seen.result(&tools())),
        ("POST", "tools/call") => Answer::json(seen.result(&done())),
        ("POST", method) if seen.body.get("id").is_none() || method.is_empty() => {
            Answer::status(202)
        }
        ("DELETE", _) => Answer::status(200),
        ("GET", _) => Answer::status(405),
        _ => Answer::status(400),
    }
}

/// What a well-behaved modern server answers; a call gets `done`.
pub(crate) fn modern(seen: &Seen) -> Answer {
    match (seen.verb.as_str(), seen.method()) {
        ("POST", "server/discover") => Answer::json(seen.result(&json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))),
        ("POST", "tools/list") => Answer::json(seen.result(&tools())),
        ("POST", "tools/call") => Answer::json(seen.result(&done())),
        ("POST", _) => Answer::json(seen.error(-32601, &Value::Null)).coded(404),
        _ => Answer::status(405),
    }
}

pub(crate) fn done() -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new(peer: &Peer) -> Self {
        Self::of(settings(&format!("{}/mcp", peer.origin)))
    }

    pub(crate) fn of(settings: HttpSettings) -> Self {
        Self::with_reply(settings, Reply::Decline)
    }

    pub(crate) fn with_reply(settings: HttpSettings, reply: Reply) -> Self {
        let server = Arc::new(Server::new(settings));
        let log = Arc::new(Log(watch::Sender::default()));
        let mut hub = HubBuilder::new(
            Arc::new(all_allowed()),
            Arc::clone(&log) as Arc<dyn AuditLog>,
            Arc::new(Time(Instant::now())),
        );
        hub.add(Arc::clone(&server) as Arc<dyn Backend>);
        let hub = hub.build();
        let person = Arc::new(Person { reply, seen: Mutex::default() });
        Self { server, hub: Arc::new(hub), person, log }
    }

    /// Connects if need be; who the server is.
    pub(crate) async fn about(&self) -> Result<Arc<About>, CallError> {
        Arc::clone(&self.server).connect().await?;
        Ok(self.server.about().unwrap())
    }

    /// Connects if need be; one of the server's lists.
    pub(crate) async fn listing(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        Arc::clone(&self.server).connect().await?.list(listing).await
    }

    /// Calls a tool; its answer as text, or the code and the words of the error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        self.try_call(tool, arguments)
            .await
            .map_err(|error| format!("{}: {}", error.code().as_str(), chain(&error)))
    }

    pub(crate) async fn try_call(&self, tool: &str, arguments: Value) -> Result<String, CallError> {
        let target = Target::tool(format!("s__{tool}"));
        let arguments = Json::parse(arguments.to_string()).unwrap();
        let call = Call::new(Caller::operator(Front::Cli), target, Some(&arguments));
        let client = Arc::<Person>::clone(&self.person);
        let requester = Requester { client, ..Requester::unattended() };
        let screened = self.hub.call(&self.hub.session(), call, requester).await?;
        let answer: Value = screened.result().read().unwrap();
        Ok(answer.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Connects and lists the tools.
    pub(crate) async fn tools(&self) -> Result<Vec<String>, CallError> {
        let items = self.listing(Listing::Tools).await?;
        Ok(items.iter().map(|item| item.name.clone()).collect())
    }

    /// The state in one line.
    pub(crate) fn state(&self) -> String {
        let state = self.server.state();
        let reason = state.reason().map(|reason| format!(": {reason}"));
        format!("{}{}", state.name().as_str(), reason.unwrap_or_default())
    }
}

/// An error and its causes.
fn chain(error: &CallError) -> String {
    if let CallError::OutcomeUnknown { reason, .. } = error {
        return format!("{error} ({reason})");
    }
    error.to_string()
}

fn all_allowed() -> Policy {
    let mut policy = PolicySource::default();
    let believed = ServerPolicy { trust: Trust::Trusted, ..ServerPolicy::default() };
    policy.servers.insert("s".parse().unwrap(), believed);
    let all = Rule::new(Pattern::parse("*").unwrap(), "permissions.allow");
    policy.permissions.global.allow = vec![all];
    policy.compile()
}

// === impl Person ===

impl Person {
    /// Everything that was shown, a line each.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl ClientSide for Person {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        let answer = move |elicitation: Elicitation| {
            self.seen.lock().unwrap().push(elicitation.message);
            ready(self.reply.clone())
        };
        ask.by_person(answer).boxed()
    }

    fn notice(&self, notice: Notice) {
        let line = match notice {
            Notice::Progress { done, .. } => format!("progress {done}"),
            Notice::Log { text, .. } => text,
        };
        self.seen.lock().unwrap().push(line);
    }

    fn capabilities(&self) -> Option<Json> {
        None
    }

    fn wishes(&self) -> Wishes {
        Wishes::PERSON
    }

    fn outlives_answer(&self) -> bool {
        false
    }
}

// === impl Log, Time ===

impl AuditLog for Log {
    fn record(&self, entry: Entry) {
        self.0.send_modify(|entries| entries.push(entry));
    }
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}
