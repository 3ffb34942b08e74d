//! JSON-RPC messages as the conformance server reads and writes them.

use std::fmt;

use serde_json::{Map, Value, json};

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const MISSING_CAPABILITY: i64 = -32021;

/// The last revision, which has no handshake.
pub(super) const MODERN: Revision = Revision("2026-07-28");

/// Revisions with a handshake, newest first.
pub(super) const LEGACY: [Revision; 4] = [
    Revision("2025-11-25"),
    Revision("2025-06-18"),
    Revision("2025-03-26"),
    Revision("2024-11-05"),
];

/// A revision of MCP that this server knows. They are dates and sort as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Revision(&'static str);

/// A message from the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Incoming {
    Request(Request),
    Notification {
        method: String,
        params: Value,
    },
    /// What the client says to a request of ours.
    Answer {
        id: Value,
        said: Result<Value, Value>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Result(Value),
    /// An object that is written byte for byte as it is.
    Raw(String),
    /// A result that is complete already, because its kind is no plain result.
    Special(Value),
    Fault(Fault),
    /// The request stays unanswered.
    Silence,
}

/// The `error` member of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: String,
    /// Null where there is none.
    pub(super) data: Value,
}

// === impl Revision ===

impl Revision {
    /// The legacy revision of that name.
    pub(super) fn legacy(name: &str) -> Option<Self> {
        LEGACY.into_iter().find(|known| known.0 == name)
    }

    pub(super) fn newest_legacy() -> Self {
        let [newest, ..] = LEGACY;
        newest
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    pub(super) fn is_modern(self) -> bool {
        self == MODERN
    }

    /// Whether this is the revision of that date or a later one.
    pub(super) fn since(self, date: &str) -> bool {
        self.0 >= date
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

// === impl Incoming ===

impl Incoming {
    /// Reads one message; what is none is refused.
    pub(super) fn read(message: Value) -> Result<Self, Fault> {
        let bad = |why: &str| Fault::new(INVALID_REQUEST, why);
        let Value::Object(mut members) = message else { return Err(bad("not an object")) };
        if members.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(bad("`jsonrpc` is not \"2.0\""));
        }
        let id = members.remove("id");
        let params = members.remove("params").unwrap_or_else(|| json!({}));
        match (members.remove("method"), id) {
            (Some(Value::String(method)), None) => Ok(Self::Notification { method, params }),
            (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
                Ok(Self::Request(Request { id, method, params }))
            }
            (None, Some(id)) => match (members.remove("result"), members.remove("error")) {
                (Some(result), None) => Ok(Self::Answer { id, said: Ok(result) }),
                (None, Some(error)) => Ok(Self::Answer { id, said: Err(error) }),
                (Some(_), Some(_)) | (None, None) => Err(bad("neither a request nor an answer")),
            },
            (Some(_), _) | (None, None) => Err(bad("neither a request nor an answer")),
        }
    }
}

// === impl Request ===

impl Request {
    /// A text of the params, such as `/ref/name`.
    pub(super) fn text(&self, path: &str) -> &str {
        self.params.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// A member of the request's metadata.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// An argument of a tool or prompt.
    pub(super) fn argument(&self, key: &str) -> Option<&Value> {
        self.params.get("arguments")?.get(key)
    }
}

// === impl Reply ===

impl Reply {
    /// The answer of a tool that has only text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Result(json!({ "content": [content(text)] }))
    }

    /// The answer of a tool that failed.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::Result(json!({ "content": [content(text)], "isError": true }))
    }

    /// The line that is sent to the client, unless nothing is.
    pub(super) fn line(&self, id: &Value) -> Option<String> {
        match self {
            Self::Result(result) | Self::Special(result) => {
                Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
            }
            Self::Raw(text) => Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#)),
            Self::Fault(fault) => Some(fault.line(id)),
            Self::Silence => None,
        }
    }
}

impl From<Fault> for Reply {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

// === impl Fault ===

impl Fault {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    pub(super) fn with(mut self, data: Value) -> Self {
        self.data = data;
        self
    }

    /// The refusal of a request that needs what the client does not have.
    pub(super) fn needs(capabilities: &Value) -> Self {
        Self::new(MISSING_CAPABILITY, "the client lacks a capability that this needs")
            .with(json!({ "requiredCapabilities": capabilities }))
    }

    pub(super) fn value(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        if !self.data.is_null() {
            error.insert("data".to_owned(), self.data.clone());
        }
        Value::Object(error)
    }

    pub(super) fn line(&self, id: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "error": self.value() }).to_string()
    }
}

/// A piece of text as content.
pub(super) fn content(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// A notification as it is sent.
pub(super) fn notification(method: &str, params: &Value) -> String {
    let bare = params.as_object().is_some_and(Map::is_empty);
    if bare {
        return json!({ "jsonrpc": "2.0", "method": method }).to_string();
    }
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// Sets a member of a value that is an object.
pub(super) fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "[]",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        ] {
            let read = Incoming::read(serde_json::from_str(text).unwrap());
            assert!(read.is_err(), "{text}");
        }
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let read = |value| Incoming::read(value).unwrap();
        assert!(matches!(
            read(json!({ "jsonrpc": "2.0", "id": "x", "method": "m" })),
            Incoming::Request(Request { params, .. }) if params == json!({})
        ));
        assert!(matches!(
            read(json!({ "jsonrpc": "2.0", "method": "m" })),
            Incoming::Notification { .. }
        ));
        assert!(matches!(
            read(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1 } })),
            Incoming::Answer { said: Err(_), .. }
        ));
    }
}
