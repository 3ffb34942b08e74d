//! Graceful shutdown: no new requests, time for running calls, and an answer for the rest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::gateway::Gateway;

/// Polling interval while calls are running.
const STEP: Duration = Duration::from_millis(20);

/// Deadline for clients to read their last messages.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Signals that running calls are aborted.
#[derive(Default)]
pub(crate) struct StopSignal {
    is: AtomicBool,
    told: Notify,
}

// === impl StopSignal ===

impl StopSignal {
    /// Waits until running calls are aborted.
    pub(crate) async fn wait(&self) {
        // Created before the check, so that a signal between the two is not missed.
        let told = self.told.notified();
        if !self.is.load(Ordering::Acquire) {
            told.await;
        }
    }

    fn tell(&self) {
        self.is.store(true, Ordering::Release);
        self.told.notify_waiters();
    }
}

impl Gateway {
    /// Refuses new requests, and waits until the running calls are done. Subscriptions end.
    pub async fn drain(&self) {
        self.stop.send_replace(true);
        // The clients of parked calls cannot return any more.
        self.park.close();
        while self.in_flight() > 0 {
            sleep(STEP).await;
        }
    }

    /// Aborts the running calls.
    ///
    /// Their clients get an error that the outcome is unknown; their servers get a cancellation.
    pub fn give_up(&self) {
        let calls = self.in_flight();
        if calls > 0 {
            tracing::warn!(calls, "unfinished calls are abandoned");
        }
        self.over.tell();
    }

    /// The number of running calls.
    pub fn in_flight(&self) -> usize {
        self.metrics.in_flight()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_waiter_sees_the_signal_whether_it_came_before_or_after() {
        let over = StopSignal::default();
        let mut early = Box::pin(over.wait());
        assert!(early.as_mut().now_or_never().is_none());
        let unpolled = over.wait();
        over.tell();
        assert!(early.now_or_never().is_some() && unpolled.now_or_never().is_some());
        assert!(over.wait().now_or_never().is_some());
    }
}
