//! Hands each request to its route.

use std::net::SocketAddr;
use std::sync::Arc;

use capstan_model::Caller;
use futures::stream::{self, BoxStream, StreamExt as _};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::{Method, StatusCode};
use hyper::{Request, Response};
use tokio::net::TcpListener;

use crate::transport::http::connection::connection_state::ConnectionState;
use crate::transport::http::legacy_sse::{self, LegacyStreams};
use crate::transport::http::request::argument_headers::ArgumentHeaders;
use crate::transport::http::request::cors;
use crate::transport::http::request::guard::Guard;
use crate::transport::http::request::request_body::{Accepts, SESSION};
use crate::transport::http::request::single_headers;
use crate::transport::http::response::body::{self, Body};
use crate::transport::http::response::events::{Events, Form, Source};
use crate::transport::http::response::resume::{EventId, Full, Kind, Tracks};
use crate::transport::http::sessions::{Held, Key, Sessions};
use crate::transport::http::streamable::{self, Post};
use crate::transport::http::{HttpLimits, HttpSettings};
use crate::{Gateway, Out, Revision, View};

/// What all connections share.
pub(crate) struct Face {
    gateway: Arc<Gateway>,
    guard: Guard,
    /// The guard of the address of the metrics, when they have their own.
    metrics_guard: Option<Guard>,
    limits: HttpLimits,
    sessions: Arc<Sessions>,
    older: Arc<LegacyStreams>,
    tracks: Tracks,
    repeats: ArgumentHeaders,
}

/// The other side of a connection.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) caller: Arc<Caller>,
    pub(crate) listener: Listener,
    pub(crate) state: Arc<ConnectionState>,
}

/// The listening address that accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The address for MCP clients.
    Clients,
    /// The address for metrics only.
    Metrics,
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
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        (address, metrics): (SocketAddr, Option<&(TcpListener, SocketAddr)>),
        settings: &HttpSettings,
    ) -> Self {
        Self {
            gateway,
            guard: Guard::new(address, settings),
            metrics_guard: metrics.map(|(_, address)| Guard::new(*address, settings)),
            limits: settings.limits,
            sessions: Arc::new(Sessions::new(settings.limits.sessions)),
            older: Arc::default(),
            tracks: Tracks::new(settings.limits.resume),
            repeats: ArgumentHeaders::default(),
        }
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    pub(crate) fn limits(&self) -> &HttpLimits {
        &self.limits
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    pub(crate) fn older(&self) -> &Arc<LegacyStreams> {
        &self.older
    }

    pub(crate) fn repeats(&self) -> &ArgumentHeaders {
        &self.repeats
    }

    /// Takes one request. Nothing is looked at before its host and origin.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        visitor: Visitor,
    ) -> Response<Body> {
        let (head, incoming) = request.into_parts();
        let guard = match (visitor.listener, &self.metrics_guard) {
            (Listener::Metrics, Some(guard)) => guard,
            (Listener::Metrics, None) | (Listener::Clients, _) => &self.guard,
        };
        if let Err(repeated) = single_headers::check(&head.headers) {
            return repeated.response(&head.headers);
        }
        if let Err(foreign) = guard.check(&head) {
            return body::refusal(foreign.status(), foreign);
        }
        if visitor.listener == Listener::Metrics {
            return self.metrics_page(&head);
        }
        let Some(origin) = guard.named_origin(&head) else {
            return self.route(head, incoming, visitor).await;
        };
        let mut response = if cors::is_preflight(&head) {
            cors::preflight(&head)
        } else {
            self.route(head, incoming, visitor).await
        };
        cors::admit(&mut response, origin);
        response
    }

    async fn route(&self, head: Parts, incoming: Incoming, visitor: Visitor) -> Response<Body> {
        let route = match Route::parse(head.uri.path()) {
            None => {
                let words = "there is nothing here; MCP is at `/mcp`";
                return body::refusal(StatusCode::NOT_FOUND, words);
            }
            Some(Route::Metrics) if self.metrics_guard.is_some() => {
                let words = "the metrics have an address of their own: `gateway.metrics_listen`";
                return body::refusal(StatusCode::NOT_FOUND, words);
            }
            Some(route) => route,
        };
        let Visitor { caller, state, .. } = visitor;
        if let Route::Mcp(View::One(server)) | Route::Sse(View::One(server)) = &route
            && !self.gateway.shows(server, &caller)
        {
            return body::refusal(StatusCode::NOT_FOUND, "there is no such server");
        }
        let is_stream = matches!(route, Route::Mcp(_) | Route::Sse(_));
        if is_stream && head.method == Method::GET && !self.gateway.is_ready() {
            return body::stopping(None);
        }
        match route {
            Route::Mcp(view) => match head.method {
                Method::POST => {
                    let post = Post { face: self, head: &head, state: &state };
                    streamable::post(post, incoming, (caller, view)).await
                }
                _ if streamable::says_modern(&head.headers) => body::wrong_method("POST"),
                Method::GET => self.stream(&head, &caller, &view),
                Method::DELETE => self.delete(&head, &caller, &view),
                _ => body::wrong_method("GET, POST, DELETE"),
            },
            Route::Sse(view) if head.method == Method::GET => {
                legacy_sse::open(self, &head, caller, view)
            }
            Route::Messages if head.method == Method::POST => {
                Box::pin(legacy_sse::post(self, &head, incoming, &caller)).await
            }
            Route::Messages => body::wrong_method("POST"),
            Route::Health | Route::Ready | Route::Metrics if head.method == Method::GET => {
                self.page(&route, &caller)
            }
            Route::Sse(_) | Route::Health | Route::Ready | Route::Metrics => {
                body::wrong_method("GET")
            }
        }
    }

    /// Opens the stream for what belongs to no request. The newest of a session gets it all.
    fn stream(&self, head: &Parts, caller: &Caller, view: &View) -> Response<Body> {
        if !Accepts::of(&head.headers).events() {
            return body::refusal(StatusCode::NOT_ACCEPTABLE, "the answer is `text/event-stream`");
        }
        let session = match streamable::session(self, head, caller, view) {
            Ok(session) => session,
            Err(missing) => return missing.response(None),
        };
        let Some(last) = head.headers.get("last-event-id") else { return self.stand(session) };
        let Some(id) = EventId::parse(last.as_bytes()) else {
            return body::refusal(StatusCode::BAD_REQUEST, "`Last-Event-ID` is none of ours");
        };
        match self.tracks.resume(id, session) {
            Ok(reader) => self.events(Source::Resumable(reader)),
            Err(session) if id.kind == Kind::Standing => self.stand(session),
            Err(_) => body::refusal(StatusCode::BAD_REQUEST, "what came then is no longer there"),
        }
    }

    /// A new stream for what belongs to no request.
    fn stand(&self, session: Held) -> Response<Body> {
        let inbox = Source::Inbox(session.client().open_inbox());
        self.kept(Kind::Standing, inbox, session)
    }

    /// A stream for what comes of what was posted.
    pub(crate) fn streamed(
        &self,
        first: Vec<Out>,
        rest: BoxStream<'static, Out>,
        session: Option<Held>,
    ) -> Response<Body> {
        let source = Source::Request(stream::iter(first).chain(rest).boxed());
        match session {
            Some(session) => self.kept(Kind::Call, source, session),
            None => self.events(source),
        }
    }

    /// A stream that its client can come back to, if its revision knows how.
    fn kept(&self, kind: Kind, source: Source, session: Held) -> Response<Body> {
        let revision = session.client().revision();
        if revision < Revision::V2025_03_26 {
            return body::events(Events::new(source, self.limits.keep_alive).of(Some(session)));
        }
        let reader = match self.tracks.open(kind, source, session) {
            Ok(reader) => reader,
            Err(full) => {
                let Full { source, session } = *full;
                return body::events(Events::new(source, self.limits.keep_alive).of(Some(session)));
            }
        };
        // Older clients take every event for a message.
        let primer = (revision >= Revision::V2025_11_25).then(|| reader.primer());
        let mut events = Events::new(Source::Resumable(reader), self.limits.keep_alive);
        if let Some(primer) = primer {
            events.begin(primer);
        }
        body::events(events)
    }

    /// A stream that begins at once, for a client that may be gone. It cannot be resumed: as long
    /// as nothing was said on it, a client that is gone cancels its request.
    pub(crate) fn begun(
        &self,
        form: Form,
        (first, rest): (Vec<Out>, BoxStream<'static, Out>),
        session: Option<Held>,
    ) -> Response<Body> {
        let source = Source::Request(stream::iter(first).chain(rest).boxed());
        let events = Events::new(source, self.limits.keep_alive).written_as(form);
        let events = events.of(session).probing();
        if form == Form::Events { body::events(events) } else { body::late(events) }
    }

    fn events(&self, source: Source) -> Response<Body> {
        body::events(Events::new(source, self.limits.keep_alive))
    }

    /// Ends a session.
    fn delete(&self, head: &Parts, caller: &Caller, view: &View) -> Response<Body> {
        if let Err(missing) = streamable::session(self, head, caller, view) {
            return missing.response(None);
        }
        let key = head.headers.get(&SESSION).and_then(|key| Key::parse(key.as_bytes()));
        if let Some(client) = key.and_then(|key| self.sessions.remove(key)) {
            self.leave(&client);
        }
        body::bare(StatusCode::NO_CONTENT)
    }

    /// The only page at the address of the metrics, with all servers on it.
    fn metrics_page(&self, head: &Parts) -> Response<Body> {
        match (head.uri.path(), &head.method) {
            ("/metrics", &Method::GET) => body::text(StatusCode::OK, self.gateway.metrics()),
            ("/metrics", _) => body::wrong_method("GET"),
            _ => body::refusal(StatusCode::NOT_FOUND, "there is nothing here but `/metrics`"),
        }
    }

    fn page(&self, route: &Route, caller: &Caller) -> Response<Body> {
        match route {
            Route::Ready if !self.gateway.is_ready() => {
                body::text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
            }
            Route::Ready => body::text(StatusCode::OK, "ready\n"),
            Route::Metrics => body::text(StatusCode::OK, self.gateway.metrics_for(caller)),
            Route::Health | Route::Mcp(_) | Route::Sse(_) | Route::Messages => {
                body::text(StatusCode::OK, "ok\n")
            }
        }
    }

    /// Forgets streams that nobody has come back to.
    pub(crate) fn forget_streams(&self) {
        self.tracks.sweep();
    }

    /// Ends sessions that have been idle too long.
    pub(crate) fn sweep(&self) {
        for client in self.sessions.sweep() {
            self.leave(&client);
        }
    }

    /// Ends the streams that would never end by themselves.
    pub(crate) fn end_streams(&self) {
        for client in self.sessions.clients() {
            drop(client.open_inbox());
        }
        self.tracks.give_up();
        self.older.end_streams();
    }

    /// Ends everything.
    pub(crate) fn end(&self) {
        for client in self.sessions.clients() {
            self.leave(&client);
        }
    }

    fn leave(&self, client: &Arc<crate::Client>) {
        // Whoever reads its inbox reads the end.
        drop(client.open_inbox());
        self.tracks.leave(client.number);
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
