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
pub(crate) struct EventSender<T>(Arc<Shared<T>>);

/// Where they come out. Dropped, nobody hears of them any more.
pub(crate) struct EventReceiver<T>(Arc<Shared<T>>);

/// Why something is not told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SendError<T> {
    /// There is no room for it.
    Full(T),
    /// Nobody hears it.
    Closed(T),
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
    receiver: Option<Waker>,
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
pub(crate) fn channel<T: Size>() -> (EventSender<T>, EventReceiver<T>) {
    let state = State { waiting: VecDeque::new(), size: 0, receiver: None, is_heard: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
    (EventSender(Arc::clone(&shared)), EventReceiver(shared))
}

// === impl EventSender ===

impl<T: Size> EventSender<T> {
    /// Tells it if there is room.
    pub(crate) fn try_send(&self, event: T) -> Result<(), SendError<T>> {
        self.put(event, Waits::No)
    }

    fn put(&self, event: T, waits: Waits) -> Result<(), SendError<T>> {
        let mut state = self.0.state();
        if !state.is_heard {
            return Err(SendError::Closed(event));
        }
        let size = state.size + cost(&event);
        // Alone it always has room; so has what is waited for while there is any.
        let has_room = match waits {
            Waits::Yes => state.size <= MOST,
            Waits::No => size <= MOST || state.waiting.is_empty(),
        };
        if !has_room {
            return Err(SendError::Full(event));
        }
        state.size = size;
        state.waiting.push_back(event);
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }

    /// Tells it when there is room; gives it back when nobody hears it.
    pub(crate) async fn send(&self, mut event: T) -> Result<(), T> {
        loop {
            // Before the look, so that nothing that changes after it is missed.
            let changed = self.0.changed.notified();
            event = match self.put(event, Waits::Yes) {
                Ok(()) => return Ok(()),
                Err(SendError::Closed(event)) => return Err(event),
                Err(SendError::Full(event)) => event,
            };
            changed.await;
        }
    }
}

impl<T> Clone for EventSender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

// === impl EventReceiver ===

impl<T: Size> EventReceiver<T> {
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
        if !state.receiver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.receiver = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Drop for EventReceiver<T> {
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
        let (sender, mut receiver) = channel();
        let hear = async { [receiver.next().await, receiver.next().await, receiver.next().await] };
        let send = async {
            tokio::task::yield_now().await;
            for number in 0..3 {
                sender.send(Sized(number)).await.unwrap();
            }
        };
        assert_eq!(tokio::join!(hear, send).0, [0, 1, 2].map(Sized));
        assert_eq!(receiver.try_next(), None);
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_waits_or_comes_back() {
        let (sender, mut receiver) = channel();
        let half = MOST / 2 - EACH;
        sender.try_send(Sized(half)).unwrap();
        sender.try_send(Sized(half)).unwrap();
        assert_eq!(sender.try_send(Sized(0)), Err(SendError::Full(Sized(0))));
        sender.send(Sized(7)).await.unwrap();
        let mut sending = Box::pin(sender.send(Sized(8)));
        assert!((&mut sending).now_or_never().is_none());
        assert_eq!(receiver.next().await, Sized(half));
        sending.await.unwrap();
        assert_eq!(sender.try_send(Sized(half)), Err(SendError::Full(Sized(half))));
        sender.try_send(Sized(half / 2)).unwrap();
        let rest = [(); 4].map(|()| receiver.try_next().unwrap());
        assert_eq!(rest, [half, 7, 8, half / 2].map(Sized));
        // Alone even what is too large has room.
        sender.try_send(Sized(2 * MOST)).unwrap();
    }

    #[tokio::test]
    async fn many_small_things_have_room() {
        let (sender, mut receiver) = channel();
        for _ in 0..4000 {
            sender.try_send(Sized(150)).unwrap();
        }
        assert!((0..4000).all(|_| receiver.try_next() == Some(Sized(150))));
    }

    #[tokio::test]
    async fn what_nobody_hears_comes_back_also_to_whoever_waits() {
        let (sender, receiver) = channel();
        sender.send(Sized(2 * MOST)).await.unwrap();
        let mut sending = Box::pin(sender.send(Sized(1)));
        assert!((&mut sending).now_or_never().is_none());
        drop(receiver);
        assert_eq!(sending.await, Err(Sized(1)));
        assert_eq!(sender.try_send(Sized(2)), Err(SendError::Closed(Sized(2))));
    }

    #[tokio::test]
    async fn whoever_tells_nothing_more_is_waited_for() {
        let (sender, mut receiver) = channel::<Sized>();
        drop(sender);
        assert!(receiver.next().now_or_never().is_none());
    }
}
