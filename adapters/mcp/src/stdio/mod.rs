//! Carries messages to a running server and back.
//!
//! Three tasks serve a connection: the writer drains its queue into as few writes as possible, the
//! reader hands every message to whoever waits for it, and the minder ends the process when either
//! side is done. All three end when the [`Connection`] is dropped.

pub(crate) mod minder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use capstan_hub::ports::{BoxFuture, Item, Listener};
use capstan_model::ServerName;
use capstan_process::spawn::Spawned;
use capstan_process::stderr::Ring;
use capstan_safety::mask::Masker;
use capstan_wire::{Json, Reply, compose};
use futures::FutureExt;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::channel::inbound::Inbound;
use crate::channel::pending::{NoReply, Pending};
use crate::channel::{Channel, Request, RequestError};
use crate::fault::Fault;
use crate::server::alive::{Alive, Living};
use crate::settings::StdioSettings;
use crate::stdio::minder::{Minder, Streams};

/// Messages waiting to be written; whoever sends more waits.
const QUEUE: usize = 256;

/// A running server and the way to it.
pub(crate) struct Connection {
    out: Outbox,
    pending: Arc<Pending>,
    next_id: AtomicU64,
    gone: watch::Receiver<Option<String>>,
    /// Whether somebody has taken note that the server is gone.
    gone_noticed: AtomicBool,
    process: Option<u32>,
    /// Dropping it tells the minder to end the process.
    _stop: oneshot::Sender<()>,
}

/// What belongs to the server and outlives a connection to it.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) ring: Ring,
    pub(crate) masker: Arc<Masker>,
    pub(crate) alive: Arc<Alive>,
    /// Is told what the server says that belongs to no call.
    pub(crate) listener: Arc<dyn Listener>,
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
        settings: &StdioSettings,
        spawned: Spawned,
        living: Living,
        watched: Watched,
        inbound: impl FnOnce(Outbox, Arc<Pending>) -> Inbound,
    ) -> Self {
        let Watched { ring, masker, alive, listener: _ } = watched;
        let Spawned { keeper, stdin, stdout, stderr } = spawned;
        let process = keeper.process();
        let (out, outgoing) = Outbox::new(&settings.name, &masker);
        let pending = Arc::new(Pending::default());
        let (tell_gone, gone) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();

        let stderr = ring.clone().fill(stderr, settings.name.clone(), Arc::clone(&masker));
        let stderr = tokio::spawn(stderr.in_current_span());
        let inbound = inbound(out.clone(), Arc::clone(&pending));
        let max_line = settings.max_message;
        let streams = Streams { stdin, outgoing, stdout, max_line, inbound };
        let pending_too = Arc::clone(&pending);
        let minder = Minder { keeper, ring, stderr, tell_gone, pending: pending_too, alive };
        let minding = async move {
            minder.mind(streams, stopped).await;
            drop(living);
        };
        tokio::spawn(minding.in_current_span());
        let (next_id, gone_noticed) = (AtomicU64::new(1), AtomicBool::new(false));
        Self { out, pending, next_id, gone, gone_noticed, process, _stop: stop }
    }

    /// An id for the next request.
    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Why the server is gone; `None` while it runs.
    fn gone(&self) -> Option<String> {
        self.gone.borrow().clone()
    }

    /// Whether the server is gone and this is the first time that anybody asks.
    fn take_gone_notice(&self) -> bool {
        self.gone.borrow().is_some() && !self.gone_noticed.swap(true, Ordering::Relaxed)
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
    async fn notify(&self, method: &str, params: Option<&Json>) {
        self.out.send(compose::notification(method, params)).await;
    }

    /// Asks the server and waits for its reply, for `limit` since the last sign of progress.
    ///
    /// When the future is dropped the server is told that nobody waits any more.
    async fn request(&self, request: Request<'_>) -> Result<Reply, RequestError> {
        if let Some(reason) = self.gone() {
            return Err(RequestError::NotSent(reason));
        }
        let Request { id, method, params, limit, operator } = request;
        let waiting = self.pending.add(id, operator);
        // The protocol knows no way to take a handshake back.
        let silently = method == "initialize";
        let mut abandon = Abandon { connection: self, id, silently };
        match self.out.send_within(limit, compose::request(id, method, Some(params))).await {
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
            Err(NoReply::Garbled(problem)) => Err(RequestError::garbled(&problem)),
            Err(NoReply::TooLong(limit)) => Err(RequestError::Refused(Fault::TooLong(limit))),
            Err(NoReply::Endless(problem)) => Err(RequestError::Refused(Fault::Endless(problem))),
        }
    }

    /// Sends a request whose reply nobody waits for, such as a subscription.
    async fn start(&self, method: &str, params: &Json) -> u64 {
        let id = self.next_id();
        self.out.send(compose::request(id, method, Some(params))).await;
        id
    }
}

impl Channel for Connection {
    fn next_id(&self) -> u64 {
        self.next_id()
    }

    fn gone(&self) -> Option<Fault> {
        self.gone().map(Fault::Unreachable)
    }

    fn take_gone_notice(&self) -> bool {
        self.take_gone_notice()
    }

    fn agree(&self, _revision: &str) {}

    fn notify<'a>(&'a self, method: &'a str, params: Option<&'a Json>) -> BoxFuture<'a, ()> {
        self.notify(method, params).boxed()
    }

    fn request<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, RequestError>> {
        self.request(request).boxed()
    }

    fn start<'a>(&'a self, method: &'static str, params: &'a Json) -> BoxFuture<'a, u64> {
        self.start(method, params).boxed()
    }

    fn stop(&self, id: u64) {
        self.out.try_send(cancelled(id));
    }

    fn process(&self) -> Option<u32> {
        self.process
    }

    fn sift(&self, tools: Vec<Item>) -> Vec<Item> {
        tools
    }
}

// === impl Outbox ===

impl Outbox {
    /// An outbox, and where its messages come out.
    pub(crate) fn new(
        server: &ServerName,
        masker: &Arc<Masker>,
    ) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (queue, outgoing) = mpsc::channel(QUEUE);
        (Self { server: server.clone(), masker: Arc::clone(masker), queue }, outgoing)
    }

    /// Queues one message; `false` when the server is gone.
    pub(crate) async fn send(&self, line: Vec<u8>) -> bool {
        self.log(&line);
        self.queue.send(line).await.is_ok()
    }

    /// The same, within a time. Where there is room nothing is timed.
    async fn send_within(&self, limit: Duration, line: Vec<u8>) -> Result<bool, Elapsed> {
        self.log(&line);
        match self.queue.try_send(line) {
            Ok(()) => Ok(true),
            Err(TrySendError::Closed(_)) => Ok(false),
            Err(TrySendError::Full(line)) => {
                timeout(limit, self.queue.send(line)).await.map(|sent| sent.is_ok())
            }
        }
    }

    /// Queues one message if there is room, for those who cannot wait.
    pub(crate) fn try_send(&self, line: Vec<u8>) {
        self.log(&line);
        if self.queue.try_send(line).is_err() {
            debug!("no room for a message to the server; it is left out");
        }
    }

    pub(crate) fn log(&self, line: &[u8]) {
        debug!(target: "capstan::wire", server = %self.server, "→ {}", self.masker.mask_message(line));
    }
}

// === impl Abandon ===

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        // A request that has its reply is forgotten already.
        if self.connection.pending.forget(self.id) && !self.silently {
            self.connection.out.try_send(cancelled(self.id));
        }
    }
}

/// Tells a server that nobody waits for a reply any more.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let id = compose::number(id);
    let reason = compose::string("the caller no longer waits");
    let params = compose::object(&[("requestId", &id), ("reason", &reason)]);
    compose::notification("notifications/cancelled", Some(&params))
}
