//! Graceful shutdown: no new requests, time for running calls, and an answer for the rest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::gateway::Gateway;

/// How often it is looked whether calls are still under way.
const STEP: Duration = Duration::from_millis(20);

/// How long clients may take to read the last of what there is to say.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Whether calls are given up, for those who wait for an answer.
#[derive(Default)]
pub(crate) struct StopSignal {
    is: AtomicBool,
    told: Notify,
}

// === impl StopSignal ===

impl StopSignal {
    /// Waits until calls are given up.
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
        // Their clients cannot return any more.
        self.park.close();
        while self.in_flight() > 0 {
            sleep(STEP).await;
        }
    }

    /// Ends the running calls. Their clients are told that the outcome is unknown, and their servers
    /// that the calls are cancelled.
    pub fn give_up(&self) {
        let calls = self.in_flight();
        if calls > 0 {
            tracing::warn!(calls, "calls that have not ended are given up");
        }
        self.over.tell();
    }

    /// Calls under way.
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
