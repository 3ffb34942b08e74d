//! Hands each request to its route.

use std::net::SocketAddr;
use std::sync::Arc;

use capstan_model::{Caller, Front};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::{Method, StatusCode};
use hyper::{Request, Response};

use super::body::{self, Body};
use super::cors;
use super::events::{Events, Source};
use super::guard::Guard;
use super::older::{self, OlderClients};
use super::post;
use super::repeats::Repeats;
use super::sessions::{Key, Sessions};
use super::take::{Accepts, SESSION};
use super::{HttpLimits, HttpSettings};
use crate::{Gateway, View};

/// What all connections share.
pub(super) struct Face {
    gateway: Arc<Gateway>,
    guard: Guard,
    limits: HttpLimits,
    sessions: Arc<Sessions>,
    older: Arc<OlderClients>,
    repeats: Repeats,
    /// Everybody, where callers are not asked who they are.
    anonymous: Arc<Caller>,
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    /// Streamable HTTP.
    Mcp(View),
    /// The stream of HTTP+SSE.
    Sse(View),
    /// The page to which a client of HTTP+SSE posts.
    Messages,
    Health,
    Ready,
    Metrics,
}

// === impl Face ===

impl Face {
    pub(super) fn new(gateway: Arc<Gateway>, address: SocketAddr, settings: &HttpSettings) -> Self {
        let anonymous = Caller {
            subject: "anonymous".to_owned(),
            roles: Vec::new(),
            caller_id: None,
            front: Front::Gateway,
        };
        Self {
            gateway,
            guard: Guard::new(address, settings),
            limits: settings.limits,
            sessions: Arc::new(Sessions::new(settings.limits.sessions)),
            older: Arc::default(),
            repeats: Repeats::default(),
            anonymous: Arc::new(anonymous),
        }
    }

    pub(super) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    pub(super) fn limits(&self) -> &HttpLimits {
        &self.limits
    }

    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    pub(super) fn older(&self) -> &Arc<OlderClients> {
        &self.older
    }

    pub(super) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    /// Takes one request. Nothing is looked at before its host and origin.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, incoming) = request.into_parts();
        if let Err(foreign) = self.guard.check(&head) {
            return body::refusal(StatusCode::FORBIDDEN, foreign);
        }
        let Some(origin) = self.guard.named_origin(&head) else {
            return self.route(head, incoming).await;
        };
        let mut response = if cors::is_preflight(&head) {
            cors::preflight(&head)
        } else {
            self.route(head, incoming).await
        };
        cors::admit(&mut response, origin);
        response
    }

    async fn route(&self, head: Parts, incoming: Incoming) -> Response<Body> {
        let Some(route) = Route::parse(head.uri.path()) else {
            return body::bare(StatusCode::NOT_FOUND);
        };
        if let Route::Mcp(View::One(server)) | Route::Sse(View::One(server)) = &route
            && !self.gateway.knows(server)
        {
            return body::refusal(StatusCode::NOT_FOUND, "there is no such server");
        }
        let caller = self.caller(&head);
        match route {
            Route::Mcp(view) => match head.method {
                Method::POST => post::post(self, &head, incoming, caller, view).await,
                _ if post::says_modern(&head.headers) => body::wrong_method("POST"),
                Method::GET => self.stream(&head, &caller, &view),
                Method::DELETE => self.delete(&head, &caller, &view),
                _ => body::wrong_method("GET, POST, DELETE"),
            },
            Route::Sse(view) if head.method == Method::GET => {
                older::open(self, &head, caller, view)
            }
            Route::Messages if head.method == Method::POST => {
                Box::pin(older::post(self, &head, incoming, &caller)).await
            }
            Route::Messages => body::wrong_method("POST"),
            Route::Health | Route::Ready | Route::Metrics if head.method == Method::GET => {
                self.page(&route)
            }
            Route::Sse(_) | Route::Health | Route::Ready | Route::Metrics => {
                body::wrong_method("GET")
            }
        }
    }

    /// Who calls: the one place where a caller could be asked, and turned away.
    fn caller(&self, _head: &Parts) -> Arc<Caller> {
        Arc::clone(&self.anonymous)
    }

    /// Opens the stream for what belongs to no request. The newest of a session gets it all.
    fn stream(&self, head: &Parts, caller: &Caller, view: &View) -> Response<Body> {
        if !Accepts::of(&head.headers).events() {
            return body::refusal(StatusCode::NOT_ACCEPTABLE, "the answer is `text/event-stream`");
        }
        match post::session(self, head, caller, view) {
            Ok(session) => {
                let inbox = session.client().open_inbox();
                let events = Events::new(Source::Inbox(inbox), self.limits.keep_alive);
                body::events(events.of(Some(session)))
            }
            Err(missing) => missing.response(None),
        }
    }

    /// Ends a session.
    fn delete(&self, head: &Parts, caller: &Caller, view: &View) -> Response<Body> {
        if let Err(missing) = post::session(self, head, caller, view) {
            return missing.response(None);
        }
        let key = head.headers.get(&SESSION).and_then(|key| Key::parse(key.as_bytes()));
        if let Some(client) = key.and_then(|key| self.sessions.remove(key)) {
            self.leave(&client);
        }
        body::bare(StatusCode::NO_CONTENT)
    }

    fn page(&self, route: &Route) -> Response<Body> {
        match route {
            Route::Ready if !self.gateway.is_ready() => {
                body::text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
            }
            Route::Ready => body::text(StatusCode::OK, "ready\n"),
            Route::Metrics => body::text(StatusCode::OK, self.gateway.metrics()),
            Route::Health | Route::Mcp(_) | Route::Sse(_) | Route::Messages => {
                body::text(StatusCode::OK, "ok\n")
            }
        }
    }

    /// Ends sessions that have been idle too long.
    pub(super) fn sweep(&self) {
        for client in self.sessions.sweep() {
            self.leave(&client);
        }
    }

    /// Ends the streams that would never end by themselves.
    pub(super) fn end_streams(&self) {
        for client in self.sessions.clients() {
            drop(client.open_inbox());
        }
        self.older.end_streams();
    }

    /// Ends everything.
    pub(super) fn end(&self) {
        for client in self.sessions.clients() {
            self.leave(&client);
        }
    }

    fn leave(&self, client: &Arc<crate::Client>) {
        // Whoever reads its inbox reads the end.
        drop(client.open_inbox());
        self.gateway.leave(client);
    }
}

// === impl Route ===

impl Route {
    fn parse(path: &str) -> Option<Self> {
        match path {
            "/mcp" => Some(Self::Mcp(View::All)),
            "/sse" => Some(Self::Sse(View::All)),
            "/messages" => Some(Self::Messages),
            "/health" => Some(Self::Health),
            "/ready" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            _ => {
                let (name, page) = path.strip_prefix("/servers/")?.split_once('/')?;
                let view = View::One(name.parse().ok()?);
                match page {
                    "mcp" => Some(Self::Mcp(view)),
                    "sse" => Some(Self::Sse(view)),
                    _ => None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_one_route_and_others_have_none() {
        let files = || View::One("files".parse().unwrap());
        let cases = [
            ("/mcp", Some(Route::Mcp(View::All))),
            ("/servers/files/mcp", Some(Route::Mcp(files()))),
            ("/servers/files/sse", Some(Route::Sse(files()))),
            ("/sse", Some(Route::Sse(View::All))),
            ("/messages", Some(Route::Messages)),
            ("/health", Some(Route::Health)),
            ("/ready", Some(Route::Ready)),
            ("/metrics", Some(Route::Metrics)),
            ("/", None),
            ("/mcp/", None),
            ("/MCP", None),
            ("//mcp", None),
            ("/servers/mcp", None),
            ("/servers//mcp", None),
            ("/servers/Files/mcp", None),
            ("/servers/%66iles/mcp", None),
            ("/servers/files/mcp/x", None),
            ("/servers/../mcp", None),
        ];
        for (path, expected) in cases {
            assert_eq!(Route::parse(path), expected, "{path}");
        }
    }
}
