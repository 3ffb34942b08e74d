//! What happens while a request is worked on, on its way to whoever waits for the answer.
//!
//! Of most requests nothing is told at all, and then a channel costs as much as its handle.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// What of one request waits to be sent, in bytes. One more thing may come on top of it that its teller
/// waits for: however much is told, a question gets through.
const MOST: usize = 1024 * 1024;

/// What something takes beside its own bytes.
const EACH: usize = 64;

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
    /// Their bytes.
    size: usize,
    hearer: Option<Waker>,
    is_heard: bool,
}

/// Something that can be told.
pub(crate) trait Size {
    /// Its length in bytes.
    fn size(&self) -> usize;
}

/// Whether whoever tells something waits for room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Yes,
    No,
}

/// A new way.
pub(crate) fn channel<T: Size>() -> (Teller<T>, Hearer<T>) {
    let state = State { waiting: VecDeque::new(), size: 0, hearer: None, is_heard: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
    (Teller(Arc::clone(&shared)), Hearer(shared))
}

// === impl Teller ===

impl<T: Size> Teller<T> {
    /// Tells it if there is room.
    pub(crate) fn try_tell(&self, event: T) -> Result<(), Untold<T>> {
        self.put(event, Waits::No)
    }

    fn put(&self, event: T, waits: Waits) -> Result<(), Untold<T>> {
        let mut state = self.0.state();
        if !state.is_heard {
            return Err(Untold::Unheard(event));
        }
        let size = state.size + cost(&event);
        // Alone it always has room; so has what is waited for while there is any.
        let has_room = match waits {
            Waits::Yes => state.size <= MOST,
            Waits::No => size <= MOST || state.waiting.is_empty(),
        };
        if !has_room {
            return Err(Untold::Full(event));
        }
        state.size = size;
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
            event = match self.put(event, Waits::Yes) {
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

impl<T: Size> Hearer<T> {
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
        state.size = 0;
        let unheard = std::mem::take(&mut state.waiting);
        drop(state);
        // Only now: what is in there may tell something itself when it is dropped.
        drop(unheard);
        self.0.changed.notify_waiters();
    }
}

// === impl Shared ===

impl<T: Size> Shared<T> {
    fn take(&self, state: &mut State<T>) -> Option<T> {
        let event = state.waiting.pop_front()?;
        state.size = state.size.saturating_sub(cost(&event));
        self.changed.notify_waiters();
        Some(event)
    }
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What something takes of the room that there is.
fn cost(event: &impl Size) -> usize {
    event.size().saturating_add(EACH)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// As large as it says.
    #[derive(Debug, PartialEq, Eq)]
    struct Sized(usize);

    impl Size for Sized {
        fn size(&self) -> usize {
            self.0
        }
    }

    #[tokio::test]
    async fn what_is_told_comes_out_in_order_and_wakes_whoever_waits() {
        let (teller, mut hearer) = channel();
        let hear = async { [hearer.next().await, hearer.next().await, hearer.next().await] };
        let tell = async {
            tokio::task::yield_now().await;
            for number in 0..3 {
                teller.tell(Sized(number)).await.unwrap();
            }
        };
        assert_eq!(tokio::join!(hear, tell).0, [0, 1, 2].map(Sized));
        assert_eq!(hearer.try_next(), None);
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_waits_or_comes_back() {
        let (teller, mut hearer) = channel();
        let half = MOST / 2 - EACH;
        teller.try_tell(Sized(half)).unwrap();
        teller.try_tell(Sized(half)).unwrap();
        assert_eq!(teller.try_tell(Sized(0)), Err(Untold::Full(Sized(0))));
        teller.tell(Sized(7)).await.unwrap();
        let mut telling = Box::pin(teller.tell(Sized(8)));
        assert!((&mut telling).now_or_never().is_none());
        assert_eq!(hearer.next().await, Sized(half));
        telling.await.unwrap();
        assert_eq!(teller.try_tell(Sized(half)), Err(Untold::Full(Sized(half))));
        teller.try_tell(Sized(half / 2)).unwrap();
        let rest = [(); 4].map(|()| hearer.try_next().unwrap());
        assert_eq!(rest, [half, 7, 8, half / 2].map(Sized));
        // Alone even what is too large has room.
        teller.try_tell(Sized(2 * MOST)).unwrap();
    }

    #[tokio::test]
    async fn many_small_things_have_room() {
        let (teller, mut hearer) = channel();
        for _ in 0..4000 {
            teller.try_tell(Sized(150)).unwrap();
        }
        assert!((0..4000).all(|_| hearer.try_next() == Some(Sized(150))));
    }

    #[tokio::test]
    async fn what_nobody_hears_comes_back_also_to_whoever_waits() {
        let (teller, hearer) = channel();
        teller.tell(Sized(2 * MOST)).await.unwrap();
        let mut telling = Box::pin(teller.tell(Sized(1)));
        assert!((&mut telling).now_or_never().is_none());
        drop(hearer);
        assert_eq!(telling.await, Err(Sized(1)));
        assert_eq!(teller.try_tell(Sized(2)), Err(Untold::Unheard(Sized(2))));
    }

    #[tokio::test]
    async fn whoever_tells_nothing_more_is_waited_for() {
        let (teller, mut hearer) = channel::<Sized>();
        drop(teller);
        assert!(hearer.next().now_or_never().is_none());
    }
}
