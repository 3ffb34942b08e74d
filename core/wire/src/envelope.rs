//! Parses the envelope of one JSON-RPC message without looking into its body.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;

use crate::Json;
use crate::members::{Id, Members, Raw};

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A request, which expects a reply.
    Request {
        /// The id, to be repeated in the reply.
        id: RequestId,
        /// The method.
        method: String,
        /// The params.
        params: Option<Json>,
    },
    /// A notification, which expects no reply.
    Notification {
        /// The method.
        method: String,
        /// The params.
        params: Option<Json>,
    },
    /// A reply to a request of ours.
    Reply {
        /// The id of that request; `None` if the other side could not read it.
        id: Option<RequestId>,
        /// The result or the error.
        reply: Reply,
    },
}

/// The result or the error of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The result, as it was written.
    Result(Json),
    /// An error.
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The other side's message; empty if there is none.
    pub message: String,
    /// Additional data.
    pub data: Option<Json>,
    /// The whole error object, as it was written.
    pub whole: Json,
}

/// The largest id of a request, in bytes.
///
/// An id is kept while the request runs, and repeated in answers, progress and logs.
pub const MAX_REQUEST_ID: usize = 4096;

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// An integer; our own ids are always integers.
    Number(i64),
    /// A string.
    Text(String),
}

/// Why a line is not a JSON-RPC message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// It is not JSON, or a member has the wrong type or is given twice.
    #[error("not a JSON-RPC message")]
    Malformed(#[from] serde_json::Error),
    /// The version of JSON-RPC is missing or not 2.0.
    #[error("`jsonrpc` is not \"2.0\"")]
    Version,
    /// The id is longer than [`MAX_REQUEST_ID`].
    #[error("the `id` of the request has more than {MAX_REQUEST_ID} bytes")]
    LongId,
    /// The members make neither a request, a notification nor a reply, or several at once.
    #[error("the members {0} do not make a message")]
    Shape(&'static str),
}

#[derive(Deserialize)]
struct ErrorMembers<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow)]
    data: Option<Raw<'a>>,
}

// === impl Message ===

impl Message {
    /// Parses one message. The bodies share the memory of `line`.
    pub fn parse(line: &Bytes) -> Result<Self, EnvelopeError> {
        let Members { jsonrpc, id, method, params, result, error } = Members::parse(line)?;
        if jsonrpc.as_deref() != Some("2.0") {
            return Err(EnvelopeError::Version);
        }
        let method = method.map(Cow::into_owned);
        let params = params.map(|raw| Json::piece(line, raw));
        match (method, result, error) {
            (Some(method), None, None) => match id {
                Some(Id::Number(id)) => {
                    Ok(Self::Request { id: RequestId::Number(id), method, params })
                }
                Some(Id::Text(id)) if id.len() > MAX_REQUEST_ID => Err(EnvelopeError::LongId),
                Some(Id::Text(id)) => Ok(Self::Request { id: RequestId::Text(id), method, params }),
                Some(Id::Null(())) => Err(EnvelopeError::Shape("`method` and a null `id`")),
                None => Ok(Self::Notification { method, params }),
            },
            (None, Some(result), None) => match id.and_then(RequestId::from_members) {
                Some(id) => Ok(Self::Reply {
                    id: Some(id),
                    reply: Reply::Result(Json::piece(line, result)),
                }),
                None => Err(EnvelopeError::Shape("`result` without an `id`")),
            },
            (None, None, Some(error)) => Ok(Self::Reply {
                id: id.and_then(RequestId::from_members),
                reply: Reply::Error(RpcError::parse(line, error)?),
            }),
            (None, None, None) => Err(EnvelopeError::Shape("`jsonrpc` alone")),
            _ => Err(EnvelopeError::Shape("`method`, `result` and `error` together")),
        }
    }
}

// === impl RpcError ===

impl RpcError {
    fn parse(line: &Bytes, whole: Raw<'_>) -> Result<Self, EnvelopeError> {
        let members: ErrorMembers<'_> = serde_json::from_str(whole.0)?;
        Ok(Self {
            code: members.code,
            message: members.message,
            data: members.data.map(|data| Json::piece(line, data)),
            whole: Json::piece(line, whole),
        })
    }
}

// === impl RequestId ===

impl RequestId {
    fn from_members(id: Id) -> Option<Self> {
        match id {
            Id::Number(id) => Some(Self::Number(id)),
            Id::Text(id) => Some(Self::Text(id)),
            Id::Null(()) => None,
        }
    }
}

impl fmt::Display for RequestId {
    /// The id as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(id) => write!(f, "{id}"),
            Self::Text(id) => {
                let json = serde_json::to_string(id).map_err(|_| fmt::Error)?;
                f.write_str(&json)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, EnvelopeError> {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_request_keeps_the_bytes_of_its_params() {
        let params = r#"{"b": 1.00, "a":12345678901234567890123}"#;
        let line = format!(r#"{{"jsonrpc":"2.0","params":{params},"id":"x","method":"m"}}"#);
        let expected = Message::Request {
            id: RequestId::Text("x".into()),
            method: "m".into(),
            params: Some(json(params)),
        };
        assert_eq!(parse(&line).unwrap(), expected);
    }

    #[test]
    fn a_null_result_is_a_result() {
        let expected =
            Message::Reply { id: Some(RequestId::Number(3)), reply: Reply::Result(json("null")) };
        assert_eq!(parse(r#"{"jsonrpc":"2.0","id":3,"result":null}"#).unwrap(), expected);
    }

    #[test]
    fn an_error_keeps_what_nobody_here_knows() {
        let whole = r#"{"code":-1,"message":"no","data":{"k":1.0},"extra":[1]}"#;
        let line = format!(r#"{{"jsonrpc":"2.0","id":3,"error":{whole}}}"#);
        let Ok(Message::Reply { reply: Reply::Error(error), .. }) = parse(&line) else {
            panic!("not an error reply");
        };
        assert_eq!((error.code, error.message.as_str()), (-1, "no"));
        assert_eq!(error.whole.as_str(), whole);
        assert_eq!(error.data, Some(json(r#"{"k":1.0}"#)));
    }

    #[test]
    fn the_id_of_a_request_is_bounded() {
        let with = |id: &str| parse(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"m"}}"#));
        let (largest, more) = ("a".repeat(MAX_REQUEST_ID), "a".repeat(MAX_REQUEST_ID + 1));
        assert!(with(&largest).is_ok());
        assert!(matches!(with(&more), Err(EnvelopeError::LongId)));
        assert!(matches!(with(&"\\n".repeat(MAX_REQUEST_ID + 1)), Err(EnvelopeError::LongId)));
        assert!(matches!(with(&"a".repeat(1 << 20)), Err(EnvelopeError::LongId)));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let refused = [
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","Method":"m"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
            r#"["2.0",1,"m"]"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#,
            "hello",
            "",
        ];
        for line in refused {
            assert!(parse(line).is_err(), "accepted {line}");
        }
    }
}
