//! A list that was compared with its pins, and how long the result is reused.

use std::sync::Arc;
use std::time::Duration;

use super::Odd;
use crate::ports::Item;

/// Longest time until an approval by another process takes effect in this one.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Like [`LOOK_AGAIN`], but for a call that would be refused: shorter than it takes to approve a
/// tool and then call it.
const LOOK_CLOSER: Duration = Duration::from_millis(5);

/// A list, and the standing of its tools.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) items: Arc<[Item]>,
    pub(super) odd: Arc<Odd>,
    /// When the comparison started, on the monotonic clock.
    pub(super) at: Duration,
    /// True if the list could be compared; false if the store failed.
    pub(super) compared: bool,
}

/// Checks if an earlier comparison can be reused for a list now.
pub(super) type Enough = fn(&Seen, &Arc<[Item]>, Duration) -> bool;

// === impl Seen ===

impl Seen {
    /// True if the comparison can be reused for this list.
    pub(super) fn is_fresh(&self, items: &Arc<[Item]>, now: Duration) -> bool {
        let is_settled = self.compared && self.odd.is_empty();
        let recent = now.saturating_sub(self.at) < LOOK_AGAIN;
        Arc::ptr_eq(&self.items, items) && (is_settled || recent)
    }

    /// True if the comparison can be reused for a tool that would be refused.
    pub(super) fn is_of_this_moment(&self, items: &Arc<[Item]>, now: Duration) -> bool {
        Arc::ptr_eq(&self.items, items) && now.saturating_sub(self.at) < LOOK_CLOSER
    }

    /// True if this list was compared later than `then`.
    pub(super) fn is_since(&self, items: &Arc<[Item]>, then: Duration) -> bool {
        Arc::ptr_eq(&self.items, items) && self.at > then
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use futures::poll;

    use super::super::PinRules;
    use super::super::tests::{FIRST, LATER, Memory, list, pins_in, server};

    #[tokio::test]
    async fn what_many_want_to_know_at_once_is_looked_up_once() {
        let store = Memory::whole();
        let (pins, items, name) = (pins_in(&store, PinRules::default()), list(FIRST), server());
        let all = join_all((0..50).map(|_| pins.look_at(&name, &items))).await;
        assert!(all.iter().all(|odd| odd.is_empty()));
        // One lookup before the server was recorded, and one after.
        assert_eq!((store.looks(), store.begins()), (2, 1));
        // If a task is dropped midway, the next one does the lookup.
        let other = list(LATER);
        let mut gone = Box::pin(pins.look_at(&name, &other));
        assert!(poll!(&mut gone).is_pending());
        let next = pins.look_at(&name, &other);
        drop(gone);
        assert_eq!(next.await.len(), 2);
    }
}
