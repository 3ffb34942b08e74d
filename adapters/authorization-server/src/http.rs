//! Requests and responses, independent of a transport.

use std::net::IpAddr;

use bytes::Bytes;
use capstan_http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION,
};
use capstan_http::{Method, StatusCode};
use serde_json::Value;

/// An endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The metadata of RFC 8414.
    Metadata,
    /// The page on which a user agrees.
    Authorize,
    /// The way back from the provider at which users sign in.
    Callback,
    /// Exchanges codes and refresh tokens.
    Token,
    /// Dynamic registration of clients, RFC 7591.
    Register,
    /// Revocation of tokens, RFC 7009.
    Revoke,
    /// Introspection of tokens, RFC 7662.
    Introspect,
    /// The public keys.
    Keys,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The text after the `?`, escaped.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The address of the peer.
    pub peer: IpAddr,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

// === impl Endpoint ===

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Self; 8] = [
        Self::Metadata,
        Self::Authorize,
        Self::Callback,
        Self::Token,
        Self::Register,
        Self::Revoke,
        Self::Introspect,
        Self::Keys,
    ];

    /// The path of the endpoint.
    pub fn path(self) -> &'static str {
        match self {
            Self::Metadata => "/.well-known/oauth-authorization-server",
            Self::Authorize => "/authorize",
            Self::Callback => "/authorize/callback",
            Self::Token => "/token",
            Self::Register => "/register",
            Self::Revoke => "/revoke",
            Self::Introspect => "/introspect",
            Self::Keys => "/.well-known/jwks.json",
        }
    }

    /// The largest body of a request, in bytes.
    pub fn max_body(self) -> usize {
        match self {
            Self::Metadata | Self::Keys | Self::Callback => 0,
            Self::Authorize => 8 * 1024,
            Self::Token | Self::Register | Self::Revoke | Self::Introspect => 16 * 1024,
        }
    }

    /// The methods that the endpoint answers.
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            Self::Metadata | Self::Keys | Self::Callback => &[Method::GET],
            Self::Authorize => &[Method::GET, Method::POST],
            Self::Token | Self::Register | Self::Revoke | Self::Introspect => &[Method::POST],
        }
    }

    /// True if web pages of any origin may read its answers: clients in a browser need that, and
    /// no answer depends on a cookie.
    pub(crate) fn is_for_scripts(self) -> bool {
        match self {
            Self::Authorize | Self::Callback => false,
            Self::Metadata
            | Self::Token
            | Self::Register
            | Self::Revoke
            | Self::Introspect
            | Self::Keys => true,
        }
    }
}

// === impl Request ===

impl Request {
    /// The value of a header that occurs once and is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }

    /// True if the body is a form.
    pub(crate) fn is_form(&self) -> bool {
        self.has_kind("application/x-www-form-urlencoded")
    }

    /// True if the body has this media type.
    pub(crate) fn has_kind(&self, expected: &str) -> bool {
        let kind = self.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let essence = kind.split_once(';').map_or(kind, |(essence, _)| essence).trim();
        essence.eq_ignore_ascii_case(expected)
    }
}

// === impl Response ===

impl Response {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// A JSON answer that is never cached.
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        let mut response = Self::new(status);
        response.body = value.to_string().into();
        response
            .with(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    /// A redirect of the browser that becomes a `GET`, so that no password is sent on.
    pub(crate) fn redirect(location: &str) -> Self {
        match HeaderValue::from_str(location) {
            Ok(location) => Self::new(StatusCode::SEE_OTHER)
                .with(LOCATION, location)
                .with(CACHE_CONTROL, HeaderValue::from_static("no-store")),
            Err(_) => Self::new(StatusCode::BAD_REQUEST),
        }
    }

    /// The answer to a preflight request.
    pub(crate) fn preflight(methods: &[Method]) -> Self {
        let methods = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let mut response = Self::new(StatusCode::NO_CONTENT)
            .with(
                ACCESS_CONTROL_ALLOW_HEADERS,
                HeaderValue::from_static("authorization, content-type, mcp-protocol-version"),
            )
            .with(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if let Ok(methods) = HeaderValue::from_str(&methods) {
            response = response.with(ACCESS_CONTROL_ALLOW_METHODS, methods);
        }
        response
    }

    /// Lets web pages of any origin read the answer.
    pub(crate) fn for_scripts(self) -> Self {
        self.with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
    }

    #[must_use]
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}
