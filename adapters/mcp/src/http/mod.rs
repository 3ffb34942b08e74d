//! Streamable HTTP: every message is its own POST, and a reply arrives as JSON or as a stream.
//!
//! Read in this order: this file sends and receives, [`era`] has the differences between the eras,
//! [`streams`] reads and resumes streams, [`large_reply`] streams large replies, [`refusal`] reads
//! refusals, [`argument_headers`] repeats arguments in headers, [`trace`] adds the trace headers.
//! [`legacy_sse`] is the older transport; [`base`] and [`web`] serve both.

mod argument_headers;
pub(crate) mod base;
mod era;
pub(crate) mod events;
mod large_reply;
pub(crate) mod legacy_sse;
mod refusal;
mod request;
mod streams;
mod trace;
pub(crate) mod web;

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use capstan_http::HttpRequest;
use capstan_http::Method;
use capstan_http::Payload;
use capstan_http::header::HeaderMap;
use capstan_hub::Flow;
use capstan_hub::ports::{BoxFuture, Item};
use capstan_wire::{Json, Reply, compose};
use futures::FutureExt;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tracing::{Instrument, debug};

use self::era::HttpEra;
use self::large_reply::LargeBody;
use self::refusal::{Refusal, error_in};
use crate::channel::dispatch::dispatch;
use crate::channel::pending::Recipient;
use crate::channel::requests::{ExchangeError, Requests};
use crate::channel::{Channel, Request, RequestError, Response, Sent};
use crate::fault::Fault;
use crate::http::base::{HttpBase, Opening, Parts, Stop};
use crate::http::web::{Body, BodyMode, WebError, WebResponse};
use crate::session::MayRun;
use crate::session::era::Era;

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
    base: HttpBase,
    era: HttpEra,
    /// The tasks of subscriptions, by request id.
    subscriptions: Mutex<HashMap<u64, AbortHandle>>,
}

// === impl HttpChannel ===

impl HttpChannel {
    /// Creates a connection to the server; nothing is sent yet.
    pub(crate) fn open(opening: Opening) -> Self {
        let Parts { base, posts, shutdown, stop } = HttpBase::open(opening);
        let (era, subscriptions) = (HttpEra::default(), Mutex::default());
        let http = Arc::new(Http { base, era, subscriptions });
        let poster = Arc::clone(&http);
        http.base.spawn(posts.send(move |line| {
            let http = Arc::clone(&poster);
            async move {
                let _: Sent = http.post(line).await;
            }
        }));
        let ending = Arc::clone(&http);
        let shutdown = async move { shutdown.run(&ending.base, ending.goodbye()).await };
        tokio::spawn(shutdown.in_current_span());
        Self { http, _stop: stop }
    }
}

impl Channel for HttpChannel {
    fn requests(&self) -> &Requests {
        &self.http.base.requests
    }

    fn agree(&self, era: Era) {
        self.http.era.choose(era);
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, Sent> {
        async move {
            let line = compose::notification(method, params);
            self.http.base.requests.out.log(&line);
            let sent = self.http.post(line).await;
            // From here on the server may send unsolicited messages.
            if method == "notifications/initialized" {
                let (asked, has_asked) = oneshot::channel();
                self.http.base.spawn(Arc::clone(&self.http).listen(asked));
                // The next message uses another HTTP connection and must not overtake this one.
                drop(timeout(STANDING, has_asked).await);
            }
            sent
        }
        .boxed()
    }

    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>> {
        let (id, method, params, http) = (request.id, request.method, request.params, &self.http);
        async move {
            // The rare case is boxed: its size would otherwise be part of every call's future.
            let exchange = pin!(async move {
                match http.exchange(id, method, params, BodyMode::Whole).await? {
                    None => {}
                    Some(large) => Box::pin(http.take_large_reply(id, large)).await?,
                }
                Ok(None::<Infallible>)
            });
            http.base.requests.ask(request, exchange).await.map(Reply::from)
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        request: Request<'a>,
        may_run: MayRun,
    ) -> BoxFuture<'a, Result<Response<Box<Flow>>, RequestError>> {
        let (id, method, params, http) = (request.id, request.method, request.params, &self.http);
        let client = request.recipient.as_ref().and_then(Recipient::client).cloned();
        let limit = request.limit;
        async move {
            let exchange = pin!(async move {
                let large = http.exchange(id, method, params, BodyMode::Streamed).await?;
                let Some(large) = large else { return Ok(None) };
                // Checked only now: meanwhile a message may have been sent to the client, and after
                // that it takes only a whole answer.
                if client.is_some_and(|back| back.wishes().flow) && !HttpBase::is_logged() {
                    let flow = Box::pin(http.stream_reply(id, may_run, limit, large)).await;
                    return flow.map_err(ExchangeError::from);
                }
                Box::pin(http.take_large_reply(id, large)).await?;
                Ok(None)
            });
            http.base.requests.ask(request, exchange).await
        }
        .boxed()
    }

    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64> {
        let id = self.http.base.requests.next_id();
        let (opened, open) = oneshot::channel();
        let running = Arc::clone(&self.http).subscribe(method, params.clone(), opened);
        let handle = self.http.base.spawn(running);
        self.http.subscriptions().insert(id, handle);
        async move {
            // The next message uses another HTTP connection and must not overtake this one.
            drop(timeout(ACKNOWLEDGED, open).await);
            id
        }
        .boxed()
    }

    fn stop(&self, id: u64) {
        let handle = self.http.subscriptions().remove(&id);
        if let Some(handle) = handle {
            // A modern server detects that its stream is closed.
            handle.abort();
        }
    }

    fn callable_tools(&self, tools: Vec<Item>) -> Vec<Item> {
        self.http.era.callable_tools(tools)
    }
}

// === impl Http ===

impl Http {
    fn subscriptions(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and delivers its reply to the pending request.
    /// With [`BodyMode::Streamed`], returns a large reply instead.
    async fn exchange(
        self: &Arc<Self>,
        id: u64,
        method: &str,
        params: &Json,
        mode: BodyMode,
    ) -> Result<Option<LargeBody>, RequestError> {
        if HttpBase::is_logged() {
            self.base.log_payload(&request::request(id, method, params));
        }
        let write =
            || self.order(self.era.headers(method, params), request::request(id, method, params));
        let response = match self.base.web.receive(&write, mode).await {
            Ok(response) => response,
            Err(WebError::Refused(refusal))
                if self.era.is_in_session(method) && refusal.is_session_lost() =>
            {
                let reason = "its session has ended".to_owned();
                self.base.lose(Fault::Unreachable(reason.clone()));
                return Err(RequestError::NotSent(reason));
            }
            Err(WebError::Refused(refusal)) => {
                return self.refused(id, method, refusal).map(|()| None);
            }
            Err(error) => return Err(self.base.failed(error)),
        };
        if method == "initialize" {
            self.era.take_session(&response.headers);
        }
        match response.body {
            Body::Json(body) => self.take_reply(id, &body).await?,
            Body::Large(large) => return Ok(Some(large)),
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
            to: self.base.web.client.target().clone(),
            headers,
            body,
        }
    }

    async fn take_reply(&self, id: u64, body: &Bytes) -> Result<(), RequestError> {
        dispatch(body, &self.base.inbound, Some(id)).await;
        if !self.base.requests.pending.waits_for(id) {
            return Ok(());
        }
        let problem =
            || Fault::NotMcp("an answer does not contain the reply to the request".to_owned());
        let error = error_in(body).ok_or_else(|| RequestError::Refused(problem()))?;
        // The server could not read the id; there is only one that it can mean.
        self.base.requests.pending.answer(id, error);
        Ok(())
    }

    /// Handles a refusal; a JSON-RPC error in its body is delivered as the reply.
    fn refused(&self, id: u64, method: &str, refusal: Refusal) -> Result<(), RequestError> {
        // The fault of a refused handshake decides which transport is tried next.
        if method != "initialize"
            && let Fault::Status { .. } = refusal.fault
            && let Some(error) = error_in(&refusal.body)
        {
            self.base.requests.pending.answer(id, error);
            return Ok(());
        }
        Err(self.base.failed(WebError::Refused(refusal)))
    }

    /// Sends a message that gets no reply, if the server takes such messages.
    async fn post(&self, line: Vec<u8>) -> Sent {
        if !self.era.takes_notifications() {
            return Sent::NotTaken;
        }
        let headers = self.era.headers("", &Json::empty_object());
        let sending = self.base.web.send(self.order(headers, line.into()));
        match timeout(self.base.limit, sending).await {
            Ok(Ok(WebResponse { .. })) => {}
            Ok(Err(error)) => debug!(?error, "a message was not accepted"),
            Err(_) => debug!("a message was not accepted in time"),
        }
        Sent::Yes
    }

    /// Ends the session, if there is one, so that the server can free it.
    async fn goodbye(&self) {
        if !self.era.has_session() {
            return;
        }
        let mut headers = HeaderMap::new();
        self.era.add_session(&mut headers);
        let to = self.base.web.client.target().clone();
        let order = HttpRequest { method: Method::DELETE, to, headers, body: Payload::default() };
        // The answer does not matter: the connection is closed.
        drop(self.base.web.send(order).await);
    }
}
