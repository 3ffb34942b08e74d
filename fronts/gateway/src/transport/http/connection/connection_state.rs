//! The state of a connection that its requests, its answers and its reader share.
//!
//! All of them run in the task of the connection, one after the other. A flag is visible to the
//! others at their next poll, and none of them has to be woken.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::described::LastDescription;

/// Flags and times of one connection.
pub(crate) struct ConnectionState {
    began: Instant,
    /// Number of requests so far.
    requests: AtomicU32,
    /// True while a request runs or its answer is sent.
    busy: AtomicBool,
    /// True while a streamed answer is sent.
    streaming: AtomicBool,
    /// True if a probe must be sent, to find out if the client is still connected.
    probe: AtomicBool,
    /// Time of the last answer, in milliseconds since the connection began.
    rested: AtomicU64,
    /// True while a request is received incompletely.
    receiving: AtomicBool,
    /// Time of the last bytes of an incomplete request, in milliseconds since the connection began.
    heard: AtomicU64,
    /// The client that its last modern request described.
    described: Arc<LastDescription>,
}

/// Marks the connection as busy until it is dropped.
pub(crate) struct Busy(Arc<ConnectionState>);

// === impl ConnectionState ===

impl ConnectionState {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            requests: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            streaming: AtomicBool::new(false),
            probe: AtomicBool::new(false),
            rested: AtomicU64::new(0),
            receiving: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            described: Arc::default(),
        }
    }

    /// The client that the last modern request of the connection described.
    pub(crate) fn described(&self) -> &Arc<LastDescription> {
        &self.described
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// True if the connection is idle after its first request.
    pub(crate) fn is_resting(&self) -> bool {
        !self.is_busy() && self.requests() > 0
    }

    /// True if a first or incomplete request is awaited and no byte of it came for `time`.
    pub(crate) fn is_silent_for(&self, time: Duration) -> bool {
        let heard = self.began + Duration::from_millis(self.heard.load(Ordering::Relaxed));
        let is_awaited = self.requests() == 0 || self.receiving.load(Ordering::Relaxed);
        is_awaited && heard.elapsed() >= time
    }

    /// Records that a request is complete.
    pub(crate) fn note_whole_request(&self) {
        self.receiving.store(false, Ordering::Relaxed);
    }

    /// Records that bytes of an incomplete request came.
    pub(crate) fn note_part_of_request(&self) {
        self.receiving.store(true, Ordering::Relaxed);
        self.heard.store(self.age(), Ordering::Relaxed);
    }

    /// Milliseconds since the connection began.
    fn age(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// True while a streamed answer is sent, so that no probe can be inserted.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is_busy() && self.streaming.load(Ordering::Relaxed)
    }

    /// Requests a probe.
    pub(crate) fn probe(&self) {
        self.probe.store(true, Ordering::Relaxed);
    }

    /// True if a probe must be sent; once for each [`Self::probe`].
    pub(crate) fn take_probe(&self) -> bool {
        self.probe.load(Ordering::Relaxed) && self.probe.swap(false, Ordering::Relaxed)
    }

    /// Waits until a probe is requested.
    pub(crate) async fn probed(&self) {
        poll_fn(|_| if self.take_probe() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Number of requests so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Time of the last answer.
    pub(crate) fn rested(&self) -> Instant {
        self.began + Duration::from_millis(self.rested.load(Ordering::Relaxed))
    }
}

// === impl Busy ===

impl Busy {
    /// Begins a request.
    pub(crate) fn new(state: &Arc<ConnectionState>) -> Self {
        state.busy.store(true, Ordering::Relaxed);
        state.streaming.store(false, Ordering::Relaxed);
        state.probe.store(false, Ordering::Relaxed);
        state.requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }

    /// Records that the answer is streamed.
    pub(crate) fn set_streaming(&self) {
        self.0.streaming.store(true, Ordering::Relaxed);
    }

    /// True if a probe must be sent, to find out if the client is still connected.
    pub(crate) fn take_probe(&self) -> bool {
        self.0.take_probe()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.rested.store(self.0.age(), Ordering::Relaxed);
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_silent_while_the_rest_of_a_request_does_not_come() {
        let state = Arc::new(ConnectionState::new());
        assert!(!state.is_silent_for(SECOND));
        tokio::time::advance(SECOND).await;
        assert!(state.is_silent_for(SECOND), "nothing came");
        state.note_part_of_request();
        let busy = Busy::new(&state);
        assert!(!state.is_silent_for(SECOND), "part of a body has just come");
        tokio::time::advance(SECOND).await;
        assert!(state.is_silent_for(SECOND), "the rest of the body does not come");
        state.note_whole_request();
        tokio::time::advance(SECOND).await;
        assert!(!state.is_silent_for(SECOND), "the request is worked on");
        drop(busy);
        assert!(!state.is_silent_for(SECOND), "the request is answered");
        state.note_part_of_request();
        tokio::time::advance(SECOND).await;
        assert!(state.is_silent_for(SECOND), "the rest of the next head does not come");
    }
}
