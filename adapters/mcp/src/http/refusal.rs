//! HTTP answers that refuse a request: status, message, JSON-RPC error, lost session.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use capstan_http::header::{DATE, HeaderMap, RETRY_AFTER};
use capstan_model::rpc_code;
use capstan_wire::{Message, Reply};
use jiff::fmt::rfc2822;

use crate::fault::Fault;

/// The status reported for every redirect that is not followed.
const REDIRECTED: u16 = 308;

/// The status of a request that the login does not suffice for.
const FORBIDDEN: u16 = 403;

/// Messages of servers that do not know a session, besides the status. A message that only mentions
/// some session does not match: it may come from a tool.
const LOST_SESSION: [&str; 4] =
    ["no valid session id", "invalid session id", "missing session id", "session not found"];

/// An answer that refuses the request.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) fault: Fault,
    /// The body, as far as it was read.
    pub(crate) body: Bytes,
}

// === impl Refusal ===

impl Refusal {
    /// A redirect that is not followed.
    pub(crate) fn redirected(fault: Fault) -> Self {
        Self { status: REDIRECTED, fault, body: Bytes::new() }
    }

    /// A refusal for lack of scopes.
    pub(crate) fn without_scopes(fault: Fault) -> Self {
        Self { status: FORBIDDEN, fault, body: Bytes::new() }
    }

    /// True if the server no longer knows the session.
    pub(crate) fn is_session_lost(&self) -> bool {
        let error = match error_in(&self.body) {
            Some(Reply::Error(error)) => Some(error),
            Some(Reply::Result(_)) | None => None,
        };
        match self.status {
            404 => error.is_none_or(|error| error.code != rpc_code::METHOD_NOT_FOUND),
            // Not what the protocol specifies, but many servers answer like this after a restart.
            400 => error.is_some_and(|error| {
                let message = error.message.to_ascii_lowercase();
                LOST_SESSION.iter().any(|words| message.contains(words))
            }),
            _ => false,
        }
    }
}

impl fmt::Debug for Refusal {
    /// Omits the body, which may repeat what was sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, fault, body: _ } = self;
        f.debug_struct("Refusal").field("status", status).field("fault", fault).finish()
    }
}

/// The JSON-RPC error in a body.
pub(crate) fn error_in(body: &Bytes) -> Option<Reply> {
    match Message::parse(body) {
        Ok(Message::Reply { reply: error @ Reply::Error(_), .. }) => Some(error),
        Ok(_) | Err(_) => None,
    }
}

/// Extracts the message from the JSON body of a refusal; servers use several members for it.
pub(crate) fn message(body: &[u8]) -> Option<String> {
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    let places = ["/error/message", "/error_description", "/message", "/error", "/detail"];
    places.iter().find_map(|place| json.pointer(place)?.as_str()).map(ToOwned::to_owned)
}

/// The wait that the server requests: seconds, or a date relative to its own `Date` header.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = headers.get(DATE)?.to_str().ok()?;
    let (then, now) = (rfc2822::parse(text).ok()?, rfc2822::parse(now).ok()?);
    Duration::try_from(then.timestamp().duration_since(now.timestamp())).ok()
}

#[cfg(test)]
mod tests {
    use capstan_http::header::HeaderValue;

    use super::*;

    #[test]
    fn a_wait_is_read_from_seconds_and_from_dates() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let cases = [
            ("30", None, Some(30)),
            (" 0 ", None, Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(date), Some(30)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", Some(date), None),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("-1", Some(date), None),
            ("soon", Some(date), None),
            ("", None, None),
        ];
        for (value, now, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            if let Some(now) = now {
                headers.insert(DATE, HeaderValue::from_static(now));
            }
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{value:?}");
        }
    }
}
