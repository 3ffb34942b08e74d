//! Refuses requests that repeat a header that may occur only once.
//!
//! With two values, a proxy in front of the gateway may have used the other one.

use capstan_model::rpc_code::{HEADER_MISMATCH, INVALID_REQUEST};
use capstan_wire::protocol::MODERN;
use hyper::Response;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::StatusCode;

use crate::Answer;
use crate::transport::http::request::header_check::{METHOD, NAME};
use crate::transport::http::request::request_body::{SESSION, VERSION};
use crate::transport::http::response::body::{self, Body};

static CALLER: HeaderName = HeaderName::from_static("x-caller-id");
static LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A repeated header, in its usual spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header `{0}` is given more than once; send it once")]
pub(crate) struct Repeated(&'static str);

/// Refuses a request that repeats such a header, even with equal values.
///
/// `Content-Length` is checked in `head_scan`: hyper merges equal values before they get here.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Repeated> {
    // `len` counts values, `keys_len` counts names.
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    let single: [(&HeaderName, &str); 10] = [
        (&HOST, "Host"),
        (&VERSION, "MCP-Protocol-Version"),
        (&METHOD, "Mcp-Method"),
        (&NAME, "Mcp-Name"),
        (&SESSION, "Mcp-Session-Id"),
        (&AUTHORIZATION, "Authorization"),
        (&CONTENT_TYPE, "Content-Type"),
        (&ORIGIN, "Origin"),
        (&LAST_EVENT, "Last-Event-ID"),
        (&CALLER, "X-Caller-Id"),
    ];
    let is_repeated = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
    match single.iter().find(|(name, _)| is_repeated(name)) {
        Some((_, written)) => Err(Repeated(written)),
        // Headers that repeat the arguments of a call.
        None if headers.keys().any(|name| is_argument(name) && is_repeated(name)) => {
            Err(Repeated("Mcp-Param-*"))
        }
        None => Ok(()),
    }
}

fn is_argument(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-param-")
}

// === impl Repeated ===

impl Repeated {
    /// The response, with the error code of the request's revision.
    pub(crate) fn response(self, headers: &HeaderMap) -> Response<Body> {
        let is_modern = headers.get_all(&VERSION).iter().any(|version| version == MODERN);
        let is_mirrored = self.0.to_ascii_lowercase().starts_with("mcp-");
        let code = if is_modern && is_mirrored { HEADER_MISMATCH } else { INVALID_REQUEST };
        body::json(StatusCode::BAD_REQUEST, Answer::error(None, code, &self.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_all(names: &[&'static str], refused: Option<&'static str>) {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(HeaderName::from_static(name), "x".parse().unwrap());
        }
        assert_eq!(check(&headers).err(), refused.map(Repeated), "{names:?}");
    }

    /// Holes 6.
    #[test]
    fn a_header_with_one_value_is_refused_when_it_has_two_that_are_equal() {
        for (name, written) in [
            ("host", "Host"),
            ("mcp-protocol-version", "MCP-Protocol-Version"),
            ("mcp-method", "Mcp-Method"),
            ("mcp-name", "Mcp-Name"),
            ("mcp-session-id", "Mcp-Session-Id"),
            ("authorization", "Authorization"),
            ("content-type", "Content-Type"),
            ("origin", "Origin"),
            ("last-event-id", "Last-Event-ID"),
            ("x-caller-id", "X-Caller-Id"),
            ("mcp-param-place", "Mcp-Param-*"),
        ] {
            check_all(&["accept", name, "x-other"], None);
            check_all(&[name, "x-other", name], Some(written));
            check_all(&["accept", "accept", name, name, name], Some(written));
        }
    }

    #[test]
    fn headers_that_are_lists_may_be_given_again() {
        for name in ["accept", "tracestate", "baggage", "x-forwarded-for", "cookie"] {
            check_all(&["host", name, name], None);
        }
        check_all(&[], None);
    }
}
