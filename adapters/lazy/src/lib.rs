//! Single-flight lazy values, servers whose tools are one (they are read on first use), and servers
//! whose settings are completed when they connect.
//!
//! **Invariant:** at most one attempt runs at any time. A caller that is dropped does not stop it
//! for the others.

mod deferred;
mod tool_server;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::BoxFuture;
use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::Shared;
use tokio::sync::watch;
use tokio::time::Instant;

pub use deferred::{Completed, Completion, DeferredServer};
pub use tool_server::{Offer, ToolServer, ToolSource};

/// How long a failure is cached before another attempt is made.
const BELIEVED: Duration = Duration::from_secs(5);

/// The error after the value was closed.
pub const CLOSED: &str = "it was closed";

/// A single-flight lazy value, shared by concurrent callers.
pub struct Attempt<T> {
    made: Mutex<Option<(Link<T>, Instant)>>,
    closing: watch::Sender<bool>,
}

/// The result of an attempt.
pub type Outcome<T> = Result<Arc<T>, AttemptError>;

/// The reason why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The attempt failed.
    #[error("{0}")]
    Failed(String),
    /// An address rule refuses a connection that the attempt needs. Nothing was sent.
    #[error("{0}")]
    Blocked(String),
    /// The server answered with a redirect to another server, which is not followed.
    #[error("{0}")]
    Elsewhere(String),
}

/// An attempt, shared by all callers that wait for it.
pub type Link<T> = Shared<BoxFuture<'static, Outcome<T>>>;

// === impl Attempt ===

impl<T> Default for Attempt<T> {
    fn default() -> Self {
        Self { made: Mutex::new(None), closing: watch::Sender::new(false) }
    }
}

impl<T: Send + Sync + 'static> Attempt<T> {
    /// Returns the cached value, or starts `work` if there is none that is valid. A `stale` value
    /// is not valid, and a failure is cached only briefly.
    pub fn get<W>(&self, stale: impl Fn(&Arc<T>) -> bool, work: impl FnOnce() -> W) -> Link<T>
    where
        W: Future<Output = Outcome<T>> + Send + 'static,
    {
        let mut made = lock(&self.made);
        if let Some((link, since)) = made.as_ref() {
            let holds = match link.peek() {
                None => true,
                Some(Ok(known)) => !stale(known),
                // Checking a rule again costs nothing, and the operator may have allowed the
                // address by now.
                Some(Err(AttemptError::Blocked(_))) => false,
                Some(Err(AttemptError::Failed(_) | AttemptError::Elsewhere(_))) => {
                    since.elapsed() < BELIEVED
                }
            };
            if holds {
                return link.clone();
            }
        }
        let (mut closing, work) = (self.closing.subscribe(), work());
        let link: Link<T> = async move {
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => Err(CLOSED.to_owned().into()),
                outcome = work => outcome,
            }
        }
        .boxed()
        .shared();
        *made = Some((link.clone(), Instant::now()));
        drop(made);
        // Driven by a task of its own, so that a caller that is dropped does not stop it for
        // others.
        tokio::spawn(link.clone());
        link
    }

    /// Returns a part of the value, if there is one.
    pub fn peek<R>(&self, part: impl FnOnce(&T) -> R) -> Option<R> {
        match lock(&self.made).as_ref()?.0.peek()? {
            Ok(known) => Some(part(known)),
            Err(_) => None,
        }
    }

    /// The state of the server; `lacking` returns the reason why it is degraded, if it is.
    pub fn state(&self, lacking: impl Fn(&T) -> Option<&String>) -> ServerState {
        match lock(&self.made).as_ref().map(|(link, _)| link.peek()) {
            None => ServerState::Idle,
            Some(None) => ServerState::Connecting,
            Some(Some(Ok(known))) => match lacking(known) {
                Some(lacking) => ServerState::Degraded(lacking.clone()),
                None => ServerState::Connected,
            },
            Some(Some(Err(error))) => ServerState::Failed(error.to_string()),
        }
    }
}

impl<T> Attempt<T> {
    /// Stops the running attempt and lets no other begin.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// True if it was closed.
    pub fn is_closed(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until it is closed.
    pub async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // `self` owns the sender, so waiting cannot fail.
        drop(closing.wait_for(|closing| *closing).await);
    }
}

impl<T> Drop for Attempt<T> {
    fn drop(&mut self) {
        self.close();
    }
}

// === impl AttemptError ===

impl AttemptError {
    /// Converts the failure into the error of the call that failed.
    pub fn into_error(self, server: &ServerName) -> CallError {
        let server = server.clone();
        match self {
            Self::Failed(reason) => CallError::Unreachable { server, reason },
            Self::Blocked(reason) => CallError::AddressBlocked { server, reason },
            Self::Elsewhere(reason) => CallError::LedElsewhere { server, reason },
        }
    }

    /// Adds context to the error's message.
    #[must_use]
    pub fn within(self, words: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Failed(reason) => Self::Failed(words(&reason)),
            Self::Blocked(reason) => Self::Blocked(words(&reason)),
            Self::Elsewhere(reason) => Self::Elsewhere(words(&reason)),
        }
    }
}

impl From<String> for AttemptError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_attempt_serves_all_and_what_failed_or_is_stale_is_tried_again() {
        let (attempt, made) = (Attempt::<usize>::default(), Arc::new(AtomicUsize::new(0)));
        let next = || {
            let made = Arc::clone(&made);
            async move {
                tokio::task::yield_now().await;
                let count = made.fetch_add(1, Ordering::Relaxed);
                if count == 0 { Err("not yet".to_owned().into()) } else { Ok(Arc::new(count)) }
            }
        };
        let get = || attempt.get(|_| false, next);
        let not_yet = || AttemptError::Failed("not yet".to_owned());
        assert_eq!(futures::join!(get(), get()), (Err(not_yet()), Err(not_yet())));
        assert_eq!(get().await, Err(not_yet()), "a failure is believed for a while");
        tokio::time::advance(BELIEVED).await;
        assert_eq!(*get().await.unwrap(), 1);
        // If many callers find the same value stale, only one renews it.
        let refused = get().await.unwrap();
        let renew = || attempt.get(|known| Arc::ptr_eq(known, &refused), next);
        assert_eq!(futures::join!(renew(), renew()), (Ok(Arc::new(2)), Ok(Arc::new(2))));
        assert_eq!(*renew().await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_refusal_before_anything_was_sent_is_not_believed() {
        for (error, expected) in [
            (AttemptError::Blocked("10.0.0.1".to_owned()), 30),
            (AttemptError::Elsewhere("a redirect".to_owned()), 1),
            (AttemptError::Failed("it ended".to_owned()), 1),
        ] {
            let (attempt, mut made) = (Attempt::<()>::default(), 0);
            for _ in 0..30 {
                let told = attempt.get(
                    |_| false,
                    || {
                        made += 1;
                        std::future::ready(Err(error.clone()))
                    },
                );
                assert_eq!(told.await, Err(error.clone()));
                tokio::time::advance(BELIEVED / 50).await;
            }
            assert_eq!(made, expected, "{error}");
        }
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_stops_nobody_and_closing_stops_all() {
        let attempt = Arc::new(Attempt::<()>::default());
        let (begun, gate) = (Arc::new(tokio::sync::Notify::new()), Arc::clone(&attempt));
        let first = Arc::clone(&begun);
        let caller = tokio::spawn(async move {
            let work = || async move {
                first.notify_one();
                std::future::pending().await
            };
            gate.get(|_| false, work).await
        });
        begun.notified().await;
        caller.abort();
        assert_eq!(attempt.state(|()| None), ServerState::Connecting);
        attempt.close();
        let again = attempt.get(|_| false, || async { Ok(Arc::new(())) }).await;
        assert_eq!(again, Err(CLOSED.to_owned().into()));
        attempt.closed().await;
        assert!(attempt.is_closed());
    }
}
