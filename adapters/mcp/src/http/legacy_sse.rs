//! The older HTTP transport with server-sent events.
//! The server sends its messages on one stream, which names the address that messages are posted
//! to.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use capstan_http::Payload;
use capstan_http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use capstan_http::{HttpRequest, Target};
use capstan_http::{Method, Url};
use capstan_hub::ports::{BoxFuture, Item};
use capstan_wire::{Json, Reply, compose};
use futures::FutureExt;
use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::channel::dispatch::dispatch;
use crate::channel::outbox::cancelled;
use crate::channel::requests::{ExchangeError, Requests};
use crate::channel::{Channel, Request, RequestError, Sent};
use crate::fault::Fault;
use crate::http::base::{HttpBase, Opening, Parts, Stop};
use crate::http::events::Events;
use crate::http::web::{Body, Web, WebError};
use crate::session::era::Era;

/// A connection to a server over the older HTTP transport.
pub(crate) struct SseChannel {
    sse: Arc<Sse>,
    _stop: Stop,
}

struct Sse {
    base: HttpBase,
    /// The address that messages are posted to.
    endpoint: Target,
}

// === impl SseChannel ===

impl SseChannel {
    /// Opens the stream and waits until it names the address for messages.
    pub(crate) async fn open(opening: Opening) -> Result<Self, Fault> {
        let mut events = open_stream(&opening.web).await?;
        let endpoint = find_endpoint(&opening.web, &mut events).await?;
        let Parts { base, posts, shutdown, stop } = HttpBase::open(opening);
        let sse = Arc::new(Sse { base, endpoint: endpoint.into() });
        let poster = Arc::clone(&sse);
        sse.base.spawn(posts.send(move |line| {
            let sse = Arc::clone(&poster);
            async move { sse.post_in_time(line).await }
        }));
        sse.base.spawn(Arc::clone(&sse).hear(events));
        let ending = Arc::clone(&sse);
        let shutdown = async move { shutdown.run(&ending.base, std::future::ready(())).await };
        tokio::spawn(shutdown.in_current_span());
        Ok(Self { sse, _stop: stop })
    }
}

impl Channel for SseChannel {
    fn requests(&self) -> &Requests {
        &self.sse.base.requests
    }

    fn agree(&self, _: Era) {}

    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, Sent> {
        let line = compose::notification(method, params);
        self.sse.base.requests.out.log(&line);
        self.sse.post_in_time(line).map(|()| Sent::Yes).boxed()
    }

    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>> {
        let line = compose::request(request.id, request.method, Some(request.params));
        self.sse.base.requests.out.log(&line);
        async move {
            let exchange = pin!(async {
                self.sse.post(line).await.map_err(|error| self.sse.base.failed(error))?;
                // The reply arrives on the stream, or the stream ends.
                std::future::pending::<Result<Option<Infallible>, ExchangeError>>().await
            });
            self.sse.base.requests.ask(request, exchange).await.map(Reply::from)
        }
        .boxed()
    }

    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64> {
        let id = self.requests().next_id();
        let line = compose::request(id, method, Some(params));
        self.sse.base.requests.out.log(&line);
        self.sse.post_in_time(line).map(move |()| id).boxed()
    }

    fn stop(&self, id: u64) {
        let sse = Arc::clone(&self.sse);
        self.sse.base.spawn(async move { sse.post_in_time(cancelled(id)).await });
    }

    fn callable_tools(&self, tools: Vec<Item>) -> Vec<Item> {
        tools
    }
}

// === impl Sse ===

impl Sse {
    async fn post(&self, line: Vec<u8>) -> Result<(), WebError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let to = self.endpoint.clone();
        let order = HttpRequest { method: Method::POST, to, headers, body: line.into() };
        match self.base.web.send(order).await {
            // Servers answer "Accepted" here with any content type.
            Ok(_) | Err(WebError::NotMcp(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn post_in_time(&self, line: Vec<u8>) {
        match timeout(self.base.limit, self.post(line)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(?error, "a message was not accepted"),
            Err(_) => debug!("a message was not accepted in time"),
        }
    }

    /// Dispatches the server's messages until the stream ends, which ends the connection.
    async fn hear(self: Arc<Self>, mut events: Events) {
        let reason = loop {
            match events.next().await {
                Ok(Some(event)) if matches!(event.name.as_str(), "" | "message") => {
                    dispatch(&event.data, &self.base.inbound, None).await;
                }
                Ok(Some(event)) => debug!(event.name, "an unknown event"),
                Ok(None) => break "it closed its stream".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.base.lose(Fault::Unreachable(reason));
    }
}

async fn open_stream(web: &Web) -> Result<Events, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let order = HttpRequest {
        method: Method::GET,
        to: web.client.target().clone(),
        headers,
        body: Payload::default(),
    };
    match web.send(order).await {
        Ok(response) => match response.body {
            Body::Events(events) => Ok(events),
            Body::Json(_) | Body::Large(_) | Body::Nothing => {
                Err(Fault::NotMcp("it did not open a stream".to_owned()))
            }
        },
        Err(WebError::NotSent(reason) | WebError::Lost(reason)) => Err(Fault::Unreachable(reason)),
        Err(WebError::Blocked(reason)) => Err(Fault::Blocked(reason)),
        Err(WebError::NotMcp(problem)) => Err(Fault::NotMcp(problem)),
        Err(WebError::TooLong(limit)) => Err(Fault::TooLong(limit)),
        Err(WebError::Refused(refusal)) => Err(refusal.fault),
    }
}

/// Reads the address for messages. It must have the origin of the stream, because credentials are
/// sent there too.
async fn find_endpoint(web: &Web, events: &mut Events) -> Result<Url, Fault> {
    loop {
        let event = match events.next().await {
            Ok(Some(event)) => event,
            Ok(None) => {
                return Err(Fault::NotMcp("its stream does not name an endpoint".to_owned()));
            }
            Err(error) => return Err(Fault::Unreachable(error.to_string())),
        };
        if event.name != "endpoint" {
            continue;
        }
        let text = String::from_utf8_lossy(&event.data);
        let endpoint = web.client.target().url().join(text.trim());
        let endpoint = endpoint.map_err(|_| Fault::NotMcp("its endpoint is invalid".to_owned()))?;
        if web.client.same_origin(&endpoint) {
            return Ok(endpoint);
        }
        let origin = endpoint.origin().ascii_serialization();
        return Err(Fault::Elsewhere(format!(
            "its endpoint is at `{origin}`, which is another server; nothing is sent there"
        )));
    }
}
