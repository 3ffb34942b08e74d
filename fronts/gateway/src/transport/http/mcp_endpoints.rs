//! The MCP endpoints: state that all connections share, and the streams to clients.

use std::sync::Arc;

use capstan_model::Caller;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use futures::stream::{self, BoxStream, StreamExt as _};
use hyper::Response;
use hyper::http::request::Parts;
use hyper::http::{Method, StatusCode};

use crate::transport::http::HttpLimits;
use crate::transport::http::legacy_sse::{self, LegacyStreams};
use crate::transport::http::request::request_body::{Accepts, SESSION};
use crate::transport::http::response::body::{self, Body};
use crate::transport::http::response::events::{Events, Form, Source};
use crate::transport::http::response::resume::{EventId, Full, Kind, Tracks};
use crate::transport::http::routes::{Endpoint, HttpRequest, Routes};
use crate::transport::http::sessions::{Key, SessionGuard, Sessions};
use crate::transport::http::streamable::{self, Post};
use crate::{Gateway, Out, Revision, View};

/// The answer for a path without an endpoint.
pub const NOT_FOUND: &str = "not found; MCP is at `/mcp`";

/// The MCP endpoints of a gateway.
pub struct McpEndpoints {
    gateway: Arc<Gateway>,
    limits: HttpLimits,
    sessions: Arc<Sessions>,
    legacy_streams: Arc<LegacyStreams>,
    tracks: Tracks,
}

/// Streamable HTTP.
struct Streamable(Arc<McpEndpoints>);

/// The stream of HTTP+SSE.
struct LegacyStream(Arc<McpEndpoints>);

/// The path to which a client of HTTP+SSE posts its messages.
struct LegacyMessages(Arc<McpEndpoints>);

// === impl McpEndpoints ===

impl McpEndpoints {
    /// Creates the endpoints of a gateway, without clients.
    pub fn new(gateway: &Arc<Gateway>, limits: HttpLimits) -> Arc<Self> {
        Arc::new(Self {
            gateway: Arc::clone(gateway),
            limits,
            sessions: Arc::new(Sessions::new(limits.sessions)),
            legacy_streams: Arc::default(),
            tracks: Tracks::new(limits.resume),
        })
    }

    /// Mounts Streamable HTTP and HTTP+SSE, for all servers and for each one.
    pub fn mount(self: &Arc<Self>, routes: Routes) -> Routes {
        let streamable = || Streamable(Arc::clone(self));
        let stream = || LegacyStream(Arc::clone(self));
        routes
            .authenticated("/mcp", streamable())
            .authenticated("/servers/{}/mcp", streamable())
            .authenticated("/sse", stream())
            .authenticated("/servers/{}/sse", stream())
            .authenticated("/messages", LegacyMessages(Arc::clone(self)))
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

    pub(crate) fn legacy_streams(&self) -> &Arc<LegacyStreams> {
        &self.legacy_streams
    }

    /// The view of a request's path, or the reason why its caller sees no servers there.
    fn view(&self, request: &HttpRequest, caller: &Caller) -> Result<View, &'static str> {
        if request.segment.is_empty() {
            return Ok(View::All);
        }
        match request.segment.parse() {
            Ok(server) if self.gateway.shows(&server, caller) => Ok(View::One(server)),
            Ok(_) => Err("there is no such server"),
            Err(_) => Err(NOT_FOUND),
        }
    }

    /// True if the request would open a stream while the gateway shuts down.
    fn is_late_stream(&self, head: &Parts) -> bool {
        head.method == Method::GET && !self.gateway.is_ready()
    }

    /// Opens the stream for messages that belong to no request. It replaces the session's last one.
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
            return body::refusal(StatusCode::BAD_REQUEST, "`Last-Event-ID` is unknown");
        };
        match self.tracks.resume(id, session) {
            Ok(reader) => self.events(Source::Resumable(reader)),
            Err(session) if id.kind == Kind::Standing => self.stand(session),
            Err(_) => body::refusal(
                StatusCode::BAD_REQUEST,
                "those events have expired; send the request again",
            ),
        }
    }

    /// Opens a new stream for messages that belong to no request.
    fn stand(&self, session: SessionGuard) -> Response<Body> {
        let inbox = Source::Inbox(session.client().open_inbox());
        // From here on the client can be asked outside of its requests.
        self.gateway().client_initialized(session.client());
        self.kept(Kind::Standing, inbox, session)
    }

    /// Opens a stream for the output of posted requests.
    pub(crate) fn streamed(
        &self,
        first: Vec<Out>,
        rest: BoxStream<'static, Out>,
        session: Option<SessionGuard>,
    ) -> Response<Body> {
        let source = Source::Request(stream::iter(first).chain(rest).boxed());
        match session {
            Some(session) => self.kept(Kind::Call, source, session),
            None => self.events(source),
        }
    }

    /// Opens a stream that the client can resume, if its revision allows it.
    fn kept(&self, kind: Kind, source: Source, session: SessionGuard) -> Response<Body> {
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
        // Older clients treat every event as a message.
        let primer = (revision >= Revision::V2025_11_25).then(|| reader.primer());
        let mut events = Events::new(Source::Resumable(reader), self.limits.keep_alive);
        if let Some(primer) = primer {
            events.begin(primer);
        }
        body::events(events)
    }

    /// Starts a response at once, to probe a client that may be gone.
    ///
    /// It cannot be resumed: the request of a client that is gone is cancelled.
    pub(crate) fn begun(
        &self,
        form: Form,
        first: Vec<Out>,
        rest: BoxStream<'static, Out>,
        session: Option<SessionGuard>,
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

    /// Drops broken streams whose client has not returned in time.
    pub(crate) fn forget_streams(&self) {
        self.tracks.sweep();
    }

    /// Ends sessions that have been idle for too long.
    pub(crate) fn sweep(&self) {
        for client in self.sessions.sweep() {
            self.leave(&client);
        }
    }

    /// Ends the streams that do not end by themselves.
    pub(crate) fn end_streams(&self) {
        for client in self.sessions.clients() {
            drop(client.open_inbox());
        }
        self.tracks.give_up();
        self.legacy_streams.end_streams();
    }

    /// Ends all sessions.
    pub(crate) fn end(&self) {
        for client in self.sessions.clients() {
            self.leave(&client);
        }
    }

    fn leave(&self, client: &Arc<crate::Client>) {
        // Closes the previous reader of the inbox.
        drop(client.open_inbox());
        self.tracks.leave(client.number);
        self.gateway.leave(client);
    }
}

// === impl Streamable ===

impl Endpoint for Streamable {
    fn serve(&self, request: HttpRequest, caller: Arc<Caller>) -> BoxFuture<'_, Response<Body>> {
        let mcp = &*self.0;
        async move {
            let view = match mcp.view(&request, &caller) {
                Ok(view) => view,
                Err(words) => return body::refusal(StatusCode::NOT_FOUND, words),
            };
            let HttpRequest { head, body, state, .. } = request;
            if mcp.is_late_stream(&head) {
                return body::stopping(None);
            }
            match head.method {
                Method::POST => {
                    let post = Post { mcp, head: &head, state: &state };
                    streamable::post(post, body, caller, view).await
                }
                _ if streamable::says_modern(&head.headers) => body::wrong_method("POST"),
                Method::GET => mcp.stream(&head, &caller, &view),
                Method::DELETE => mcp.delete(&head, &caller, &view),
                _ => body::wrong_method("GET, POST, DELETE"),
            }
        }
        .boxed()
    }
}

// === impl LegacyStream ===

impl Endpoint for LegacyStream {
    fn serve(&self, request: HttpRequest, caller: Arc<Caller>) -> BoxFuture<'_, Response<Body>> {
        let mcp = &*self.0;
        let response = match mcp.view(&request, &caller) {
            Err(words) => body::refusal(StatusCode::NOT_FOUND, words),
            Ok(_) if mcp.is_late_stream(&request.head) => body::stopping(None),
            Ok(view) if request.head.method == Method::GET => {
                legacy_sse::open(mcp, &request.head, caller, view)
            }
            Ok(_) => body::wrong_method("GET"),
        };
        ready(response).boxed()
    }
}

// === impl LegacyMessages ===

impl Endpoint for LegacyMessages {
    fn serve(&self, request: HttpRequest, caller: Arc<Caller>) -> BoxFuture<'_, Response<Body>> {
        let HttpRequest { head, body, .. } = request;
        async move {
            if head.method != Method::POST {
                return body::wrong_method("POST");
            }
            legacy_sse::post(&self.0, &head, body, &caller).await
        }
        .boxed()
    }
}
