//! CORS headers for pages that the operator allows to call the gateway.
//!
//! This grants nothing that the guard refuses; it only informs browsers.

use hyper::Response;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, VARY,
};
use hyper::http::request::Parts;
use hyper::http::{Method, StatusCode};

use crate::transport::http::response::body::{self, Body};

/// The methods of all routes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Response headers that a page may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate");

/// Request headers that a page may send if its browser does not name them.
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, \
     Mcp-Name, Mcp-Session-Id",
);

/// Cache time for browsers, in seconds.
const AGE: HeaderValue = HeaderValue::from_static("600");

/// True for a CORS preflight request.
pub(crate) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight request of an allowed page.
pub(crate) fn preflight(head: &Parts) -> Response<Body> {
    let mut response = body::bare(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    // Argument headers can have any name, so no list could be complete.
    let wanted = head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.unwrap_or(HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, AGE);
    response
}

/// Allows a page of this origin to read the response.
pub(crate) fn admit(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}
