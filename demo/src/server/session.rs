//! One client's conversation with one server, in either era or in both.
//!
//! A request whose `_meta` names a protocol version is modern and stands alone; any other is
//! legacy and needs an `initialize` before it.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::line::MAX_LINE;
use super::{Era, Profile, Prompts, Resources, Server};
use crate::describe::{Event, Tool, text_block};
use crate::fault::Fault;

/// The version with metadata on every request.
pub(crate) const MODERN: &str = "2026-07-28";

/// The versions with a handshake, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The one version whose clients may send several messages on one line.
const BATCHING: &str = "2025-03-26";

/// How long a client may keep what cannot change while the process lives, in milliseconds.
const LONG: u64 = 3_600_000;

/// Most items on one page of a list.
const PAGE: usize = 200;

/// Most subscriptions open at once.
const MAX_LISTENERS: usize = 64;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

pub(super) struct Session<S, W> {
    server: S,
    profile: Profile,
    output: W,
    /// The version agreed on by `initialize`.
    legacy: Option<&'static str>,
    /// The ids of `subscriptions/listen` requests that want changes of the resource list.
    listeners: Vec<Value>,
    /// Messages to send after the current response.
    event: Option<Event>,
}

type Params = Map<String, Value>;

/// How long a result stays true.
#[derive(Clone, Copy)]
enum Keep {
    /// As long as the process lives.
    Long,
    /// It may have changed already.
    Never,
    /// The method has no caching.
    Unsaid,
}

// === impl Session ===

impl<S: Server, W: Write> Session<S, W> {
    pub(super) fn new(server: S, output: W) -> Self {
        let profile = server.profile();
        Self { server, profile, output, legacy: None, listeners: Vec::new(), event: None }
    }

    pub(super) fn refuse_long_line(&mut self) -> io::Result<()> {
        self.send(&unreadable(-32700, &format!("message is longer than {MAX_LINE} bytes")))
    }

    pub(super) fn receive(&mut self, line: &[u8]) -> io::Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let response = match serde_json::from_slice(line) {
            Err(problem) => Some(unreadable(-32700, &format!("message is not JSON: {problem}"))),
            Ok(Value::Array(batch)) if self.legacy == Some(BATCHING) && !batch.is_empty() => {
                let answers: Vec<Value> =
                    batch.into_iter().filter_map(|message| self.answer(message)).collect();
                (!answers.is_empty()).then_some(Value::Array(answers))
            }
            Ok(message) => self.answer(message),
        };
        if let Some(response) = response {
            self.send(&response)?;
        }
        match self.event.take() {
            Some(Event::ResourcesChanged) => self.announce(RESOURCES_CHANGED),
            None => Ok(()),
        }
    }

    /// The response to a message, if it has one.
    fn answer(&mut self, message: Value) -> Option<Value> {
        let Value::Object(mut message) = message else {
            return Some(unreadable(-32600, "a message is an object"));
        };
        let Some(Value::String(method)) = message.remove("method") else {
            // A response to something that was never asked wants no answer.
            let response = message.contains_key("result") || message.contains_key("error");
            return (!response).then(|| unreadable(-32600, "`method` is missing"));
        };
        let params = message.remove("params").unwrap_or_else(|| json!({}));
        let Some(id) = message.remove("id") else {
            self.heed(&method, &params);
            return None;
        };
        if !(id.is_string() || id.is_i64() || id.is_u64()) {
            return Some(unreadable(-32600, "`id` is neither a string nor an integer"));
        }
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Some(unreadable(-32600, "`jsonrpc` is not `2.0`"));
        }
        let Value::Object(params) = params else {
            let fault = Fault::InvalidParams { problem: "`params` is not an object".to_owned() };
            return Some(failed(&id, &fault, Era::Modern));
        };
        Some(self.respond(&id, &method, &params))
    }

    fn respond(&mut self, id: &Value, method: &str, params: &Params) -> Value {
        let era = match self.era(method, params) {
            Ok(era) => era,
            Err(fault) => return failed(id, &fault, Era::Modern),
        };
        if (era, method) == (Era::Modern, "subscriptions/listen") {
            return self.listen(id, params);
        }
        match self.dispatch(era, method, params) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(fault) => failed(id, &fault, era),
        }
    }

    fn era(&self, method: &str, params: &Params) -> Result<Era, Fault> {
        let meta = params.get("_meta");
        let problem = match meta.and_then(|meta| meta.get(VERSION_KEY)) {
            Some(Value::String(version)) if version == MODERN => {
                match meta.and_then(|meta| meta.get(CAPABILITIES_KEY)) {
                    Some(Value::Object(_)) => return Ok(Era::Modern),
                    _ => format!("`_meta` lacks `{CAPABILITIES_KEY}`"),
                }
            }
            Some(Value::String(version)) => {
                return Err(Fault::UnsupportedVersion { requested: version.clone() });
            }
            Some(_) => format!("`{VERSION_KEY}` is not a string"),
            None if self.legacy.is_some() || matches!(method, "initialize" | "ping") => {
                return Ok(Era::Legacy);
            }
            None => format!("`_meta` lacks `{VERSION_KEY}`, and there was no `initialize`"),
        };
        Err(Fault::InvalidParams { problem })
    }

    fn dispatch(&mut self, era: Era, method: &str, params: &Params) -> Result<Params, Fault> {
        let resources = self.profile.resources != Resources::None;
        let prompts = self.profile.prompts != Prompts::None;
        let (result, keep) = match (era, method) {
            (Era::Legacy, "initialize") => (self.initialize(params)?, Keep::Unsaid),
            (Era::Legacy, "ping") => (Map::new(), Keep::Unsaid),
            (Era::Modern, "server/discover") => (self.discover(), Keep::Long),
            (_, "tools/list") => {
                let tools = self.server.tools().into_iter().map(Tool::into_value).collect();
                (page("tools", tools, params)?, Keep::Long)
            }
            (_, "tools/call") => (self.call(params)?, Keep::Unsaid),
            (_, "resources/list") if resources => {
                (page("resources", self.server.resources()?, params)?, Keep::Never)
            }
            (_, "resources/templates/list") if resources => {
                (page("resourceTemplates", self.server.templates(), params)?, Keep::Long)
            }
            (_, "resources/read") if resources => {
                let contents = self.server.read(text(params, "uri")?)?;
                (object(json!({ "contents": [contents] })), Keep::Never)
            }
            (_, "prompts/list") if prompts => {
                (page("prompts", self.server.prompts(), params)?, Keep::Long)
            }
            (_, "prompts/get") if prompts => {
                let arguments = arguments(params)?;
                (self.server.prompt(text(params, "name")?, &arguments)?, Keep::Unsaid)
            }
            _ => return Err(Fault::UnknownMethod { method: method.to_owned() }),
        };
        Ok(match era {
            Era::Legacy => result,
            Era::Modern => self.stamp(result, keep),
        })
    }

    fn initialize(&mut self, params: &Params) -> Result<Params, Fault> {
        let asked = text(params, "protocolVersion")?;
        let [newest, ..] = LEGACY;
        let version = LEGACY.into_iter().find(|known| *known == asked).unwrap_or(newest);
        self.legacy = Some(version);
        Ok(object(json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
            "instructions": self.profile.instructions,
        })))
    }

    fn discover(&self) -> Params {
        object(json!({
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "instructions": self.profile.instructions,
        }))
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = object(json!({ "tools": {} }));
        match self.profile.resources {
            Resources::None => {}
            Resources::Unannounced => drop(capabilities.insert("resources".to_owned(), json!({}))),
            Resources::Announced => {
                capabilities.insert("resources".to_owned(), json!({ "listChanged": true }));
            }
        }
        match self.profile.prompts {
            Prompts::None => {}
            Prompts::Some => drop(capabilities.insert("prompts".to_owned(), json!({}))),
        }
        Value::Object(capabilities)
    }

    fn server_info(&self) -> Value {
        json!({
            "name": format!("capstan-demo-{}", self.profile.name),
            "title": self.profile.title,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    fn call(&mut self, params: &Params) -> Result<Params, Fault> {
        let name = text(params, "name")?;
        let arguments = arguments(params)?;
        match self.server.call(name, Value::Object(arguments)) {
            Ok(answer) => {
                self.event = self.event.or(answer.event);
                Ok(answer.into_result())
            }
            Err(fault) if fault.belongs_in_answer() => Ok(object(json!({
                "content": [text_block(fault.words())],
                "isError": true,
            }))),
            Err(fault) => Err(fault),
        }
    }

    /// Acknowledges a subscription; its one response would come at its end.
    fn listen(&mut self, id: &Value, params: &Params) -> Value {
        let wanted = params
            .get("notifications")
            .and_then(|filter| filter.get("resourcesListChanged"))
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let mut accepted = Map::new();
        if wanted && self.profile.resources == Resources::Announced {
            if self.listeners.len() >= MAX_LISTENERS {
                let problem = format!("more than {MAX_LISTENERS} subscriptions");
                return failed(id, &Fault::InvalidParams { problem }, Era::Modern);
            }
            self.listeners.push(id.clone());
            accepted.insert("resourcesListChanged".to_owned(), Value::Bool(true));
        }
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": { SUBSCRIPTION_KEY: id }, "notifications": accepted },
        })
    }

    /// Only a cancelled subscription matters: every other request is over before the next line.
    fn heed(&mut self, method: &str, params: &Value) {
        if let ("notifications/cancelled", Some(id)) = (method, params.get("requestId")) {
            self.listeners.retain(|listener| listener != id);
        }
    }

    fn announce(&mut self, method: &str) -> io::Result<()> {
        if self.legacy.is_some() {
            self.send(&json!({ "jsonrpc": "2.0", "method": method }))?;
        }
        for id in self.listeners.clone() {
            let params = json!({ "_meta": { SUBSCRIPTION_KEY: id } });
            self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))?;
        }
        Ok(())
    }

    /// Adds what every modern result carries.
    fn stamp(&self, mut result: Params, keep: Keep) -> Params {
        let kept = match keep {
            Keep::Long => Some((LONG, "public")),
            Keep::Never => Some((0, "private")),
            Keep::Unsaid => None,
        };
        if let Some((ttl, scope)) = kept {
            result.insert("ttlMs".to_owned(), json!(ttl));
            result.insert("cacheScope".to_owned(), json!(scope));
        }
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("_meta".to_owned(), json!({ SERVER_INFO_KEY: self.server_info() }));
        result
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.output.write_all(line.as_bytes())?;
        self.output.flush()
    }
}

/// The response to a message whose id cannot be known.
fn unreadable(code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } })
}

fn failed(id: &Value, fault: &Fault, era: Era) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": fault.to_error(era) })
}

/// One page of a list; the cursor is the place of its first item.
fn page(key: &str, items: Vec<Value>, params: &Params) -> Result<Params, Fault> {
    let start = match params.get("cursor") {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|cursor| cursor.parse().ok())
            .filter(|start| *start < items.len())
            .ok_or_else(|| Fault::InvalidParams { problem: "unknown `cursor`".to_owned() })?,
    };
    let end = start.saturating_add(PAGE);
    let more = end < items.len();
    let items: Vec<Value> = items.into_iter().skip(start).take(PAGE).collect();
    let mut result = object(json!({ key: items }));
    if more {
        result.insert("nextCursor".to_owned(), json!(end.to_string()));
    }
    Ok(result)
}

fn text<'a>(params: &'a Params, key: &str) -> Result<&'a str, Fault> {
    let problem = || Fault::InvalidParams { problem: format!("`{key}` must be a string") };
    params.get(key).and_then(Value::as_str).ok_or_else(problem)
}

fn arguments(params: &Params) -> Result<Params, Fault> {
    match params.get("arguments") {
        None => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => {
            Err(Fault::InvalidParams { problem: "`arguments` must be an object".to_owned() })
        }
    }
}

fn object(value: Value) -> Params {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
