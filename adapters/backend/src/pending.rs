//! Requests that wait for their replies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use capstan_hub::ports::Operator;
use capstan_wire::Reply;
use tokio::sync::{Notify, oneshot};

/// Requests that wait for their replies, by id.
#[derive(Default)]
pub(crate) struct Pending(Mutex<HashMap<u64, Waiter>>);

struct Waiter {
    reply: oneshot::Sender<Reply>,
    operator: Option<Arc<dyn Operator>>,
    progress: Arc<Notify>,
}

// === impl Pending ===

impl Pending {
    pub(crate) fn add(
        &self,
        id: u64,
        operator: Option<Arc<dyn Operator>>,
        progress: Arc<Notify>,
    ) -> oneshot::Receiver<Reply> {
        let (tx, rx) = oneshot::channel();
        self.map().insert(id, Waiter { reply: tx, operator, progress });
        rx
    }

    /// Delivers a reply; one that nobody waits for is dropped.
    pub(crate) fn answer(&self, id: u64, reply: Reply) {
        let waiter = self.map().remove(&id);
        if let Some(waiter) = waiter {
            // The waiter may have gone away between the two lines.
            drop(waiter.reply.send(reply));
        }
    }

    /// The operator behind request `id`, whose deadline is put off by this sign of life.
    pub(crate) fn progressed(&self, id: u64) -> Option<Arc<dyn Operator>> {
        self.map().get(&id).and_then(|waiter| {
            waiter.progress.notify_one();
            waiter.operator.clone()
        })
    }

    /// The operator of the youngest call in flight.
    ///
    /// Over stdio a server does not say which call its question belongs to.
    pub(crate) fn youngest_operator(&self) -> Option<Arc<dyn Operator>> {
        self.map()
            .iter()
            .filter(|(_, waiter)| waiter.operator.is_some())
            .max_by_key(|(id, _)| **id)
            .and_then(|(_, waiter)| waiter.operator.clone())
    }

    /// Stops waiting; whether anybody did.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.map().remove(&id).is_some()
    }

    /// Wakes everybody up without a reply: there will be none.
    pub(crate) fn clear(&self) {
        self.map().clear();
    }

    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Waiter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
