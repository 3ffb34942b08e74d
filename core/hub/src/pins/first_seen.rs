//! Batches the approval of servers that are seen for the first time.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures::lock::Mutex as Turn;

use crate::ports::{Newcomer, PinStore, StoreError};

/// Most servers in one batch. Other writers wait for a batch, so it must stay short.
const MOST: usize = 64;

/// Batches servers that are seen for the first time.
///
/// When a gateway starts in a new home, dozens of servers come at once, and storing the definitions
/// of each costs a disk flush. Servers that come during a flush share the next one.
#[derive(Default)]
pub(super) struct FirstSeen {
    /// Weak references: the task that waits for an entry may be dropped.
    waiting: Mutex<Vec<Weak<First>>>,
    turn: Turn<()>,
}

/// A server that waits for its batch.
struct First {
    new: Newcomer,
    /// The result, once another task has stored it.
    outcome: OnceLock<Result<(), Arc<StoreError>>>,
}

// === impl FirstSeen ===

impl FirstSeen {
    /// Approves the list of a server that was never seen; see [`PinStore::begin`].
    pub(super) async fn begin(
        &self,
        store: &dyn PinStore,
        new: Newcomer,
    ) -> Result<(), Arc<StoreError>> {
        let first = Arc::new(First { new, outcome: OnceLock::new() });
        self.waiting().push(Arc::downgrade(&first));
        let _turn = self.turn.lock().await;
        if let Some(outcome) = first.outcome.get() {
            return outcome.clone();
        }
        let mut all = self.next();
        if all.iter().all(|one| !Arc::ptr_eq(one, &first)) {
            // Another task had it in its batch, and was dropped before the end.
            all.push(first);
        }
        let new: Vec<Newcomer> = all.iter().map(|one| one.new.clone()).collect();
        let outcome = store.begin(&new).await.map_err(Arc::new);
        for one in all {
            // No other task can have set it: this one holds the lock.
            drop(one.outcome.set(outcome.clone()));
        }
        outcome
    }

    /// Takes the next batch from the queue, oldest first.
    fn next(&self) -> Vec<Arc<First>> {
        let mut waiting = self.waiting();
        let some = waiting.len().min(MOST);
        waiting.drain(..some).filter_map(|one| one.upgrade()).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Weak<First>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::{join_all, poll_immediate};

    use super::super::tests::Memory;
    use super::*;
    use crate::ports::PinOwner;

    fn new(identity: &str) -> Newcomer {
        let owner = PinOwner { server: "s".parse().unwrap(), identity: identity.to_owned() };
        Newcomer { owner, sum: "x".to_owned(), items: Arc::new([]) }
    }

    async fn seen(store: &Memory) -> usize {
        store.approved_digests().await.unwrap().len()
    }

    #[tokio::test]
    async fn all_who_come_while_one_is_taken_in_are_taken_in_together() {
        let (store, first_seen) = (Memory::whole(), FirstSeen::default());
        let all = (0..50).map(|number| first_seen.begin(&*store, new(&number.to_string())));
        assert!(join_all(all).await.iter().all(Result::is_ok));
        assert_eq!((store.begins(), seen(&store).await), (2, 50));
        first_seen.begin(&*store, new("later")).await.unwrap();
        assert_eq!((store.begins(), seen(&store).await), (3, 51));
    }

    #[tokio::test]
    async fn who_was_taken_along_by_somebody_who_went_away_is_taken_in_all_the_same() {
        let (store, first_seen) = (Memory::whole(), FirstSeen::default());
        let mut first = first_seen.begin(&*store, new("first")).boxed();
        assert!(poll_immediate(&mut first).await.is_none());
        let mut leader = first_seen.begin(&*store, new("leader")).boxed();
        let mut along = first_seen.begin(&*store, new("along")).boxed();
        let gone = first_seen.begin(&*store, new("gone")).boxed();
        for one in [&mut leader, &mut along] {
            assert!(poll_immediate(one).await.is_none());
        }
        drop(gone);
        first.await.unwrap();
        // The leader has the other one in its batch, and is dropped before the end.
        assert!(poll_immediate(&mut leader).await.is_none());
        drop(leader);
        along.await.unwrap();
        assert!(store.approved_digests().await.unwrap().contains_key(&new("along").owner));
        assert!(!store.approved_digests().await.unwrap().contains_key(&new("gone").owner));
    }

    #[tokio::test]
    async fn all_are_told_that_the_store_is_broken() {
        let (store, first_seen) = (Memory::default(), FirstSeen::default());
        let all = (0..50).map(|number| first_seen.begin(&store, new(&number.to_string())));
        assert!(join_all(all).await.iter().all(Result::is_err) && store.begins() == 2);
    }
}
