//! Signals between a pending request and the code that handles its progress and questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::sync::Notify;

/// Extends or pauses the deadline of a waiting request, and signals its end to others.
#[derive(Debug, Default)]
pub(crate) struct DeadlineSignals {
    /// The task that waits for the reply; there is only one.
    waiting: AtomicWaker,
    /// Set when progress is made, or a question is opened or closed.
    changed: AtomicBool,
    progressed: AtomicBool,
    /// The number of open questions.
    questions: AtomicUsize,
    /// True if the request is over; `over` wakes the tasks that wait for that.
    ended: AtomicBool,
    over: Notify,
}

/// Signals the end of a request when it is dropped.
pub(crate) struct EndSignal(Arc<DeadlineSignals>);

// === impl DeadlineSignals ===

impl DeadlineSignals {
    /// Records progress.
    pub(crate) fn progress(&self) {
        self.progressed.store(true, Ordering::Release);
        self.change();
    }

    /// True if progress was made since the last call.
    pub(crate) fn take_progress(&self) -> bool {
        self.progressed.swap(false, Ordering::AcqRel)
    }

    /// Records that a question is open.
    pub(crate) fn ask(&self) {
        self.questions.fetch_add(1, Ordering::AcqRel);
        self.change();
    }

    /// Records that a question is closed.
    pub(crate) fn answer(&self) {
        self.questions.fetch_sub(1, Ordering::AcqRel);
        self.change();
    }

    /// True if questions are open.
    pub(crate) fn is_asking(&self) -> bool {
        self.questions.load(Ordering::Acquire) > 0
    }

    /// Ready if something has changed since the last call.
    pub(crate) fn poll_changed(&self, cx: &Context<'_>) -> Poll<()> {
        self.waiting.register(cx.waker());
        let has_changed = self.changed.swap(false, Ordering::AcqRel);
        if has_changed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until the request is over.
    pub(crate) async fn over(&self) {
        let over = self.over.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        if !self.ended.load(Ordering::Acquire) {
            over.await;
        }
    }

    fn change(&self) {
        self.changed.store(true, Ordering::Release);
        self.waiting.wake();
    }
}

// === impl EndSignal ===

impl EndSignal {
    pub(crate) fn of(signals: &Arc<DeadlineSignals>) -> Self {
        Self(Arc::clone(signals))
    }
}

impl Drop for EndSignal {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.over.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_change_is_told_once_whether_it_came_before_or_after_the_look() {
        let signals = DeadlineSignals::default();
        let look = || poll_fn(|cx| signals.poll_changed(cx)).now_or_never();
        assert_eq!(look(), None);
        signals.progress();
        signals.ask();
        assert_eq!((look(), look()), (Some(()), None));
        assert!(signals.take_progress() && !signals.take_progress() && signals.is_asking());
        signals.answer();
        assert_eq!((look(), look()), (Some(()), None));
        assert!(!signals.is_asking());
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_by_a_change() {
        let signals = DeadlineSignals::default();
        let changed = poll_fn(|cx| signals.poll_changed(cx));
        let change = async {
            tokio::task::yield_now().await;
            signals.progress();
        };
        tokio::join!(changed, change);
    }
}
