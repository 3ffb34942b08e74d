//! Counts the processes of a server that have not ended yet, and signals all of them to end.

use tokio::sync::watch;

/// Process count and stop signal, shared between a server and the minders of its processes.
#[derive(Debug)]
pub(crate) struct Alive {
    count: watch::Sender<usize>,
    closing: watch::Sender<bool>,
}

/// A guard that counts one process until it is dropped.
#[derive(Debug)]
pub(crate) struct Living(watch::Sender<usize>);

// === impl Alive ===

impl Alive {
    pub(crate) fn new() -> Self {
        Self { count: watch::Sender::new(0), closing: watch::Sender::new(false) }
    }

    /// Counts one process until the result is dropped; `None` when no more may be started.
    ///
    /// Increments before it checks `closing`: either this call sees that the server is closing, or
    /// the code that closes it sees the new count and waits.
    pub(crate) fn one(&self) -> Option<Living> {
        self.count.send_modify(|count| *count += 1);
        let living = Living(self.count.clone());
        (!*self.closing.borrow()).then_some(living)
    }

    /// Waits until every process has ended.
    pub(crate) async fn none_left(&self) {
        drop(self.count.subscribe().wait_for(|count| *count == 0).await);
    }

    /// Waits until [`Alive::stop`] is called.
    pub(crate) async fn closing(&self) {
        // `self` owns a sender, so waiting cannot fail.
        drop(self.closing.subscribe().wait_for(|closing| *closing).await);
    }

    /// Signals every process to end.
    pub(crate) fn stop(&self) {
        self.closing.send_replace(true);
    }
}

// === impl Living ===

impl Drop for Living {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
