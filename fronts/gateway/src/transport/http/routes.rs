//! The table of mounted routes, and the checks that every request passes before its endpoint.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use capstan_model::Caller;
use futures::future::BoxFuture;
use hyper::body::Incoming;
use hyper::http::StatusCode;
use hyper::http::request::Parts;
use hyper::{Request, Response};

use crate::transport::http::HttpLimits;
use crate::transport::http::authenticator::{Authentication, Authenticator, RemotePeer};
use crate::transport::http::connection::connection_state::ConnectionState;
use crate::transport::http::request::guard::Guard;
use crate::transport::http::request::{cors, request_body, single_headers};
use crate::transport::http::response::body::{self, Body};

/// Mounted endpoints, each with its path. The first path that matches is used.
pub struct Routes {
    mounts: Vec<(Pattern, Mount)>,
    /// The text for unknown paths.
    not_found: &'static str,
}

/// Serves the authenticated requests of a route.
pub trait Endpoint: Send + Sync {
    /// Answers one request of this caller.
    fn serve(&self, request: HttpRequest, caller: Arc<Caller>) -> BoxFuture<'_, Response<Body>>;
}

/// Serves the requests of a route that everyone may use.
pub trait PublicEndpoint: Send + Sync {
    /// Answers one request.
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>>;
}

/// A request that has passed the checks of its head.
pub struct HttpRequest {
    /// The head.
    pub head: Parts,
    /// The body, unread.
    pub body: Incoming,
    /// The part of the path that matched `{}`; empty for a path without one.
    pub segment: String,
    /// The address of the peer.
    pub peer: IpAddr,
    pub(crate) state: Arc<ConnectionState>,
}

/// The connection that a request came over.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) from: RemotePeer,
    pub(crate) state: Arc<ConnectionState>,
}

/// A listening address of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The address for MCP clients.
    Clients,
    /// The address for metrics only. Web pages cannot read it.
    Metrics,
}

/// Answers the requests of one listening address.
pub(crate) struct Router {
    pub(crate) listener: Listener,
    pub(crate) guard: Guard,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) routes: Routes,
}

/// A body that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadBody {
    /// It is larger than allowed.
    TooLarge,
    /// It broke off, did not arrive in time, or is compressed.
    Broken,
}

enum Mount {
    Public(Box<dyn PublicEndpoint>),
    /// Web pages of all origins may use it, and it answers preflight requests itself.
    Open(Box<dyn PublicEndpoint>),
    Authenticated(Box<dyn Endpoint>),
}

/// A path, or a path with `{}` in the place of one segment.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    Exact(&'static str),
    Segment { before: &'static str, after: &'static str },
}

// === impl Routes ===

impl Routes {
    /// Creates an empty table; requests for other paths get this text.
    pub fn new(not_found: &'static str) -> Self {
        Self { mounts: Vec::new(), not_found }
    }

    /// Mounts an endpoint for authenticated callers. `{}` in the path matches one segment.
    #[must_use]
    pub fn authenticated(self, path: &'static str, endpoint: impl Endpoint + 'static) -> Self {
        self.mount(path, Mount::Authenticated(Box::new(endpoint)))
    }

    /// Mounts an endpoint that everyone may use. `{}` in the path matches one segment.
    #[must_use]
    pub fn public(self, path: &'static str, endpoint: impl PublicEndpoint + 'static) -> Self {
        self.mount(path, Mount::Public(Box::new(endpoint)))
    }

    /// Mounts an endpoint that web pages of all origins may use. It must not rely on cookies without
    /// a check of its own, and answers preflight requests itself.
    #[must_use]
    pub fn open(self, path: &'static str, endpoint: impl PublicEndpoint + 'static) -> Self {
        self.mount(path, Mount::Open(Box::new(endpoint)))
    }

    fn mount(mut self, path: &'static str, mount: Mount) -> Self {
        self.mounts.push((Pattern::parse(path), mount));
        self
    }

    fn find<'a>(&self, path: &'a str) -> Option<(&Mount, &'a str)> {
        self.mounts.iter().find_map(|(pattern, mount)| Some((mount, pattern.matches(path)?)))
    }
}

// === impl Router ===

impl Router {
    /// Answers one request.
    ///
    /// Checks repeated headers, `Host` and `Origin`, preflight, route and caller.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Connection,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        if let Err(repeated) = single_headers::check(&head.headers) {
            return repeated.response(&head.headers);
        }
        let is_open = matches!(self.routes.find(head.uri.path()), Some((Mount::Open(_), _)));
        let checked = if is_open { self.guard.check_host(&head) } else { self.guard.check(&head) };
        if let Err(foreign) = checked {
            return body::refusal(foreign.status(), foreign);
        }
        if is_open {
            return self.route(head, body, connection).await;
        }
        let origin = match self.listener {
            Listener::Clients => self.guard.named_origin(&head),
            Listener::Metrics => None,
        };
        let Some(origin) = origin else { return self.route(head, body, connection).await };
        let mut response = if cors::is_preflight(&head) {
            cors::preflight(&head)
        } else {
            self.route(head, body, connection).await
        };
        cors::admit(&mut response, origin);
        response
    }

    async fn route(&self, head: Parts, body: Incoming, connection: Connection) -> Response<Body> {
        let Connection { from, state } = connection;
        let Some((mount, segment)) = self.routes.find(head.uri.path()) else {
            return body::refusal(StatusCode::NOT_FOUND, self.routes.not_found);
        };
        let segment = segment.to_owned();
        let peer = from.address;
        match mount {
            Mount::Public(endpoint) | Mount::Open(endpoint) => {
                endpoint.serve(HttpRequest { head, body, segment, peer, state }).await
            }
            Mount::Authenticated(endpoint) => {
                let authenticated = match self.authenticator.authenticate(&head, &from) {
                    Authentication::Ready(authenticated) => authenticated,
                    Authentication::Wait(authenticated) => authenticated.await,
                };
                match authenticated {
                    Ok(caller) => {
                        let request = HttpRequest { head, body, segment, peer, state };
                        endpoint.serve(request, caller).await
                    }
                    Err(refused) => refused.response(),
                }
            }
        }
    }
}

// === impl HttpRequest ===

impl HttpRequest {
    /// Reads the whole body, at most `max` bytes.
    ///
    /// # Errors
    /// If it is too large or does not arrive.
    pub async fn read_body(self, max: usize) -> Result<(Parts, Bytes), UnreadBody> {
        let limits = HttpLimits { body: max, ..HttpLimits::default() };
        match request_body::any(&self.head.headers, self.body, &limits).await {
            Ok(body) => Ok((self.head, body)),
            Err(request_body::Unread::TooLong(_)) => Err(UnreadBody::TooLarge),
            Err(_) => Err(UnreadBody::Broken),
        }
    }
}

// === impl Pattern ===

impl Pattern {
    fn parse(path: &'static str) -> Self {
        match path.split_once("{}") {
            Some((before, after)) => Self::Segment { before, after },
            None => Self::Exact(path),
        }
    }

    /// The segment of a path that matches, empty if the pattern has none; `None` for other paths.
    fn matches<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self {
            Self::Exact(exact) => (path == *exact).then_some(""),
            Self::Segment { before, after } => {
                let segment = path.strip_prefix(before)?.strip_suffix(after)?;
                let is_one = !segment.is_empty() && !segment.contains('/');
                is_one.then_some(segment)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_its_path_and_one_segment_only() {
        for (pattern, path, expected) in [
            ("/mcp", "/mcp", Some("")),
            ("/mcp", "/mcp/", None),
            ("/mcp", "/MCP", None),
            ("/mcp", "//mcp", None),
            ("/mcp", "/", None),
            ("/servers/{}/mcp", "/servers/files/mcp", Some("files")),
            ("/servers/{}/mcp", "/servers/%66iles/mcp", Some("%66iles")),
            ("/servers/{}/mcp", "/servers/files/mcp/x", None),
            ("/servers/{}/mcp", "/servers/a/b/mcp", None),
            ("/servers/{}/mcp", "/servers//mcp", None),
            ("/servers/{}/mcp", "/servers/mcp", None),
            ("/servers/{}/mcp", "/servers/files/sse", None),
        ] {
            assert_eq!(Pattern::parse(pattern).matches(path), expected, "{path}");
        }
    }
}
