//! Carries messages to a running server and back.
//!
//! Three tasks serve a connection: the writer drains its queue into as few writes as possible, the
//! reader hands every message to whoever waits for it, and the minder ends the process when either
//! side is done. All three end when the [`Connection`] is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use capstan_hub::ports::Operator;
use capstan_model::ServerName;
use capstan_wire::{Json, Reply, compose};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::alive::{Alive, Living};
use crate::inbound::Inbound;
use crate::mask::Masker;
use crate::minder::{Minder, Streams};
use crate::pending::{NoReply, Pending};
use crate::spawn::Spawned;
use crate::stderr::Ring;

/// Messages waiting to be written; whoever sends more waits.
const QUEUE: usize = 256;

/// A running server and the way to it.
pub(crate) struct Connection {
    out: Outbox,
    pending: Arc<Pending>,
    next_id: AtomicU64,
    gone: watch::Receiver<Option<String>>,
    /// Whether somebody has taken note that the server is gone.
    mourned: AtomicBool,
    /// Dropping it tells the minder to end the process.
    _stop: oneshot::Sender<()>,
}

/// What belongs to the server and outlives a connection to it.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) ring: Ring,
    pub(crate) masker: Arc<Masker>,
    pub(crate) alive: Arc<Alive>,
}

/// What is asked, and for how long an answer is waited for.
pub(crate) struct Request<'a> {
    /// From [`Connection::next_id`].
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Json,
    pub(crate) limit: Duration,
    /// Whom progress and questions of the server go to.
    pub(crate) operator: Option<Arc<dyn Operator>>,
}

/// Why a request has no reply.
#[derive(Clone, Debug)]
pub(crate) enum RequestError {
    /// The server was gone before the request could be sent.
    NotSent(String),
    /// The server went away after the request was sent.
    Gone(String),
    /// The server did not reply in time.
    TimedOut(Duration),
}

/// Where messages to the server go.
#[derive(Clone)]
pub(crate) struct Outbox {
    server: ServerName,
    masker: Arc<Masker>,
    queue: mpsc::Sender<Vec<u8>>,
}

/// Forgets a request, and tells the server so, when nobody waits for it any more.
struct Abandon<'a> {
    connection: &'a Connection,
    id: u64,
    silently: bool,
}

// === impl Connection ===

impl Connection {
    /// Takes over a server that has just been started.
    pub(crate) fn open(
        server: &ServerName,
        spawned: Spawned,
        living: Living,
        watched: Watched,
        inbound: impl FnOnce(Outbox, Arc<Pending>) -> Inbound,
    ) -> Self {
        let Watched { ring, masker, alive } = watched;
        let Spawned { keeper, stdin, stdout, stderr } = spawned;
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let out = Outbox { server: server.clone(), masker: Arc::clone(&masker), queue };
        let pending = Arc::new(Pending::default());
        let (tell_gone, gone) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();

        let stderr = ring.clone().fill(stderr, server.clone(), Arc::clone(&masker));
        let stderr = tokio::spawn(stderr.in_current_span());
        let inbound = inbound(out.clone(), Arc::clone(&pending));
        let streams = Streams { stdin, outgoing, stdout, inbound };
        let pending_too = Arc::clone(&pending);
        let minder = Minder { keeper, ring, stderr, tell_gone, pending: pending_too, alive };
        let minding = async move {
            minder.mind(streams, stopped).await;
            drop(living);
        };
        tokio::spawn(minding.in_current_span());
        let (next_id, mourned) = (AtomicU64::new(1), AtomicBool::new(false));
        Self { out, pending, next_id, gone, mourned, _stop: stop }
    }

    /// An id for the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Why the server is gone; `None` while it runs.
    pub(crate) fn gone(&self) -> Option<String> {
        self.gone.borrow().clone()
    }

    /// Whether the server is gone and this is the first time that anybody asks.
    pub(crate) fn mourn(&self) -> bool {
        self.gone.borrow().is_some() && !self.mourned.swap(true, Ordering::Relaxed)
    }

    /// Waits until the server is gone and says why.
    async fn wait_gone(&self) -> String {
        let mut gone = self.gone.clone();
        match gone.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "its connection was closed".to_owned(),
        }
    }

    /// Tells the server something.
    pub(crate) async fn notify(&self, method: &str, params: Option<&Json>) {
        self.out.send(compose::notification(method, params)).await;
    }

    /// Asks the server and waits for its reply, for `limit` since the last sign of progress.
    ///
    /// When the future is dropped the server is told that nobody waits any more.
    pub(crate) async fn request(&self, request: Request<'_>) -> Result<Reply, RequestError> {
        if let Some(reason) = self.gone() {
            return Err(RequestError::NotSent(reason));
        }
        let Request { id, method, params, limit, operator } = request;
        let waiting = self.pending.add(id, operator);
        // The protocol knows no way to take a handshake back.
        let silently = method == "initialize";
        let mut abandon = Abandon { connection: self, id, silently };
        let sent = self.out.send(compose::request(id, method, Some(params)));
        match timeout(limit, sent).await {
            Ok(true) => {}
            Ok(false) => {
                abandon.silently = true;
                return Err(RequestError::NotSent(self.wait_gone().await));
            }
            // It does not even read what is sent to it.
            Err(_) => return Err(RequestError::TimedOut(limit)),
        }
        let reply = waiting.wait(limit).await;
        drop(abandon);
        match reply {
            Ok(reply) => Ok(reply),
            Err(NoReply::Gone) => Err(RequestError::Gone(self.wait_gone().await)),
            Err(NoReply::Late) => Err(RequestError::TimedOut(limit)),
        }
    }

    /// Sends a request whose reply nobody waits for, such as a subscription.
    pub(crate) async fn start(&self, method: &str, params: &Json) {
        self.out.send(compose::request(self.next_id(), method, Some(params))).await;
    }
}

// === impl Outbox ===

impl Outbox {
    /// Queues one message; `false` when the server is gone.
    pub(crate) async fn send(&self, line: Vec<u8>) -> bool {
        self.log(&line);
        self.queue.send(line).await.is_ok()
    }

    /// Queues one message if there is room, for those who cannot wait.
    fn try_send(&self, line: Vec<u8>) {
        self.log(&line);
        if self.queue.try_send(line).is_err() {
            debug!("no room for a message to the server; it is left out");
        }
    }

    fn log(&self, line: &[u8]) {
        debug!(target: "capstan::wire", server = %self.server, "→ {}", self.masker.mask_message(line));
    }
}

// === impl Abandon ===

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        // A request that has its reply is forgotten already.
        if self.connection.pending.forget(self.id) && !self.silently {
            let id = compose::number(self.id);
            let reason = compose::string("the caller no longer waits");
            let params = compose::object(&[("requestId", &id), ("reason", &reason)]);
            let line = compose::notification("notifications/cancelled", Some(&params));
            self.connection.out.try_send(line);
        }
    }
}
