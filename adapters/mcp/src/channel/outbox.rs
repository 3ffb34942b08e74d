//! The queue of messages to a server.

use std::sync::Arc;

use capstan_model::ServerName;
use capstan_safety::mask::Masker;
use capstan_wire::compose;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tracing::debug;

/// The capacity of the queue; senders wait while it is full.
const QUEUE: usize = 256;

/// The sending end of the queue.
#[derive(Clone)]
pub(crate) struct Outbox {
    server: ServerName,
    masker: Arc<Masker>,
    queue: mpsc::Sender<Vec<u8>>,
}

// === impl Outbox ===

impl Outbox {
    /// A queue and its receiving end.
    pub(crate) fn new(
        server: &ServerName,
        masker: &Arc<Masker>,
    ) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (queue, outgoing) = mpsc::channel(QUEUE);
        (Self { server: server.clone(), masker: Arc::clone(masker), queue }, outgoing)
    }

    /// Queues one message; `false` if the connection is closed.
    pub(crate) async fn send(&self, line: Vec<u8>) -> bool {
        self.log(&line);
        match self.queue.try_send(line) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(line)) => self.queue.send(line).await.is_ok(),
        }
    }

    /// Queues one message if there is room; otherwise drops it.
    pub(crate) fn try_send(&self, line: Vec<u8>) {
        self.log(&line);
        if self.queue.try_send(line).is_err() {
            debug!("the queue to the server is full; a message is dropped");
        }
    }

    /// Writes a message to the debug log.
    pub(crate) fn log(&self, line: &[u8]) {
        debug!(target: "capstan::wire", server = %self.server, "→ {}", self.masker.mask_message(line));
    }
}

/// Composes the notification that cancels a request.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let id = compose::number(id);
    let reason = compose::string("the caller no longer waits");
    let params = compose::object(&[("requestId", &id), ("reason", &reason)]);
    compose::notification("notifications/cancelled", Some(&params))
}
