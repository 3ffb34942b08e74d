//! Records the messages between a client and a server.

use serde_json::Value as Json;
use serde_json::value::{RawValue, to_raw_value};

use super::{Envelope, Exchange, Header, MAX_CASSETTE, MAX_EXCHANGES, VERSION, comparable, token};

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Replaces secrets in a text.
pub type Mask = Box<dyn Fn(&str) -> String + Send>;

/// A recording in progress.
pub struct Recorder {
    server: String,
    mask: Mask,
    exchanges: Vec<Exchange>,
    /// The positions of exchanges without an answer, oldest first.
    open: Vec<usize>,
    bytes: usize,
    cut: bool,
}

// === impl Recorder ===

impl Recorder {
    /// A recording of this server, without the secrets that `mask` replaces.
    pub fn new(server: impl Into<String>, mask: Mask) -> Self {
        let server = server.into();
        Self { server, mask, exchanges: Vec::new(), open: Vec::new(), bytes: 0, cut: false }
    }

    /// Takes one line. A line that is no message is not recorded.
    pub fn line(&mut self, side: Side, line: &[u8]) {
        let Ok(text) = str::from_utf8(line) else { return };
        let text = self.masked(text.trim());
        let Ok(message) = serde_json::from_str::<Box<RawValue>>(&text) else { return };
        match side {
            Side::Client => self.request(&message),
            Side::Server => self.message(message),
        }
    }

    /// The number of requests with an answer.
    pub fn answered(&self) -> usize {
        self.exchanges.len() - self.open.len()
    }

    /// True if the limit was reached, so that later exchanges are missing.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The cassette: all requests that were answered.
    pub fn cassette(&self) -> String {
        let header =
            Header { capstan_cassette: VERSION, server: self.server.clone(), cut: self.cut };
        let mut text = serde_json::to_string(&header).unwrap_or_default();
        text.push('\n');
        for (at, exchange) in self.exchanges.iter().enumerate() {
            if !self.open.contains(&at) {
                text.push_str(&serde_json::to_string(exchange).unwrap_or_default());
                text.push('\n');
            }
        }
        text
    }

    /// The text without secrets. One that has none keeps its bytes.
    fn masked(&self, text: &str) -> String {
        if (self.mask)(text) == text {
            // A secret with quotes or line breaks in it is written differently in JSON.
            let plain = serde_json::from_str::<Json>(text).ok();
            if plain.is_none_or(|value| !any_text(&value, &|text| (self.mask)(text) != text)) {
                return text.to_owned();
            }
        }
        match serde_json::from_str::<Json>(text) {
            Ok(mut value) => {
                self.mask_in(&mut value);
                value.to_string()
            }
            Err(_) => String::new(),
        }
    }

    fn mask_in(&self, value: &mut Json) {
        match value {
            Json::String(text) => *text = (self.mask)(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.mask_in(item)),
            Json::Object(members) => {
                let masked = std::mem::take(members).into_iter().map(|(key, mut value)| {
                    self.mask_in(&mut value);
                    ((self.mask)(&key), value)
                });
                *members = masked.collect();
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn request(&mut self, message: &RawValue) {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(message.get()) else { return };
        let (Some(id), Some(method)) = (envelope.id, envelope.method) else { return };
        if !self.has_room(message.get().len()) {
            return;
        }
        self.open.push(self.exchanges.len());
        self.exchanges.push(Exchange {
            token: token(envelope.params.as_ref()),
            params: comparable(&method, envelope.params),
            method,
            id: id.to_owned(),
            messages: Vec::new(),
        });
    }

    fn message(&mut self, message: Box<RawValue>) {
        let text = message.get().to_owned();
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&text) else { return };
        let belongs = |exchange: &Exchange| {
            if let (None, Some(id)) = (&envelope.method, envelope.id) {
                return exchange.id.get() == id.get();
            }
            let about = envelope.params.as_ref().and_then(|params| params.get("progressToken"));
            about.is_some() && about == exchange.token.as_ref()
        };
        let is_answer = envelope.method.is_none();
        let found = self.open.iter().position(|at| self.exchanges.get(*at).is_some_and(belongs));
        // A message that names no request belongs to the latest one, whether answered or not.
        let at = match found.and_then(|place| self.open.get(place)) {
            Some(at) => *at,
            None if is_answer => return,
            None => match self.open.last().copied().or(self.exchanges.len().checked_sub(1)) {
                Some(at) => at,
                None => return,
            },
        };
        if !self.has_room(text.len()) {
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(at) {
            exchange.messages.push(message);
        }
        if is_answer {
            self.open.retain(|open| *open != at);
        }
    }

    /// True if this many bytes more fit. The first ones that do not end the recording.
    fn has_room(&mut self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= MAX_CASSETTE / 2 && self.exchanges.len() < MAX_EXCHANGES;
        self.cut |= !fits;
        if !self.cut {
            self.bytes += bytes;
        }
        !self.cut
    }
}

/// True if a string in the value, or a key, fulfils the condition.
fn any_text(value: &Json, is: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Json::String(text) => is(text),
        Json::Array(items) => items.iter().any(|item| any_text(item, is)),
        Json::Object(members) => members.iter().any(|(key, value)| is(key) || any_text(value, is)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A value as the raw JSON that it is written as.
pub(super) fn raw(value: &Json) -> Option<Box<RawValue>> {
    to_raw_value(value).ok()
}
