//! The differences between the two eras over streamable HTTP.
//!
//! A legacy server may assign a session, has a stream of its own, and can resume streams. A modern
//! server has requests that describe themselves in headers; it notices when a stream is closed, and
//! gets no notifications.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use capstan_http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use capstan_hub::ports::Item;
use capstan_wire::{Json, object, protocol};
use tracing::warn;

use crate::http::argument_headers::{self, ArgumentHeader, encode};
use crate::http::trace;
use crate::session::era::Era;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The initial capacity of a request's header map; few requests have more headers.
const HEADERS: usize = 12;

/// The era of a server, with the state that it needs over HTTP.
///
/// Until the handshake has chosen the era, `server/discover` is sent as a modern request, and
/// everything else as a legacy one.
#[derive(Default)]
pub(super) struct HttpEra {
    era: OnceLock<Era>,
    /// The session that a legacy server assigned.
    session: OnceLock<HeaderValue>,
    /// The arguments that a modern server wants to be repeated in headers, by tool.
    argument_headers: Mutex<HashMap<String, Arc<[ArgumentHeader]>>>,
}

// === impl HttpEra ===

impl HttpEra {
    /// Sets the era; the first one stays.
    pub(super) fn choose(&self, era: Era) {
        self.era.get_or_init(|| era);
    }

    /// Remembers the session that the answer to a handshake assigns, if any.
    pub(super) fn take_session(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION) {
            self.session.get_or_init(|| session.clone());
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.get().is_some()
    }

    /// True if requests of that method are part of a session.
    pub(super) fn is_in_session(&self, method: &str) -> bool {
        method != "initialize" && !self.is_modern(method) && self.has_session()
    }

    /// True if the server takes messages that get no reply.
    pub(super) fn takes_notifications(&self) -> bool {
        self.era.get() != Some(&Era::Modern)
    }

    /// True if a stream that broke off can be resumed.
    pub(super) fn can_resume(&self) -> bool {
        self.era.get() != Some(&Era::Modern)
    }

    /// The headers of a message with that method.
    pub(super) fn headers(&self, method: &str, params: &Json) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if self.is_modern(method) {
            self.add_description(&mut headers, method, params);
        } else if method != "initialize" {
            self.add_session(&mut headers);
        }
        trace::add(&mut headers, params);
        headers
    }

    /// Adds the session and the revision.
    pub(super) fn add_session(&self, headers: &mut HeaderMap) {
        headers.extend(self.session.get().map(|session| (SESSION, session.clone())));
        let revision = self.era.get().map(|era| HeaderValue::from_static(era.revision()));
        headers.extend(revision.map(|revision| (VERSION, revision)));
    }

    /// Removes the tools that cannot be called, and remembers the argument headers of the others.
    pub(super) fn callable_tools(&self, tools: Vec<Item>) -> Vec<Item> {
        if self.era.get() != Some(&Era::Modern) {
            return tools;
        }
        let mut argument_headers = HashMap::new();
        let mut callable = Vec::with_capacity(tools.len());
        for tool in tools {
            match argument_headers::read(&tool.definition) {
                Ok(of_tool) if of_tool.is_empty() => callable.push(tool),
                Ok(of_tool) => {
                    argument_headers.insert(tool.name.clone(), of_tool.into());
                    callable.push(tool);
                }
                Err(problem) => {
                    let tool = tool.name;
                    warn!(tool, %problem, "one of its tools cannot be called and is left out");
                }
            }
        }
        *self.argument_headers.lock().unwrap_or_else(PoisonError::into_inner) = argument_headers;
        callable
    }

    fn is_modern(&self, method: &str) -> bool {
        self.era.get() == Some(&Era::Modern) || method == "server/discover"
    }

    /// Adds the headers in which a modern request describes itself.
    fn add_description(&self, headers: &mut HeaderMap, method: &str, params: &Json) {
        headers.insert(VERSION, HeaderValue::from_static(protocol::MODERN));
        headers.extend(encode(method).map(|method| (METHOD, method)));
        let key = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            task if task.starts_with("tasks/") => "taskId",
            _ => return,
        };
        let Some(name) = object::get_string(params, key) else { return };
        headers.extend(encode(&name).map(|name| (NAME, name)));
        if method == "tools/call" {
            let all = self.argument_headers.lock().unwrap_or_else(PoisonError::into_inner);
            let of_tool = all.get(&name).cloned();
            drop(all);
            argument_headers::add(headers, of_tool.as_deref().unwrap_or_default(), params);
        }
    }
}
