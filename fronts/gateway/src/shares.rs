//! What is there for all, of which nobody gets more than a part.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::Caller;

/// So many places, of which each peer may have so many.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    each: usize,
    taken: Mutex<HashMap<Peer, usize>>,
}

/// Who shares: a caller with the name that its client gives itself. Where callers are not asked who
/// they are, that name is all there is to tell clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer(u64);

/// A place that somebody has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    peer: Peer,
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(caller: &Caller) -> Self {
        let mut hash = DefaultHasher::new();
        (&caller.subject, &caller.client).hash(&mut hash);
        // 0 stands for somebody who is alone.
        Self(hash.finish().max(1))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

// === impl Shares ===

impl Shares {
    pub(crate) fn new(most: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { most, each, taken: Mutex::default() })
    }

    /// A place; `None` when there is none left, or this peer has its share.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Option<Share> {
        let mut taken = self.taken();
        let of_peer = taken.get(&peer).copied().unwrap_or_default();
        if of_peer >= self.each || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(peer, of_peer + 1);
        drop(taken);
        Some(Share { shares: Arc::clone(self), peer })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Peer, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Share ===

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        if let Some(count) = taken.get_mut(&self.peer) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::Front;

    use super::*;

    fn peer(subject: &str, client: Option<&str>) -> Peer {
        let client = client.map(ToOwned::to_owned);
        Peer::of(&Caller { client, ..Caller::named(subject, Front::Gateway) })
    }

    #[test]
    fn nobody_gets_more_than_a_share_and_all_together_no_more_than_there_is() {
        let shares = Shares::new(3, 2);
        let (ann, bob, eve) = (peer("ann", None), peer("bob", None), peer("bob", Some("eve")));
        let first = shares.take(ann).unwrap();
        let _second = shares.take(ann).unwrap();
        assert!(shares.take(ann).is_none(), "ann has her share");
        let third = shares.take(bob).unwrap();
        assert!(shares.take(bob).is_none() && shares.take(eve).is_none(), "there is no more");
        drop(first);
        drop(third);
        let _fourth = (shares.take(ann).unwrap(), shares.take(eve).unwrap());
        assert!(shares.take(bob).is_none());
    }
}
