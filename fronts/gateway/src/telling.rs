//! What happens while a request is worked on, on its way to whoever waits for the answer.
//!
//! Of most requests nothing is told at all, and then a channel costs as much as its handle.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// Messages of one request that wait to be sent.
const MOST: usize = 256;

/// One more has a place that it waits for: however much is told, a question gets through.
const WAITED_FOR: usize = MOST + 1;

/// Where things are told.
pub(crate) struct Teller<T>(Arc<Shared<T>>);

/// Where they come out. Dropped, nobody hears of them any more.
pub(crate) struct Hearer<T>(Arc<Shared<T>>);

/// Why something is not told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Untold<T> {
    /// There is no room for it.
    Full(T),
    /// Nobody hears it.
    Unheard(T),
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// There is room again, or nobody there any more.
    changed: Notify,
}

struct State<T> {
    waiting: VecDeque<T>,
    hearer: Option<Waker>,
    is_heard: bool,
}

/// A new way.
pub(crate) fn channel<T>() -> (Teller<T>, Hearer<T>) {
    let state = State { waiting: VecDeque::new(), hearer: None, is_heard: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
    (Teller(Arc::clone(&shared)), Hearer(shared))
}

// === impl Teller ===

impl<T> Teller<T> {
    /// Tells it if there is room.
    pub(crate) fn try_tell(&self, event: T) -> Result<(), Untold<T>> {
        self.put(event, MOST)
    }

    /// Tells it if there is room for one of so many.
    fn put(&self, event: T, most: usize) -> Result<(), Untold<T>> {
        let mut state = self.0.state();
        if !state.is_heard {
            return Err(Untold::Unheard(event));
        }
        if state.waiting.len() >= most {
            return Err(Untold::Full(event));
        }
        state.waiting.push_back(event);
        let hearer = state.hearer.take();
        drop(state);
        if let Some(hearer) = hearer {
            hearer.wake();
        }
        Ok(())
    }

    /// Tells it when there is room; gives it back when nobody hears it.
    pub(crate) async fn tell(&self, mut event: T) -> Result<(), T> {
        loop {
            // Before the look, so that nothing that changes after it is missed.
            let changed = self.0.changed.notified();
            event = match self.put(event, WAITED_FOR) {
                Ok(()) => return Ok(()),
                Err(Untold::Unheard(event)) => return Err(event),
                Err(Untold::Full(event)) => event,
            };
            changed.await;
        }
    }
}

impl<T> Clone for Teller<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

// === impl Hearer ===

impl<T> Hearer<T> {
    /// What is told next; whoever tells nothing more is waited for, too.
    pub(crate) async fn next(&mut self) -> T {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same, if it was told already.
    pub(crate) fn try_next(&mut self) -> Option<T> {
        self.0.take(&mut self.0.state())
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.state();
        if let Some(event) = self.0.take(&mut state) {
            return Poll::Ready(event);
        }
        if !state.hearer.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.hearer = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Drop for Hearer<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_heard = false;
        let unheard = std::mem::take(&mut state.waiting);
        drop(state);
        // Only now: what is in there may tell something itself when it is dropped.
        drop(unheard);
        self.0.changed.notify_waiters();
    }
}

// === impl Shared ===

impl<T> Shared<T> {
    fn take(&self, state: &mut State<T>) -> Option<T> {
        let event = state.waiting.pop_front()?;
        self.changed.notify_waiters();
        Some(event)
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_told_comes_out_in_order_and_wakes_whoever_waits() {
        let (teller, mut hearer) = channel();
        let hear = async { [hearer.next().await, hearer.next().await, hearer.next().await] };
        let tell = async {
            tokio::task::yield_now().await;
            for number in 0..3 {
                teller.tell(number).await.unwrap();
            }
        };
        assert_eq!(tokio::join!(hear, tell).0, [0, 1, 2]);
        assert_eq!(hearer.try_next(), None);
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_waits_or_comes_back() {
        let (teller, mut hearer) = channel();
        for number in 0..MOST {
            teller.try_tell(number).unwrap();
        }
        assert_eq!(teller.try_tell(MOST), Err(Untold::Full(MOST)));
        teller.tell(MOST).await.unwrap();
        let mut telling = Box::pin(teller.tell(WAITED_FOR));
        assert!((&mut telling).now_or_never().is_none());
        assert_eq!(hearer.next().await, 0);
        // A place that is free is not for what does not wait.
        assert_eq!(teller.try_tell(0), Err(Untold::Full(0)));
        telling.await.unwrap();
    }

    #[tokio::test]
    async fn what_nobody_hears_comes_back_also_to_whoever_waits() {
        let (teller, hearer) = channel();
        for number in 0..WAITED_FOR {
            teller.tell(number).await.unwrap();
        }
        let mut telling = Box::pin(teller.tell(1));
        assert!((&mut telling).now_or_never().is_none());
        drop(hearer);
        assert_eq!(telling.await, Err(1));
        assert_eq!(teller.try_tell(2), Err(Untold::Unheard(2)));
    }

    #[tokio::test]
    async fn whoever_tells_nothing_more_is_waited_for() {
        let (teller, mut hearer) = channel::<()>();
        drop(teller);
        assert!(hearer.next().now_or_never().is_none());
    }
}
