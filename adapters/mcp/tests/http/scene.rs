//! A hub with one server behind HTTP, and an operator who does as told.

use std::ops::Deref;
use std::time::Duration;

use capstan_hub::ports::{Listing, Reply};
use capstan_mcp::Others;
use capstan_mcp::settings::{Elicitation as Switch, max_message};
use capstan_mcp::{Era, HttpSettings, Prefer, Server};
use capstan_model::{CallError, Secret, Trust};
use capstan_testkit::SingleServerHub;
use capstan_wire::Json;
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Seen};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A hub with one server called `s`, which has a tool `do` that may write and a tool `look` that
/// does not.
pub(crate) struct Scene(pub(crate) SingleServerHub<Server>);

pub(crate) fn settings(url: &str) -> HttpSettings {
    HttpSettings {
        name: "s".parse().unwrap(),
        url: Secret::new(url.to_owned()),
        headers: vec![("X-Key".to_owned(), Secret::new("s3cr3t-key".to_owned()))],
        login: None,
        fetched: Vec::new(),
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
        Self(SingleServerHub::new(Server::new(settings), Trust::Trusted, reply))
    }

    /// Calls a tool; its answer as text, or the code and the words of the error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        self.try_call(tool, arguments)
            .await
            .map_err(|error| format!("{}: {}", error.code().as_str(), chain(&error)))
    }

    pub(crate) async fn try_call(&self, tool: &str, arguments: Value) -> Result<String, CallError> {
        let arguments = Json::parse(arguments.to_string()).unwrap();
        let answer: Value = self.call_tool(tool, &arguments).await?.read().unwrap();
        Ok(answer.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Connects and lists the tools.
    pub(crate) async fn tools(&self) -> Result<Vec<String>, CallError> {
        self.names(Listing::Tools).await
    }
}

impl Deref for Scene {
    type Target = SingleServerHub<Server>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// An error and its causes.
fn chain(error: &CallError) -> String {
    if let CallError::OutcomeUnknown { reason, .. } = error {
        return format!("{error} ({reason})");
    }
    error.to_string()
}
