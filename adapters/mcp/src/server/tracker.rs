//! Counts the processes of a server that have not ended yet, and signals all of them to end.

use tokio::sync::watch;

/// Process count and stop signal, shared between a server and the supervisors of its processes.
#[derive(Debug)]
pub(crate) struct ConnectionTracker {
    count: watch::Sender<usize>,
    closing: watch::Sender<bool>,
}

/// A guard that counts one process until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(watch::Sender<usize>);

// === impl ConnectionTracker ===

impl ConnectionTracker {
    pub(crate) fn new() -> Self {
        Self { count: watch::Sender::new(0), closing: watch::Sender::new(false) }
    }

    /// Counts one process until the result is dropped; `None` when no more may be started.
    ///
    /// Increments before it checks `closing`: either this call sees that the server is closing, or
    /// the code that closes it sees the new count and waits.
    pub(crate) fn track(&self) -> Option<ConnectionGuard> {
        self.count.send_modify(|count| *count += 1);
        let guard = ConnectionGuard(self.count.clone());
        (!*self.closing.borrow()).then_some(guard)
    }

    /// Waits until every process has ended.
    pub(crate) async fn none_left(&self) {
        drop(self.count.subscribe().wait_for(|count| *count == 0).await);
    }

    /// Waits until [`ConnectionTracker::stop`] is called.
    pub(crate) async fn closing(&self) {
        // `self` owns a sender, so waiting cannot fail.
        drop(self.closing.subscribe().wait_for(|closing| *closing).await);
    }

    /// Signals every process to end.
    pub(crate) fn stop(&self) {
        self.closing.send_replace(true);
    }
}

// === impl ConnectionGuard ===

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
