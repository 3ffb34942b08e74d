//! Recognizes JSON-RPC errors and lost sessions in refusals.

use bytes::Bytes;
use capstan_wire::{Message, Reply, protocol};

use crate::http::refusal::Refusal;

/// Messages of servers that do not know a session, besides the status. A message that only mentions
/// some session does not match: it may come from a tool.
const LOST_SESSION: [&str; 4] =
    ["no valid session id", "invalid session id", "missing session id", "session not found"];

/// The JSON-RPC error in a body.
pub(super) fn error_in(body: &Bytes) -> Option<Reply> {
    match Message::parse(body) {
        Ok(Message::Reply { reply: error @ Reply::Error(_), .. }) => Some(error),
        Ok(_) | Err(_) => None,
    }
}

/// True if the server no longer knows the session.
pub(super) fn is_session_lost(refusal: &Refusal) -> bool {
    let error = match error_in(&refusal.body) {
        Some(Reply::Error(error)) => Some(error),
        Some(Reply::Result(_)) | None => None,
    };
    match refusal.status {
        404 => error.is_none_or(|error| error.code != protocol::METHOD_NOT_FOUND),
        // Not what the protocol specifies, but many servers answer like this after a restart.
        400 => error.is_some_and(|error| {
            let message = error.message.to_ascii_lowercase();
            LOST_SESSION.iter().any(|words| message.contains(words))
        }),
        _ => false,
    }
}
