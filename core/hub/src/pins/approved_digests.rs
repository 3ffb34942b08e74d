//! Single-flight lookup of the servers that were seen and of the lists that are approved as a
//! whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::lock::Mutex;

use crate::ports::{PinOwner, PinStore, StoreError};

/// The store's digests of all servers, shared by concurrent lookups.
///
/// When a gateway starts, dozens of lists come at once, and each is needed by several tasks.
///
/// **Invariant:** a lookup never returns a result that was read before the lookup began.
#[derive(Default)]
pub(super) struct ApprovedDigests {
    asked: AtomicU64,
    /// An async lock: the holder reads the store, and the tasks that wait share its result.
    latest: Mutex<Latest>,
}

/// The latest result.
#[derive(Default)]
struct Latest {
    /// The number of lookups that had begun before the store was read.
    asked: u64,
    found: Option<Found>,
}

type Found = Result<Arc<HashMap<PinOwner, Option<String>>>, Arc<StoreError>>;

// === impl ApprovedDigests ===

impl ApprovedDigests {
    /// Returns the servers that were seen, with the digests of the lists that are approved as a
    /// whole.
    pub(super) async fn get(&self, store: &dyn PinStore) -> Found {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut latest = self.latest.lock().await;
        match &latest.found {
            Some(found) if latest.asked >= number => found.clone(),
            Some(_) | None => {
                let asked = self.asked.load(Ordering::Acquire);
                let found = store.approved_digests().await.map(Arc::new).map_err(Arc::new);
                *latest = Latest { asked, found: Some(found.clone()) };
                found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::{join, join_all};

    use super::super::tests::Memory;
    use super::*;
    use crate::ports::Newcomer;

    #[tokio::test]
    async fn all_who_ask_at_once_share_what_is_looked_up_after_they_asked() {
        let (store, approved_digests) = (Memory::whole(), ApprovedDigests::default());
        let all = join_all((0..50).map(|_| approved_digests.get(&*store))).await;
        // One read for the first lookup, and one for all that came meanwhile.
        assert_eq!((all.len(), store.looks()), (50, 2));
        assert!(all.iter().all(Result::is_ok));
        approved_digests.get(&*store).await.unwrap();
        assert_eq!(store.looks(), 3);
    }

    #[tokio::test]
    async fn what_is_approved_while_others_look_is_seen_by_whoever_asks_then() {
        let (store, approved_digests) = (Memory::whole(), ApprovedDigests::default());
        let owner = PinOwner { server: "s".parse().unwrap(), identity: String::new() };
        let later = async {
            let (owner, sum) = (owner.clone(), "x".to_owned());
            let new = Newcomer { owner: owner.clone(), sum, items: Arc::new([]) };
            store.begin(&[new]).await.unwrap();
            approved_digests.get(&*store).await.unwrap().get(&owner).cloned().flatten()
        };
        let (before, later) = join(approved_digests.get(&*store), later).await;
        assert_eq!((before.unwrap().len(), later.as_deref()), (0, Some("x")));
    }

    #[tokio::test]
    async fn a_store_that_is_broken_is_not_asked_by_each_again() {
        let (store, approved_digests) = (Memory::default(), ApprovedDigests::default());
        let all = join_all((0..50).map(|_| approved_digests.get(&store))).await;
        assert!(all.iter().all(Result::is_err) && store.looks() == 2);
    }
}
