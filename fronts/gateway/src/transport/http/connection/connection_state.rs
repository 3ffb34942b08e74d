//! The state of a connection that its requests, its answers and its reader share.
//!
//! All of them run in the task of the connection, one after the other, so that a flag is seen by the
//! others the next time that they are polled, and none of them has to be woken.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// Flags and times of one connection.
pub(crate) struct ConnectionState {
    began: Instant,
    /// Requests so far.
    requests: AtomicU32,
    /// Whether a request is worked on, or its answer sent.
    busy: AtomicBool,
    /// Whether its answer is sent on while it comes.
    streaming: AtomicBool,
    /// Whether something is to be sent, to find out whether the client is still there.
    probe: AtomicBool,
    /// When the last answer was sent, in milliseconds since the connection began.
    rested: AtomicU64,
    /// Whether a request has begun to come and is not complete.
    receiving: AtomicBool,
    /// When bytes of an incomplete request last came, in milliseconds since the connection began.
    heard: AtomicU64,
}

/// A request is worked on for as long as this is there.
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
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Whether the connection is only kept for further requests.
    pub(crate) fn is_resting(&self) -> bool {
        !self.is_busy() && self.requests() > 0
    }

    /// Whether the first request, or the rest of an incomplete one, is awaited and no byte of it came
    /// for `time`.
    pub(crate) fn is_silent_for(&self, time: Duration) -> bool {
        let heard = self.began + Duration::from_millis(self.heard.load(Ordering::Relaxed));
        let is_awaited = self.requests() == 0 || self.receiving.load(Ordering::Relaxed);
        is_awaited && heard.elapsed() >= time
    }

    /// Notes that all of a request came.
    pub(crate) fn note_whole_request(&self) {
        self.receiving.store(false, Ordering::Relaxed);
    }

    /// Notes that bytes of a request came, and not its end.
    pub(crate) fn note_part_of_request(&self) {
        self.receiving.store(true, Ordering::Relaxed);
        self.heard.store(self.age(), Ordering::Relaxed);
    }

    /// Milliseconds since the connection began.
    fn age(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether an answer is sent on while it comes, so that nothing can be put in between.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is_busy() && self.streaming.load(Ordering::Relaxed)
    }

    /// Asks for something to be sent.
    pub(crate) fn probe(&self) {
        self.probe.store(true, Ordering::Relaxed);
    }

    /// Whether something is to be sent; true once for each [`Self::probe`].
    pub(crate) fn take_probe(&self) -> bool {
        self.probe.load(Ordering::Relaxed) && self.probe.swap(false, Ordering::Relaxed)
    }

    /// Waits until something is to be sent.
    pub(crate) async fn probed(&self) {
        poll_fn(|_| if self.take_probe() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// When the last answer was sent.
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

    /// Notes that the answer is sent on while it comes.
    pub(crate) fn set_streaming(&self) {
        self.0.streaming.store(true, Ordering::Relaxed);
    }

    /// Whether something is to be sent, to find out whether the client is still there.
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
