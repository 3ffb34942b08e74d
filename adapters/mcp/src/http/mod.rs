//! Streamable HTTP: every message is its own POST, and a reply arrives as JSON or as a stream.
//!
//! Read in this order: this file sends and receives, [`streams`] reads and resumes streams,
//! [`rest`] streams the rest of a large reply, [`refusals`] reads refusals, [`mirror`] repeats
//! arguments in headers, [`trace`] adds the trace headers.

pub(crate) mod events;
mod large;
pub(crate) mod legacy_sse;
pub(crate) mod link;
mod mirror;
mod refusal;
mod refusals;
mod request;
mod rest;
mod streams;
mod trace;
pub(crate) mod web;

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use capstan_http::Method;
use capstan_http::Payload;
use capstan_http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use capstan_http::{HttpBody, HttpRequest};
use capstan_hub::Flow;
use capstan_hub::ports::{BoxFuture, Item};
use capstan_wire::{Json, Reply, compose, object, protocol};
use futures::FutureExt;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tracing::{Instrument, debug, warn};

use self::mirror::{Mirror, encode};
use self::refusals::{error_in, is_session_lost};
use crate::channel::dispatch::dispatch;
use crate::channel::pending::Recipient;
use crate::channel::requests::{ExchangeError, Requests};
use crate::channel::{Channel, Request, RequestError, Said};
use crate::fault::Fault;
use crate::http::link::{Link, Opening, Parts, Stop};
use crate::http::refusal::Refusal;
use crate::http::web::{Body, Came, Takes, WebError};
use crate::session::MayRun;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The initial capacity of a request's header map; few requests have more headers.
const ROOM: usize = 12;

/// How long to wait for a server to acknowledge a subscription before going on without it.
const ACKNOWLEDGED: Duration = Duration::from_secs(1);

/// How long to wait for a server to open its stream of unsolicited messages. Some servers open it
/// only with the first message.
const STANDING: Duration = Duration::from_millis(250);

/// A connection to a server over streamable HTTP.
pub(crate) struct HttpChannel {
    http: Arc<Http>,
    _stop: Stop,
}

struct Http {
    link: Link,
    agreed: Mutex<Agreed>,
    /// The arguments that are repeated in headers, by tool.
    mirrors: Mutex<HashMap<String, Arc<[Mirror]>>>,
    /// The tasks of subscriptions, by request id.
    started: Mutex<HashMap<u64, AbortHandle>>,
}

/// The values negotiated with the server.
#[derive(Clone, Default)]
struct Agreed {
    revision: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

// === impl HttpChannel ===

impl HttpChannel {
    /// Creates a connection to the server; nothing is sent yet.
    pub(crate) fn open(opening: Opening) -> Self {
        let Parts { link, posts, minding, stop } = Link::open(opening);
        let (agreed, mirrors, started) = (Mutex::default(), Mutex::default(), Mutex::default());
        let http = Arc::new(Http { link, agreed, mirrors, started });
        let poster = Arc::clone(&http);
        http.link.spawn(posts.send(move |line| {
            let http = Arc::clone(&poster);
            async move { http.post(line).await }
        }));
        let minded = Arc::clone(&http);
        let minding = async move { minding.mind(&minded.link, minded.goodbye()).await };
        tokio::spawn(minding.in_current_span());
        Self { http, _stop: stop }
    }
}

impl Channel for HttpChannel {
    fn requests(&self) -> &Requests {
        &self.http.link.requests
    }

    fn agree(&self, revision: &str) {
        self.http.agreed().revision = HeaderValue::from_str(revision).ok();
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, ()> {
        async move {
            let line = compose::notification(method, params);
            self.http.link.requests.out.log(&line);
            self.http.post(line).await;
            // From here on the server may send unsolicited messages.
            if method == "notifications/initialized" {
                let (asked, has_asked) = oneshot::channel();
                self.http.link.spawn(Arc::clone(&self.http).listen(asked));
                // The next message uses another HTTP connection and must not overtake this one.
                drop(timeout(STANDING, has_asked).await);
            }
        }
        .boxed()
    }

    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>> {
        let (id, method, params, http) = (request.id, request.method, request.params, &self.http);
        async move {
            // The rare case is boxed: its size would otherwise be part of every call's future.
            let exchange = pin!(async move {
                match http.exchange(id, method, params, Takes::Whole).await? {
                    None => {}
                    Some((came, rest)) => Box::pin(http.take_rest(id, came, rest)).await?,
                }
                Ok(None::<Infallible>)
            });
            http.link.requests.ask(request, exchange).await.map(Reply::from)
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        request: Request<'a>,
        may_run: MayRun,
    ) -> BoxFuture<'a, Result<Said<Box<Flow>>, RequestError>> {
        let (id, method, params, http) = (request.id, request.method, request.params, &self.http);
        let client = request.recipient.as_ref().and_then(Recipient::client).cloned();
        let limit = request.limit;
        async move {
            let exchange = pin!(async move {
                let large = http.exchange(id, method, params, Takes::Coming).await?;
                let Some((came, rest)) = large else { return Ok(None) };
                // Checked only now: meanwhile a message may have been sent to the client, and after
                // that it takes only a whole answer.
                if client.is_some_and(|back| back.wishes().flow) && !Link::is_logged() {
                    let begun = Box::pin(http.begin(id, (may_run, limit), came, rest)).await;
                    return begun.map_err(ExchangeError::from);
                }
                Box::pin(http.take_rest(id, came, rest)).await?;
                Ok(None)
            });
            http.link.requests.ask(request, exchange).await
        }
        .boxed()
    }

    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64> {
        let id = self.http.link.requests.next_id();
        let (opened, open) = oneshot::channel();
        let running = Arc::clone(&self.http).subscribe(method, params.clone(), opened);
        let handle = self.http.link.spawn(running);
        self.http.started().insert(id, handle);
        async move {
            // The next message uses another HTTP connection and must not overtake this one.
            drop(timeout(ACKNOWLEDGED, open).await);
            id
        }
        .boxed()
    }

    fn stop(&self, id: u64) {
        let handle = self.http.started().remove(&id);
        if let Some(handle) = handle {
            // A modern server detects that its stream is closed.
            handle.abort();
        }
    }

    fn sift(&self, tools: Vec<Item>) -> Vec<Item> {
        if !self.http.is_modern() {
            return tools;
        }
        let mut mirrors = HashMap::new();
        let mut good = Vec::with_capacity(tools.len());
        for tool in tools {
            match mirror::read(&tool.definition) {
                Ok(of_tool) if of_tool.is_empty() => good.push(tool),
                Ok(of_tool) => {
                    mirrors.insert(tool.name.clone(), of_tool.into());
                    good.push(tool);
                }
                Err(problem) => {
                    let tool = tool.name;
                    warn!(tool, %problem, "one of its tools cannot be called and is left out");
                }
            }
        }
        *self.http.mirrors.lock().unwrap_or_else(PoisonError::into_inner) = mirrors;
        good
    }
}

// === impl Http ===

impl Http {
    fn agreed(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_modern(&self) -> bool {
        self.agreed().revision.as_ref().is_some_and(|revision| revision == protocol::MODERN)
    }

    /// True if requests of that method are part of the session.
    fn is_in_session(&self, method: &str) -> bool {
        let outside = matches!(method, "initialize" | "server/discover") || self.is_modern();
        !outside && self.agreed().session.is_some()
    }

    /// Sends a request and delivers its reply to the pending request.
    /// With [`Takes::Coming`], returns the beginning and the rest of a large reply instead.
    async fn exchange(
        self: &Arc<Self>,
        id: u64,
        method: &str,
        params: &Json,
        takes: Takes,
    ) -> Result<Option<(Vec<Bytes>, HttpBody)>, RequestError> {
        if Link::is_logged() {
            self.link.log_payload(&request::request(id, method, params));
        }
        let write =
            || self.order(self.headers(method, params), request::request(id, method, params));
        let came = match self.link.web.receive(&write, takes).await {
            Ok(came) => came,
            Err(WebError::Refused(refusal))
                if self.is_in_session(method) && is_session_lost(&refusal) =>
            {
                let reason = "its session has ended".to_owned();
                self.link.lose(Fault::Unreachable(reason.clone()));
                return Err(RequestError::NotSent(reason));
            }
            Err(WebError::Refused(refusal)) => {
                return self.refused(id, method, refusal).map(|()| None);
            }
            Err(error) => return Err(self.link.failed(error)),
        };
        if method == "initialize" {
            self.agreed().session = came.headers.get(SESSION).cloned();
        }
        match came.body {
            Body::Json(body) => self.take_reply(id, &body).await?,
            Body::Large(came, rest) => return Ok(Some((came, rest))),
            Body::Events(events) => Box::pin(self.follow(id, events)).await?,
            Body::Nothing => {
                let problem = "a request got no answer".to_owned();
                return Err(RequestError::Refused(Fault::NotMcp(problem)));
            }
        }
        Ok(None)
    }

    fn order(&self, headers: HeaderMap, body: Payload) -> HttpRequest {
        HttpRequest {
            method: Method::POST,
            to: self.link.web.client.target().clone(),
            headers,
            body,
        }
    }

    async fn take_reply(&self, id: u64, body: &Bytes) -> Result<(), RequestError> {
        dispatch(body, &self.link.inbound, Some(id)).await;
        if !self.link.requests.pending.waits_for(id) {
            return Ok(());
        }
        let problem = || Fault::NotMcp("an answer has no reply to the request in it".to_owned());
        let error = error_in(body).ok_or_else(|| RequestError::Refused(problem()))?;
        // The server could not read the id; there is only one that it can mean.
        self.link.requests.pending.answer(id, error);
        Ok(())
    }

    /// Handles a refusal; a JSON-RPC error in its body is delivered as the reply.
    fn refused(&self, id: u64, method: &str, refusal: Refusal) -> Result<(), RequestError> {
        // The fault of a refused handshake decides which transport is tried next.
        if method != "initialize"
            && let Fault::Status { .. } = refusal.fault
            && let Some(error) = error_in(&refusal.body)
        {
            self.link.requests.pending.answer(id, error);
            return Ok(());
        }
        Err(self.link.failed(WebError::Refused(refusal)))
    }

    /// The headers of a request.
    fn headers(&self, method: &str, params: &Json) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(ROOM);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if method == "server/discover" || self.is_modern() {
            self.add_modern(&mut headers, method, params);
        } else if method != "initialize" {
            self.add_session(&mut headers);
        }
        trace::add(&mut headers, params);
        headers
    }

    fn add_session(&self, headers: &mut HeaderMap) {
        let Agreed { revision, session } = self.agreed().clone();
        headers.extend(session.map(|session| (SESSION, session)));
        headers.extend(revision.map(|revision| (VERSION, revision)));
    }

    fn add_modern(&self, headers: &mut HeaderMap, method: &str, params: &Json) {
        headers.insert(VERSION, HeaderValue::from_static(protocol::MODERN));
        headers.extend(encode(method).map(|method| (METHOD, method)));
        let key = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            task if task.starts_with("tasks/") => "taskId",
            _ => return,
        };
        let Some(name) = object::get_string(params, key) else { return };
        headers.extend(encode(&name).map(|name| (NAME, name)));
        if method == "tools/call" {
            let mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
            let of_tool = mirrors.get(&name).cloned();
            drop(mirrors);
            mirror::add(headers, of_tool.as_deref().unwrap_or_default(), params);
        }
    }

    /// Sends a message that gets no reply. A modern server gets none: it detects that a stream is
    /// closed.
    async fn post(&self, line: Vec<u8>) {
        if self.is_modern() {
            return;
        }
        let headers = self.headers("", &Json::empty_object());
        let sending = self.link.web.send(self.order(headers, line.into()));
        match timeout(self.link.limit, sending).await {
            Ok(Ok(Came { .. })) => {}
            Ok(Err(error)) => debug!(?error, "a message was not taken"),
            Err(_) => debug!("a message was not taken in time"),
        }
    }

    /// Ends the session, if there is one, so that the server can free it.
    async fn goodbye(&self) {
        if self.agreed().session.is_none() {
            return;
        }
        let mut headers = HeaderMap::new();
        self.add_session(&mut headers);
        let to = self.link.web.client.target().clone();
        let order = HttpRequest { method: Method::DELETE, to, headers, body: Payload::default() };
        // The answer does not matter: the connection is closed.
        drop(self.link.web.send(order).await);
    }
}
