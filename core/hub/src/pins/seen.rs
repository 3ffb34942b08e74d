//! A list that was looked at, and for how long that says enough.

use std::sync::Arc;
use std::time::Duration;

use super::Odd;
use crate::ports::Item;

/// How long it takes at most until what another process approved is seen here.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The same, for a tool that is called and would be refused: less than it takes to approve one and
/// call it then.
const LOOK_CLOSER: Duration = Duration::from_millis(5);

/// A list, and how its tools stand.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) items: Arc<[Item]>,
    pub(super) odd: Arc<Odd>,
    /// When it was begun to look at it.
    pub(super) at: Duration,
    /// Whether it could be compared.
    pub(super) compared: bool,
}

/// Whether what was seen says enough about a list now.
pub(super) type Enough = fn(&Seen, &Arc<[Item]>, Duration) -> bool;

// === impl Seen ===

impl Seen {
    /// Whether nothing has to be looked up for this list.
    pub(super) fn is_fresh(&self, items: &Arc<[Item]>, now: Duration) -> bool {
        let is_settled = self.compared && self.odd.is_empty();
        let recent = now.saturating_sub(self.at) < LOOK_AGAIN;
        Arc::ptr_eq(&self.items, items) && (is_settled || recent)
    }

    /// The same, for a tool that would be refused.
    pub(super) fn is_of_this_moment(&self, items: &Arc<[Item]>, now: Duration) -> bool {
        Arc::ptr_eq(&self.items, items) && now.saturating_sub(self.at) < LOOK_CLOSER
    }

    /// Whether this list was looked at later than then.
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
        // Before it was taken in, and after.
        assert_eq!((store.looks(), store.begins()), (2, 1));
        // Somebody who goes away in the middle leaves it to the next.
        let other = list(LATER);
        let mut gone = Box::pin(pins.look_at(&name, &other));
        assert!(poll!(&mut gone).is_pending());
        let next = pins.look_at(&name, &other);
        drop(gone);
        assert_eq!(next.await.len(), 2);
    }
}
