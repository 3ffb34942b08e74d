//! What becomes known of a request while its reply is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::sync::Notify;

/// What tells a waiting request that more time is needed, and others that it is over.
#[derive(Debug, Default)]
pub(crate) struct DeadlineSignals {
    /// Who waits for the reply; there is only one.
    waiting: AtomicWaker,
    /// Progress was made, or a question opened or closed.
    changed: AtomicBool,
    progressed: AtomicBool,
    /// Questions that are open.
    questions: AtomicUsize,
    /// Whether the request is over, and who is to know.
    ended: AtomicBool,
    over: Notify,
}

/// Says that a request is over, when it is dropped.
pub(crate) struct EndSignal(Arc<DeadlineSignals>);

// === impl DeadlineSignals ===

impl DeadlineSignals {
    /// Notes progress.
    pub(crate) fn progress(&self) {
        self.progressed.store(true, Ordering::Release);
        self.change();
    }

    /// Whether progress was made since this was asked last.
    pub(crate) fn take_progress(&self) -> bool {
        self.progressed.swap(false, Ordering::AcqRel)
    }

    /// Notes that a question is open.
    pub(crate) fn ask(&self) {
        self.questions.fetch_add(1, Ordering::AcqRel);
        self.change();
    }

    /// Notes that one is no longer.
    pub(crate) fn answer(&self) {
        self.questions.fetch_sub(1, Ordering::AcqRel);
        self.change();
    }

    /// Whether questions are open.
    pub(crate) fn is_asking(&self) -> bool {
        self.questions.load(Ordering::Acquire) > 0
    }

    /// Ready when something has changed since this was asked last.
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
