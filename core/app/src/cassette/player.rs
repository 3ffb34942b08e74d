//! Answers as a recorded server did.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use super::recorder::raw;
use super::{
    CassetteError, Envelope, Exchange, Header, MAX_EXCHANGES, VERSION, comparable, count_methods,
    is_modern, token, with_members,
};

/// The error code for a method that was not recorded.
const NO_METHOD: i32 = -32601;

/// The error code for params that were not recorded.
const NO_PARAMS: i32 = -32602;

/// The revisions that a client is offered whose era was not recorded.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The most answers that wait for replies of the client.
const MAX_WAITING: usize = 256;

/// A cassette that is played.
#[derive(Debug)]
pub struct Player {
    /// The name of the recorded server.
    server: String,
    exchanges: Vec<Recorded>,
    /// Messages that wait for the client's reply to a question of the server.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Recorded {
    exchange: Exchange,
    /// True if it was given out; it is repeated only if there is no other one.
    used: bool,
}

#[derive(Debug)]
struct Waiting {
    /// The id of the question.
    id: String,
    rest: VecDeque<Box<RawValue>>,
}

// === impl Player ===

impl Player {
    /// Reads a cassette.
    ///
    /// # Errors
    /// If it is none, or is damaged.
    pub fn read(text: &str) -> Result<Self, CassetteError> {
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().ok_or(CassetteError::NoHeader)?;
        let version = serde_json::from_str::<Json>(first).ok();
        let version = version.as_ref().and_then(|header| header.get("capstan_cassette")?.as_u64());
        let version = version.ok_or(CassetteError::NoHeader)?;
        if version != u64::from(VERSION) {
            return Err(CassetteError::Version(u32::try_from(version).unwrap_or(u32::MAX)));
        }
        let damaged = |line: usize, cause: serde_json::Error| CassetteError::Line {
            line: line + 1,
            cause: cause.to_string(),
        };
        let header: Header = serde_json::from_str(first).map_err(|cause| damaged(0, cause))?;
        let mut exchanges = Vec::new();
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            if exchanges.len() >= MAX_EXCHANGES {
                return Err(CassetteError::TooLong);
            }
            let exchange = serde_json::from_str(line).map_err(|cause| damaged(at, cause))?;
            exchanges.push(Recorded { exchange, used: false });
        }
        Ok(Self { server: header.server, exchanges, waiting: VecDeque::new() })
    }

    /// The name of the recorded server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The lines that answer one line of the client.
    pub fn answer(&mut self, line: &str) -> Vec<String> {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(line) else {
            return vec![error(None, -32700, "the message is not JSON-RPC")];
        };
        match (envelope.id, envelope.method) {
            (Some(id), Some(method)) => self.request(id, &method, envelope.params),
            (Some(id), None) => self.reply(id),
            (None, _) => Vec::new(),
        }
    }

    fn request(&mut self, id: &RawValue, method: &str, params: Option<Json>) -> Vec<String> {
        let modern = is_modern(method, params.as_ref());
        let own_token = token(params.as_ref());
        let wanted = comparable(method, params);
        let fits = |recorded: &Recorded| {
            recorded.exchange.method == method && recorded.exchange.params == wanted
        };
        let found = self.exchanges.iter().position(|recorded| !recorded.used && fits(recorded));
        let found = found.or_else(|| self.exchanges.iter().rposition(fits));
        let Some(recorded) = found.and_then(|at| self.exchanges.get_mut(at)) else {
            return vec![self.unrecorded(id, method)];
        };
        recorded.used = true;
        let exchange = &recorded.exchange;
        let messages = exchange.messages.iter().map(|message| {
            let fitted = fitted(message, exchange, id, own_token.as_ref());
            if modern { complete(&fitted) } else { fitted }
        });
        let messages = messages.collect();
        self.send(messages)
    }

    /// The messages up to the first question to the client; the others wait for its reply.
    fn send(&mut self, mut messages: VecDeque<Box<RawValue>>) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(message) = messages.pop_front() {
            let question = serde_json::from_str::<Envelope<'_>>(message.get()).ok();
            let question = question.filter(|envelope| envelope.method.is_some());
            let question = question.and_then(|envelope| Some(envelope.id?.get().to_owned()));
            lines.push(message.get().to_owned());
            if let Some(id) = question.filter(|_| self.waiting.len() < MAX_WAITING) {
                self.waiting.push_back(Waiting { id, rest: messages });
                return lines;
            }
        }
        lines
    }

    fn reply(&mut self, id: &RawValue) -> Vec<String> {
        let at = self.waiting.iter().position(|waiting| waiting.id == id.get());
        let waiting = at.and_then(|at| self.waiting.remove(at));
        waiting.map(|waiting| self.send(waiting.rest)).unwrap_or_default()
    }

    /// The answer to a request that was not recorded: the greeting of the other era, `ping`, or an
    /// error.
    fn unrecorded(&self, id: &RawValue, method: &str) -> String {
        let greeting = match method {
            "ping" => Some(json!({})),
            "initialize" => self.greeting("server/discover").map(|mut result| {
                result.retain(|key, _| {
                    ["capabilities", "serverInfo", "instructions"].contains(&key.as_str())
                });
                result.insert("protocolVersion".to_owned(), LEGACY.into());
                Json::Object(result)
            }),
            "server/discover" => self.greeting("initialize").map(|mut result| {
                result.remove("protocolVersion");
                result.insert("supportedVersions".to_owned(), json!([MODERN]));
                result.insert("resultType".to_owned(), "complete".into());
                Json::Object(result)
            }),
            _ => None,
        };
        if let Some(result) = greeting {
            return format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get());
        }
        let known = count_methods(self.exchanges.iter().map(|one| one.exchange.method.as_str()));
        let server = &self.server;
        if let Some(times) = known.get(method) {
            let message = format!(
                "the recording of `{server}` has {times} answers to `{method}`, and none for these params"
            );
            return error(Some(id), NO_PARAMS, &message);
        }
        let message = format!("the recording of `{server}` has no answer to `{method}`");
        error(Some(id), NO_METHOD, &message)
    }

    /// The recorded result of a greeting.
    fn greeting(&self, method: &str) -> Option<serde_json::Map<String, Json>> {
        let mut recorded = self.exchanges.iter().filter(|one| one.exchange.method == method);
        let answer = recorded.next()?.exchange.messages.last()?;
        let answer: Json = serde_json::from_str(answer.get()).ok()?;
        answer.get("result")?.as_object().cloned()
    }
}

/// A recorded message with the id and the progress token of this request.
fn fitted(
    message: &RawValue,
    exchange: &Exchange,
    id: &RawValue,
    own_token: Option<&Json>,
) -> Box<RawValue> {
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(message.get()) else {
        return message.to_owned();
    };
    let changed = match (&envelope.method, envelope.id) {
        (None, Some(recorded)) if recorded.get() != id.get() => {
            with_members(message, &[("id", id)])
        }
        (Some(_), None) if own_token != exchange.token.as_ref() => {
            let mut params = envelope.params;
            let token = params.as_mut().and_then(|params| params.get_mut("progressToken"));
            if let Some((token, own)) = token.zip(own_token) {
                *token = own.clone();
            }
            params
                .as_ref()
                .and_then(raw)
                .and_then(|params| with_members(message, &[("params", &params)]))
        }
        _ => None,
    };
    changed.unwrap_or_else(|| message.to_owned())
}

/// An answer with the type of result that the modern era requires.
fn complete(message: &RawValue) -> Box<RawValue> {
    let changed = || {
        let mut answer: Json = serde_json::from_str(message.get()).ok()?;
        let result = answer.get_mut("result")?.as_object_mut()?;
        if result.contains_key("resultType") {
            return None;
        }
        result.insert("resultType".to_owned(), "complete".into());
        let result = raw(answer.get("result")?)?;
        with_members(message, &[("result", &result)])
    };
    changed().unwrap_or_else(|| message.to_owned())
}

fn error(id: Option<&RawValue>, code: i32, message: &str) -> String {
    let id = id.map_or("null", RawValue::get);
    let message = Json::from(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}
