//! The server itself: serves requests, and tells everybody what has changed.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::call::{Call, META_CAPABILITIES, META_SUBSCRIPTION, META_VERSION, TASKS};
use super::library::EVENTS;
use super::message::{
    Fault, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MODERN, Reply, Request, Revision,
    notification, set,
};
use super::options::{Era, Options};
use super::seal::Seal;
use super::session::{Client, Running, Session};
use super::stream::Stream;
use super::tasks::{self, Tasks};
use super::{library, lock, modern, tools};

/// The most sessions at a time.
const MOST_SESSIONS: usize = 1024;

/// How many events `test://events` tells.
const KEPT_EVENTS: usize = 1000;

/// The method of an extension of our own. It runs a tool, so it can do whatever tools can.
pub(super) const EXTENSION_CALL: &str = "com.example/call";

/// Everything that all clients share.
pub(super) struct Server {
    pub(super) options: Options,
    pub(super) seal: Seal,
    pub(super) tasks: Tasks,
    pub(super) tools: Flip,
    pub(super) prompts: Flip,
    pub(super) resources: Flip,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    listeners: Mutex<Vec<Listener>>,
    events: Mutex<VecDeque<String>>,
}

/// Whether a list has one more entry than usual; each change turns it over.
#[derive(Default)]
pub(super) struct Flip(AtomicBool);

/// What clients are told has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Tools,
    Prompts,
    Resources,
    Resource(String),
    /// A task, as it is now.
    Task(Value),
}

/// A modern request that waits for changes.
struct Listener {
    id: Value,
    filter: Value,
    out: Arc<Stream>,
}

/// There are as many sessions as there may be.
#[derive(Debug, thiserror::Error)]
#[error("too many sessions")]
pub(super) struct TooMany;

// === impl Server ===

impl Server {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            seal: Seal::new(),
            tasks: Tasks::default(),
            tools: Flip::default(),
            prompts: Flip::default(),
            resources: Flip::default(),
            sessions: Mutex::default(),
            listeners: Mutex::default(),
            events: Mutex::default(),
        }
    }

    pub(super) fn join(&self, session: &Arc<Session>) -> Result<(), TooMany> {
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MOST_SESSIONS {
            return Err(TooMany);
        }
        sessions.insert(session.id.clone(), Arc::clone(session));
        drop(sessions);
        Ok(())
    }

    pub(super) fn session(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).get(id).cloned()
    }

    pub(super) fn leave(&self, id: &str) {
        let gone = lock(&self.sessions).remove(id);
        if let Some(session) = gone {
            session.close();
        }
    }

    /// Serves a request to its end.
    pub(super) async fn serve(
        self: &Arc<Self>,
        session: &Arc<Session>,
        out: &Arc<Stream>,
        request: Request,
    ) -> Reply {
        let method = request.method.clone();
        let revision = match self.revision(session, &request) {
            Ok(revision) => revision,
            Err(fault) => return fault.into(),
        };
        let running = session.run(&request.id);
        let capabilities = if revision.is_modern() {
            request.meta(META_CAPABILITIES).cloned().unwrap_or_default()
        } else {
            session.client().map(|client| client.capabilities).unwrap_or_default()
        };
        let asking = match Call::asking(self, &request, revision) {
            Ok(asking) => asking,
            Err(fault) => return fault.into(),
        };
        let call = Call {
            server: Arc::clone(self),
            session: Arc::clone(session),
            out: Arc::clone(out),
            request,
            revision,
            capabilities,
            asking,
            cancelled: running.cancelled.clone(),
        };
        let reply = self.route(call).await;
        drop(running);
        if revision.is_modern() { modern::finish(&method, reply) } else { reply }
    }

    /// Changes something, and tells everybody who wants to know.
    pub(super) fn change(&self, change: &Change) -> Reply {
        match change {
            Change::Tools => self.tools.flip(),
            Change::Prompts => self.prompts.flip(),
            Change::Resources => self.resources.flip(),
            Change::Resource(_) | Change::Task(_) => {}
        }
        self.announce(change);
        Reply::text("changed")
    }

    /// Writes down what has happened to a call.
    pub(super) fn happened(&self, what: String) {
        let mut events = lock(&self.events);
        events.push_back(what);
        while events.len() > KEPT_EVENTS {
            events.pop_front();
        }
        drop(events);
        self.announce(&Change::Resource(EVENTS.to_owned()));
    }

    /// What has happened to calls, a line each.
    pub(super) fn events(&self) -> String {
        lock(&self.events).iter().flat_map(|event| [event.as_str(), "\n"]).collect()
    }

    pub(super) fn announce(&self, change: &Change) {
        let sessions: Vec<Arc<Session>> = lock(&self.sessions).values().cloned().collect();
        for session in sessions {
            let wanted = match change {
                Change::Tools | Change::Prompts | Change::Resources => true,
                Change::Resource(uri) => lock(&session.subscribed).contains(uri),
                Change::Task(_) => false,
            };
            if wanted && session.client().is_some() {
                session.main.push(notification(change.method(), &change.params()));
            }
        }
        for listener in lock(&self.listeners).iter().filter(|one| change.wanted(&one.filter)) {
            let mut params = change.params();
            set(&mut params, "_meta", json!({ META_SUBSCRIPTION: listener.id }));
            listener.out.push(notification(change.method(), &params));
        }
    }

    /// By which revision a request is served.
    fn revision(&self, session: &Session, request: &Request) -> Result<Revision, Fault> {
        let client = session.client();
        let handshake = matches!(request.method.as_str(), "initialize" | "ping");
        let modern = match self.options.era {
            Era::Legacy => false,
            Era::Modern => true,
            Era::Both => request.meta(META_VERSION).is_some() || (client.is_none() && !handshake),
        };
        if modern {
            return modern::check(request).map(|()| MODERN);
        }
        match client {
            Some(client) => Ok(client.revision),
            None if handshake || request.method == "server/discover" => {
                Ok(self.options.negotiate(request.text("/protocolVersion")))
            }
            None => Err(Fault::new(INVALID_REQUEST, "not initialized")),
        }
    }

    async fn route(&self, call: Call) -> Reply {
        let modern = call.revision.is_modern();
        match (modern, call.request.method.as_str()) {
            (_, "tools/list") => tools::list(&call),
            (_, "tools/call" | EXTENSION_CALL) => tools::call(call).await,
            (_, "resources/list") => library::resources(self),
            (_, "resources/templates/list") => library::templates(),
            (_, "resources/read") => library::read(&call),
            (_, "prompts/list") => library::prompts(&call),
            (_, "prompts/get") => library::prompt(&call).await,
            (_, "completion/complete") => library::complete(&call),
            (true, "server/discover") => discover(),
            (true, "subscriptions/listen") => self.listen(&call).await,
            (true, "tasks/get" | "tasks/update" | "tasks/cancel") => self.tasks.serve(&call),
            (false, "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel")
                if tasks::are_of_legacy(call.revision) =>
            {
                self.tasks.serve_legacy(&call).await
            }
            (false, _) => self.legacy(&call),
            (true, method) => no_method(method),
        }
    }

    fn legacy(&self, call: &Call) -> Reply {
        let uri = || call.request.text("/uri").to_owned();
        match call.request.method.as_str() {
            "initialize" => return self.initialize(call),
            "ping" => {}
            "logging/setLevel" => {
                if call.session.set_level(call.request.text("/level")).is_err() {
                    return Fault::new(INVALID_PARAMS, "no such level").into();
                }
            }
            "resources/subscribe" => {
                lock(&call.session.subscribed).insert(uri());
            }
            "resources/unsubscribe" => {
                lock(&call.session.subscribed).remove(&uri());
            }
            method => return no_method(method),
        }
        Reply::Result(json!({}))
    }

    fn initialize(&self, call: &Call) -> Reply {
        let asked = call.request.params.get("capabilities").cloned();
        let client = Client {
            revision: self.options.negotiate(call.request.text("/protocolVersion")),
            capabilities: asked.unwrap_or_default(),
            level: "debug".to_owned(),
        };
        let mut offered = capabilities();
        if client.revision.since("2025-03-26") {
            set(&mut offered, "completions", json!({}));
        }
        if tasks::are_of_legacy(client.revision) {
            let calls = json!({ "tools": { "call": {} } });
            set(&mut offered, "tasks", json!({ "list": {}, "cancel": {}, "requests": calls }));
        }
        let result = json!({
            "protocolVersion": client.revision.name(),
            "capabilities": offered,
            "serverInfo": info(),
            "instructions": INSTRUCTIONS,
        });
        call.session.greet(client);
        Reply::Result(result)
    }

    /// Tells of changes until the client has heard enough.
    async fn listen(&self, call: &Call) -> Reply {
        let id = call.request.id.clone();
        let Some(mut filter @ Value::Object(_)) = call.request.params.get("notifications").cloned()
        else {
            return Fault::new(INVALID_PARAMS, "`notifications` is not an object").into();
        };
        if let Some(ids) = filter.get_mut("taskIds") {
            if !tasks::declared(&call.capabilities) {
                return tasks::needed().into();
            }
            if let Some(ids) = ids.as_array_mut() {
                ids.retain(|id| id.as_str().is_some_and(|id| self.tasks.find(id).is_some()));
            }
        }
        let acknowledged = json!({ "_meta": { META_SUBSCRIPTION: id }, "notifications": filter });
        let out = Arc::clone(&call.out);
        {
            // Over both, so that no change comes before the acknowledgement or is missed after it.
            let mut listeners = lock(&self.listeners);
            call.notify("notifications/subscriptions/acknowledged", &acknowledged);
            listeners.push(Listener { id, filter, out });
        }
        Running::over(&call.cancelled).await;
        lock(&self.listeners).retain(|listener| {
            !Arc::ptr_eq(&listener.out, &call.out) || listener.id != call.request.id
        });
        Reply::Silence
    }
}

/// What the server tells a language model of itself.
const INSTRUCTIONS: &str = "A server for tests of the protocol.";

fn discover() -> Reply {
    let mut offered = capabilities();
    set(&mut offered, "completions", json!({}));
    set(&mut offered, "extensions", json!({ TASKS: {} }));
    Reply::Result(json!({
        "supportedVersions": [MODERN.name()],
        "capabilities": offered,
        "instructions": INSTRUCTIONS,
    }))
}

fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "logging": {},
        "experimental": { "com.example": {} },
    })
}

pub(super) fn info() -> Value {
    json!({ "name": "capstan-conformance-server", "version": env!("CARGO_PKG_VERSION") })
}

fn no_method(method: &str) -> Reply {
    Fault::new(METHOD_NOT_FOUND, format!("no method `{method}`")).into()
}

// === impl Flip ===

impl Flip {
    pub(super) fn is_flipped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn flip(&self) {
        self.0.fetch_xor(true, Ordering::Relaxed);
    }
}

// === impl Change ===

impl Change {
    fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
            Self::Task(_) => "notifications/tasks",
        }
    }

    fn params(&self) -> Value {
        match self {
            Self::Tools | Self::Prompts | Self::Resources => json!({}),
            Self::Resource(uri) => json!({ "uri": uri }),
            Self::Task(task) => task.clone(),
        }
    }

    /// Whether who listens with that filter wants to know.
    fn wanted(&self, filter: &Value) -> bool {
        let asked = |key: &str| filter.get(key) == Some(&json!(true));
        let among = |key: &str, one: &Value| {
            filter.get(key).and_then(Value::as_array).is_some_and(|all| all.contains(one))
        };
        match self {
            Self::Tools => asked("toolsListChanged"),
            Self::Prompts => asked("promptsListChanged"),
            Self::Resources => asked("resourcesListChanged"),
            Self::Resource(uri) => among("resourceSubscriptions", &json!(uri)),
            Self::Task(task) => task.get("taskId").is_some_and(|id| among("taskIds", id)),
        }
    }
}
