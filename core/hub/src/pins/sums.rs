//! Which servers were seen and which lists are known to be approved as a whole, looked up for many
//! at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::lock::Mutex;

use crate::ports::{PinOwner, PinStore, StoreError};

/// What the store says of all servers, for everybody who asks at the same time.
///
/// When a gateway begins, dozens of lists come at once, and each is wanted by several.
///
/// **Invariant:** nobody is told what was looked up before they asked.
#[derive(Default)]
pub(super) struct Sums {
    asked: AtomicU64,
    /// Waited for, and not only locked: whoever has it looks up, and the others take what was found.
    latest: Mutex<Latest>,
}

/// What was found last.
#[derive(Default)]
struct Latest {
    /// How many had asked before it was looked up.
    asked: u64,
    found: Option<Found>,
}

type Found = Result<Arc<HashMap<PinOwner, Option<String>>>, Arc<StoreError>>;

// === impl Sums ===

impl Sums {
    /// The servers that were seen, with the sums of the lists that are approved as a whole.
    pub(super) async fn get(&self, store: &dyn PinStore) -> Found {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut latest = self.latest.lock().await;
        match &latest.found {
            Some(found) if latest.asked >= number => found.clone(),
            Some(_) | None => {
                let asked = self.asked.load(Ordering::Acquire);
                let found = store.sums().await.map(Arc::new).map_err(Arc::new);
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
        let (store, sums) = (Memory::whole(), Sums::default());
        let all = join_all((0..50).map(|_| sums.get(&*store))).await;
        // For the first one, and for all who came meanwhile.
        assert_eq!((all.len(), store.looks()), (50, 2));
        assert!(all.iter().all(Result::is_ok));
        sums.get(&*store).await.unwrap();
        assert_eq!(store.looks(), 3);
    }

    #[tokio::test]
    async fn what_is_approved_while_others_look_is_seen_by_whoever_asks_then() {
        let (store, sums) = (Memory::whole(), Sums::default());
        let owner = PinOwner { server: "s".parse().unwrap(), identity: String::new() };
        let later = async {
            let (owner, sum) = (owner.clone(), "x".to_owned());
            let new = Newcomer { owner: owner.clone(), sum, items: Arc::new([]) };
            store.begin(&[new]).await.unwrap();
            sums.get(&*store).await.unwrap().get(&owner).cloned().flatten()
        };
        let (before, later) = join(sums.get(&*store), later).await;
        assert_eq!((before.unwrap().len(), later.as_deref()), (0, Some("x")));
    }

    #[tokio::test]
    async fn a_store_that_is_broken_is_not_asked_by_each_again() {
        let (store, sums) = (Memory::default(), Sums::default());
        let all = join_all((0..50).map(|_| sums.get(&store))).await;
        assert!(all.iter().all(Result::is_err) && store.looks() == 2);
    }
}
