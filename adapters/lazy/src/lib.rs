//! What is found out once for all who wait for it: for servers that are no connection, and for what
//! such servers need.
//!
//! **Invariant:** at any time at most one attempt runs. A caller who goes away does not stop it for
//! the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::{About, BoxFuture, Item, Listing};
use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::Shared;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a failure is believed before another attempt is made.
const BELIEVED: Duration = Duration::from_secs(5);

/// Why there is nothing when whoever would need it is closed.
pub const CLOSED: &str = "it was closed";

/// Something that is found out when it is first needed.
pub struct Attempt<T> {
    made: Mutex<Option<(Link<T>, Instant)>>,
    closing: watch::Sender<bool>,
}

/// What an attempt leads to.
pub type Outcome<T> = Result<Arc<T>, AttemptError>;

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// It did not work.
    #[error("{0}")]
    Failed(String),
    /// A rule about addresses refuses a connection that it needs. Nothing was sent.
    #[error("{0}")]
    Blocked(String),
    /// The server answered, and leads to another one, where we do not go.
    #[error("{0}")]
    Elsewhere(String),
}

/// An attempt, shared by all who wait for it.
pub type Link<T> = Shared<BoxFuture<'static, Outcome<T>>>;

/// What a server that has tools and nothing else offers.
pub struct Offer {
    /// Its tools.
    pub items: Arc<[Item]>,
    /// What it says of itself.
    pub about: Arc<About>,
    /// What is not as it should be.
    pub lacking: Option<String>,
}

// === impl Attempt ===

impl<T> Default for Attempt<T> {
    fn default() -> Self {
        Self { made: Mutex::new(None), closing: watch::Sender::new(false) }
    }
}

impl<T: Send + Sync + 'static> Attempt<T> {
    /// What was found out, or is by `work`, which runs only where nothing is known that holds. What
    /// is `stale` does not, and a failure not for long.
    pub fn get<W>(&self, stale: impl Fn(&Arc<T>) -> bool, work: impl FnOnce() -> W) -> Link<T>
    where
        W: Future<Output = Outcome<T>> + Send + 'static,
    {
        let mut made = lock(&self.made);
        if let Some((link, since)) = made.as_ref() {
            let holds = match link.peek() {
                None => true,
                Some(Ok(known)) => !stale(known),
                // A rule costs nothing to ask again, and its line may have been added.
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
        // Driven by a task of its own, so that a caller who goes away does not stop it for others.
        tokio::spawn(link.clone());
        link
    }

    /// A part of what was found out, where there is something.
    pub fn peek<R>(&self, part: impl FnOnce(&T) -> R) -> Option<R> {
        match lock(&self.made).as_ref()?.0.peek()? {
            Ok(known) => Some(part(known)),
            Err(_) => None,
        }
    }

    /// How it stands, where `lacking` tells what is not as it should be.
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
    /// Ends what runs and lets nothing begin.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until it is closed.
    pub async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // Nobody can be gone who would have to say so: that is us.
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
    /// The error of a call that failed for this.
    pub fn into_error(self, server: &ServerName) -> CallError {
        let server = server.clone();
        match self {
            Self::Failed(reason) => CallError::Unreachable { server, reason },
            Self::Blocked(reason) => CallError::AddressBlocked { server, reason },
            Self::Elsewhere(reason) => CallError::LedElsewhere { server, reason },
        }
    }

    /// The error with words around its own.
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

// === impl Offer ===

impl Offer {
    /// What it has of a kind.
    pub fn list(&self, listing: Listing) -> Arc<[Item]> {
        match listing {
            Listing::Tools => Arc::clone(&self.items),
            Listing::Prompts | Listing::Resources | Listing::Templates => Arc::new([]),
        }
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
        // Of many who find one and the same stale, one gets another.
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
