//! HTTP with server-sent events, the transport of 2024-11-05.
//!
//! One long stream goes to the client, which posts its messages to a second path.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use capstan_model::Caller;
use capstan_model::rpc_code::INVALID_REQUEST;
use capstan_wire::Message;
use futures::stream::{BoxStream, SelectAll, Stream as _};
use hyper::Response;
use hyper::body::Incoming;
use hyper::http::StatusCode;
use hyper::http::request::Parts;
use tokio::sync::mpsc;

use crate::fairness::fair_share::{Peer, Share};
use crate::protocol::era::{Contact, Era, Hint};
use crate::protocol::messages;
use crate::transport::http::mcp_endpoints::McpEndpoints;
use crate::transport::http::request::caller_header;
use crate::transport::http::request::request_body::{self, Accepts};
use crate::transport::http::request::trace_headers;
use crate::transport::http::response::body::{self, Body};
use crate::transport::http::response::events::{Events, Source, outs};
use crate::transport::http::sessions::{Full, Key};
use crate::{Answer, Client, Exchange, Gateway, Out, View};

/// The era of this transport.
const LEGACY: Hint = Hint::Declared(Era::Legacy);

/// Capacity of the queue of posted messages.
const POSTED: usize = 64;

/// The open streams, by session id.
#[derive(Default)]
pub(crate) struct LegacyStreams(Mutex<HashMap<Key, Arc<LegacyStream>>>);

/// A client with an open stream.
struct LegacyStream {
    caller: Arc<Caller>,
    view: View,
    /// Set by `initialize`.
    client: OnceLock<Arc<Client>>,
    stream: mpsc::Sender<Posted>,
}

/// A message from a post to the stream.
enum Posted {
    Request(Exchange),
    Answer(Answer),
    Inbox(mpsc::Receiver<Bytes>),
    End,
}

/// The stream side of a client. Dropping it cancels all of the client's requests.
pub(crate) struct LegacyEvents {
    posted: mpsc::Receiver<Posted>,
    requests: SelectAll<BoxStream<'static, Out>>,
    inbox: Option<mpsc::Receiver<Bytes>>,
    _guard: LeaveGuard,
}

/// Removes the client from the table when its stream ends.
struct LeaveGuard {
    key: Key,
    older: Arc<LegacyStream>,
    clients: Arc<LegacyStreams>,
    gateway: Arc<Gateway>,
    _place: Share,
}

/// Opens the stream, which begins with the path to post to.
pub(crate) fn open(
    mcp: &McpEndpoints,
    head: &Parts,
    caller: Arc<Caller>,
    view: View,
) -> Response<Body> {
    if !Accepts::of(&head.headers).events() {
        return body::refusal(StatusCode::NOT_ACCEPTABLE, "the answer is `text/event-stream`");
    }
    // The client sends its name later; until then all clients of a caller share one count.
    let place = mcp.sessions().place(Peer::of(&caller));
    let (Ok(key), Ok(place)) = (Key::new(), place) else {
        return body::refusal(StatusCode::SERVICE_UNAVAILABLE, Full);
    };
    let (stream, posted) = mpsc::channel(POSTED);
    let older = Arc::new(LegacyStream { caller, view, client: OnceLock::new(), stream });
    let clients = Arc::clone(mcp.legacy_streams());
    clients.table().insert(key, Arc::clone(&older));
    let gateway = Arc::clone(mcp.gateway());
    let leave = LeaveGuard { key, older, clients, gateway, _place: place };
    let line = LegacyEvents { posted, requests: SelectAll::new(), inbox: None, _guard: leave };
    let mut events = Events::new(Source::LegacyStream(line), mcp.limits().keep_alive);
    events.push_event("endpoint", &format!("/messages?sessionId={}", key.to_text()));
    body::events(events)
}

/// Handles a posted message. Its answer goes to the stream.
pub(crate) async fn post(
    mcp: &McpEndpoints,
    head: &Parts,
    incoming: Incoming,
    caller: &Caller,
) -> Response<Body> {
    let query = head.uri.query().unwrap_or_default();
    let key = query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
    let Some(key) = key.and_then(|key| Key::parse(key.as_bytes())) else {
        return body::refusal(StatusCode::BAD_REQUEST, "`sessionId` is missing or unknown");
    };
    let Some(older) = mcp.legacy_streams().find(key, caller) else {
        return body::refusal(StatusCode::NOT_FOUND, "there is no such session");
    };
    // Access may have been revoked since the stream was opened.
    if let View::One(server) = &older.view
        && !mcp.gateway().shows(server, caller)
    {
        return body::refusal(StatusCode::NOT_FOUND, "there is no such server");
    }
    let text = match request_body::body(&head.headers, incoming, mcp.limits()).await {
        Ok(text) => text,
        Err(unread) => return body::refusal(unread.status(), unread),
    };
    let revision = older.client.get().map(|client| client.revision());
    let messages = match messages::messages(&text, revision) {
        Ok(messages) => messages,
        Err(answer) => return body::json(StatusCode::BAD_REQUEST, answer),
    };
    if !mcp.gateway().is_ready()
        && let Some(Ok(Message::Request { id, .. })) =
            messages.iter().find(|message| matches!(message, Ok(Message::Request { .. })))
    {
        return body::stopping(Some(id));
    }
    for message in messages {
        let posted = match message {
            Ok(message) => older.take(mcp.gateway(), traced(head, message)).await,
            Err(answer) => Some(Posted::Answer(answer)),
        };
        if let Some(posted) = posted
            && older.stream.send(posted).await.is_err()
        {
            return body::refusal(StatusCode::NOT_FOUND, "the stream is closed");
        }
    }
    body::bare(StatusCode::ACCEPTED)
}

fn traced(head: &Parts, message: Message) -> Message {
    match message {
        Message::Request { id, method, params } => {
            let params = trace_headers::adopt(&head.headers, params);
            Message::Request { id, method, params: caller_header::adopt(&head.headers, params) }
        }
        other @ (Message::Notification { .. } | Message::Reply { .. }) => other,
    }
}

// === impl LegacyStreams ===

impl LegacyStreams {
    fn find(&self, key: Key, caller: &Caller) -> Option<Arc<LegacyStream>> {
        let older = Arc::clone(self.table().get(&key)?);
        older.caller.is_same(caller).then_some(older)
    }

    /// Ends all streams after their pending requests are answered.
    pub(crate) fn end_streams(&self) {
        for older in self.table().values() {
            // A full stream is not being read; its connection times out.
            drop(older.stream.try_send(Posted::End));
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Arc<LegacyStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl LegacyStream ===

impl LegacyStream {
    async fn take(&self, gateway: &Arc<Gateway>, message: Message) -> Option<Posted> {
        match (message, self.client.get()) {
            (Message::Request { id, method, params }, None)
                if Contact::of(LEGACY, &method, None) == Contact::Initialize =>
            {
                let context = gateway.session_context(Arc::clone(&self.caller), self.view.clone());
                let (answer, client) = gateway.initialize(&id, params.as_ref(), context).await;
                if let Some(client) = client {
                    let inbox = client.open_inbox();
                    if let Err(second) = self.client.set(Arc::clone(&client)) {
                        // Concurrent `initialize` requests: the first one counts.
                        gateway.leave(&second);
                        let words = "the handshake has been made";
                        return Some(Posted::Answer(Answer::error(
                            Some(&id),
                            INVALID_REQUEST,
                            words,
                        )));
                    }
                    // There is always room, as this is one of the first messages.
                    if self.stream.send(Posted::Inbox(inbox)).await.is_err() {
                        // The stream ended meanwhile and cannot report that the client is gone.
                        gateway.leave(&client);
                        return None;
                    }
                }
                Some(Posted::Answer(answer))
            }
            (Message::Request { id, method, params }, Some(client)) => {
                Some(Posted::Request(gateway.request(client, id, &method, params)))
            }
            (Message::Request { id, method, .. }, None) => {
                Some(Posted::Answer(Gateway::before_initialize(&id, &method)))
            }
            (Message::Notification { method, params }, Some(client)) => {
                gateway.notification(client, &method, params.as_ref());
                None
            }
            (Message::Reply { id: Some(id), reply }, Some(client)) => {
                client.take_reply(&id, reply);
                None
            }
            (Message::Notification { .. } | Message::Reply { .. }, _) => None,
        }
    }
}

// === impl LegacyEvents ===

impl LegacyEvents {
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Out>> {
        while let Poll::Ready(posted) = self.posted.poll_recv(cx) {
            match posted {
                Some(Posted::Request(exchange)) => self.requests.push(outs(exchange)),
                Some(Posted::Answer(answer)) => return Poll::Ready(Some(Out::Answer(answer))),
                Some(Posted::Inbox(inbox)) => self.inbox = Some(inbox),
                Some(Posted::End) | None => {
                    self.posted.close();
                    self.inbox = None;
                    break;
                }
            }
        }
        if let Some(inbox) = &mut self.inbox
            && let Poll::Ready(Some(message)) = inbox.poll_recv(cx)
        {
            return Poll::Ready(Some(Out::Message(message)));
        }
        match Pin::new(&mut self.requests).poll_next(cx) {
            Poll::Ready(Some(out)) => Poll::Ready(Some(out)),
            // No request is running: wait for more, unless the stream is to end.
            Poll::Ready(None) if self.posted.is_closed() => Poll::Ready(None),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

// === impl LeaveGuard ===

impl Drop for LeaveGuard {
    fn drop(&mut self) {
        self.clients.table().remove(&self.key);
        if let Some(client) = self.older.client.get() {
            self.gateway.leave(client);
        }
    }
}
