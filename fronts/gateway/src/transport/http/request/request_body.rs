//! Reads the body of a request, and the headers that describe it and the accepted answer.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use capstan_wire::Json;
use futures::poll;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::StatusCode;
use tokio::time;

use crate::protocol::messages::check_depth;
use crate::transport::http::HttpLimits;

/// Initial buffer for a body of unknown size, in bytes.
const ROOM: usize = 64 * 1024;

/// `Mcp-Session-Id`.
pub(crate) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// `MCP-Protocol-Version`.
pub(crate) static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The `Accept` header of most clients.
const BOTH: &[u8] = b"application/json, text/event-stream";

/// The reason why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    #[error("the body must be `application/json`")]
    Kind,
    #[error("the body must not be compressed: `Content-Encoding` is not supported")]
    Packed,
    #[error("the body has more than {0} bytes; `gateway.limits.max_body` sets the limit")]
    TooLong(usize),
    #[error("the body did not arrive in time")]
    Late,
    #[error("the body broke off")]
    Broken,
}

/// The media types that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    Both,
    Json,
    Events,
    Neither,
}

/// Reads the complete body; without a copy if it arrives in one piece.
pub(crate) async fn body(
    headers: &HeaderMap,
    body: Incoming,
    limits: &HttpLimits,
) -> Result<Bytes, Unread> {
    // A body without a content type is read only to report what is wrong; it is never executed.
    let has_kind = headers.contains_key(CONTENT_TYPE);
    if has_kind && !is_json(headers) {
        return Err(Unread::Kind);
    }
    let text = any(headers, body, limits).await?;
    let is_json = || Json::parse(text.clone()).is_ok() && check_depth(&text).is_ok();
    if !has_kind && is_json() { Err(Unread::Kind) } else { Ok(text) }
}

/// Reads the complete body, whatever it contains.
pub(crate) async fn any(
    headers: &HeaderMap,
    body: Incoming,
    limits: &HttpLimits,
) -> Result<Bytes, Unread> {
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Err(Unread::Packed);
    }
    if body.size_hint().lower() > u64::try_from(limits.body).unwrap_or(u64::MAX) {
        return Err(Unread::TooLong(limits.body));
    }
    let mut read = pin!(read(body, limits.body));
    // Most bodies arrive with their head and need no timer.
    match poll!(read.as_mut()) {
        Poll::Ready(read) => read,
        Poll::Pending => time::timeout(limits.body_wait, read).await.unwrap_or(Err(Unread::Late)),
    }
}

async fn read(mut body: Incoming, max: usize) -> Result<Bytes, Unread> {
    let first = piece(&mut body).await?.unwrap_or_default();
    if first.len() > max {
        return Err(Unread::TooLong(max));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = piece(&mut body).await? else { return Ok(first) };
    let expected = first.len().saturating_add(second.len());
    // A declared length is within the limit, and unwritten memory costs nothing.
    let hint = body.size_hint().exact().and_then(|rest| usize::try_from(rest).ok()).unwrap_or(ROOM);
    let mut whole = BytesMut::with_capacity(expected.saturating_add(hint).min(max));
    whole.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(piece_) = next {
        if whole.len().saturating_add(piece_.len()) > max {
            return Err(Unread::TooLong(max));
        }
        whole.extend_from_slice(&piece_);
        drop(piece_);
        next = piece(&mut body).await?;
    }
    Ok(whole.freeze())
}

/// The next non-empty piece of a body.
async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, Unread> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| Unread::Broken)?;
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return false };
    // A comma makes it a list, of which another parser might not take the first.
    let is = |kind: &str| essence(kind).eq_ignore_ascii_case(JSON) && !kind.contains(',');
    kind == JSON || kind.to_str().is_ok_and(is)
}

/// A media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split_once(';').map_or(kind, |(essence, _)| essence).trim()
}

// === impl Unread ===

impl Unread {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Kind | Self::Packed => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

// === impl Accepts ===

impl Accepts {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        if values.peek().is_none_or(|value| value.as_bytes() == BOTH) {
            return Self::Both;
        }
        let (mut json, mut events) = (false, false);
        let kinds = values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
        for kind in kinds.filter(|kind| !is_refused(kind)).map(essence) {
            let is = |other: &str| kind.eq_ignore_ascii_case(other);
            json |= is(JSON) || is("application/*") || is("*/*");
            events |= is(EVENTS) || is("text/*") || is("*/*");
        }
        match (json, events) {
            (true, true) => Self::Both,
            (true, false) => Self::Json,
            (false, true) => Self::Events,
            (false, false) => Self::Neither,
        }
    }

    pub(crate) fn events(self) -> bool {
        matches!(self, Self::Both | Self::Events)
    }
}

/// True if the media type has weight 0, which refuses it.
fn is_refused(kind: &str) -> bool {
    let weight = kind.split(';').skip(1).find_map(|part| part.trim().strip_prefix("q="));
    weight.is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_accepts() {
        let cases = [
            ("application/json, text/event-stream", Accepts::Both),
            ("text/event-stream;q=0.9,Application/JSON", Accepts::Both),
            ("*/*", Accepts::Both),
            ("application/*", Accepts::Json),
            ("application/json", Accepts::Json),
            ("text/event-stream", Accepts::Events),
            ("application/json, text/event-stream;q=0", Accepts::Json),
            ("text/html", Accepts::Neither),
            ("", Accepts::Neither),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, value.parse().unwrap());
            assert_eq!(Accepts::of(&headers), expected, "{value}");
        }
        assert_eq!(Accepts::of(&HeaderMap::new()), Accepts::Both);
    }

    #[test]
    fn only_json_is_json() {
        let cases = [
            ("application/json", true),
            ("Application/Json; charset=utf-8", true),
            ("application/jsonp", false),
            ("application/json, text/plain", false),
            ("application/json; charset=utf-8, text/plain", false),
            ("text/plain", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), expected, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
