//! The channel from the task of a request to its exchange, bounded by bytes.
//!
//! Most requests send no event; an empty channel allocates nothing but its handle.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// Maximum number of bytes in one channel.
///
/// One awaited event may exceed it, so that a question always gets through.
const MOST: usize = 1024 * 1024;

/// Overhead of one event, in bytes.
const EACH: usize = 64;

/// The sending side.
pub(crate) struct EventSender<T>(Arc<Shared<T>>);

/// The receiving side. Dropping it closes the channel.
pub(crate) struct EventReceiver<T>(Arc<Shared<T>>);

/// The reason why an event was not sent. The event is returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SendError<T> {
    /// The channel is full.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// Notified when there is room again, or when the channel is closed.
    changed: Notify,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Their bytes.
    size: usize,
    receiver: Option<Waker>,
    is_heard: bool,
}

/// An event with a size.
pub(crate) trait Size {
    /// Its length in bytes.
    fn size(&self) -> usize;
}

/// The behaviour of a send without room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenFull {
    Wait,
    Fail,
}

/// Creates a channel.
pub(crate) fn channel<T: Size>() -> (EventSender<T>, EventReceiver<T>) {
    let state = State { waiting: VecDeque::new(), size: 0, receiver: None, is_heard: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
    (EventSender(Arc::clone(&shared)), EventReceiver(shared))
}

// === impl EventSender ===

impl<T: Size> EventSender<T> {
    /// Sends an event if there is room.
    pub(crate) fn try_send(&self, event: T) -> Result<(), SendError<T>> {
        self.put(event, WhenFull::Fail)
    }

    fn put(&self, event: T, when_full: WhenFull) -> Result<(), SendError<T>> {
        let mut state = self.0.state();
        if !state.is_heard {
            return Err(SendError::Closed(event));
        }
        let size = state.size + cost(&event);
        // Any event fits into an empty channel; an awaited one fits as long as the limit is not
        // exceeded.
        let has_room = match when_full {
            WhenFull::Wait => state.size <= MOST,
            WhenFull::Fail => size <= MOST || state.waiting.is_empty(),
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

    /// Waits for room and sends an event; returns it if the receiver is gone.
    pub(crate) async fn send(&self, mut event: T) -> Result<(), T> {
        loop {
            // Created before the check, so that no notification is missed.
            let changed = self.0.changed.notified();
            event = match self.put(event, WhenFull::Wait) {
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
    /// The next event. Never ends, also when all senders are gone.
    pub(crate) async fn next(&mut self) -> T {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event, if there is one.
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
        // Outside of the lock: dropping an event may send another.
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

/// The cost of an event: its size and overhead.
fn cost(event: &impl Size) -> usize {
    event.size().saturating_add(EACH)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// An event of this size.
    #[derive(Debug, PartialEq, Eq)]
    struct Sized(usize);

    impl Size for Sized {
        fn size(&self) -> usize {
            self.0
        }
    }

    #[tokio::test]
    async fn events_arrive_in_order_and_wake_the_receiver() {
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
    async fn an_event_without_room_waits_or_is_returned() {
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
        // Even an oversized event fits into an empty channel.
        sender.try_send(Sized(2 * MOST)).unwrap();
    }

    #[tokio::test]
    async fn many_small_events_have_room() {
        let (sender, mut receiver) = channel();
        for _ in 0..4000 {
            sender.try_send(Sized(150)).unwrap();
        }
        assert!((0..4000).all(|_| receiver.try_next() == Some(Sized(150))));
    }

    #[tokio::test]
    async fn a_closed_channel_returns_events_also_to_a_waiting_sender() {
        let (sender, receiver) = channel();
        sender.send(Sized(2 * MOST)).await.unwrap();
        let mut sending = Box::pin(sender.send(Sized(1)));
        assert!((&mut sending).now_or_never().is_none());
        drop(receiver);
        assert_eq!(sending.await, Err(Sized(1)));
        assert_eq!(sender.try_send(Sized(2)), Err(SendError::Closed(Sized(2))));
    }

    #[tokio::test]
    async fn a_receiver_waits_also_without_senders() {
        let (sender, mut receiver) = channel::<Sized>();
        drop(sender);
        assert!(receiver.next().now_or_never().is_none());
    }
}
