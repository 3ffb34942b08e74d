//! Per-client limits on shared resources.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::Caller;

use crate::fairness::client_names::{ClientNetwork, NameCount};

/// The key of the total.
const ALL: u64 = 0;

/// A pool of slots with a limit per client, and half of the pool per remote address.
#[derive(Debug)]
pub(crate) struct FairShares {
    most: usize,
    each: usize,
    taken: Mutex<HashMap<u64, usize>>,
}

/// The key that a client is counted by: caller, client name and, without authentication, address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    name: u64,
    place: Option<(u64, Locality)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Locality {
    Local,
    Remote,
}

/// A slot in use, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<FairShares>,
    peer: Peer,
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(caller: &Caller) -> Self {
        Self::counted(caller, NameCount::Alone)
    }

    pub(crate) fn counted(caller: &Caller, counted: NameCount) -> Self {
        if caller.is_authenticated() {
            return Self { name: hash(&caller.subject), place: None };
        }
        let Some(from) = caller.from else {
            return Self { name: hash((&caller.subject, &caller.client)), place: None };
        };
        let place = ClientNetwork::of(from);
        let name = match counted {
            NameCount::Alone => hash((&caller.subject, name(caller), place)),
            NameCount::Among(place) => hash((&caller.subject, place)),
        };
        let at = if place.is_here() { Locality::Local } else { Locality::Remote };
        Self { name, place: Some((hash(place), at)) }
    }

    /// The number that open questions are counted by: the name on this machine, else the address.
    pub(crate) fn number(self) -> u64 {
        match self.place {
            Some((place, Locality::Remote)) => place,
            Some((_, Locality::Local)) | None => self.name,
        }
    }

    /// The counters that a slot adds to.
    fn counts(self) -> impl Iterator<Item = u64> {
        [ALL, self.name].into_iter().chain(self.place.map(|(place, _)| place))
    }
}

/// The client name without its version: a client could choose any number of versions.
pub(crate) fn name(caller: &Caller) -> &str {
    let client = caller.client.as_deref().unwrap_or_default();
    client.rsplit_once('/').map_or(client, |(name, _)| name)
}

fn hash(what: impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    what.hash(&mut hash);
    // 0 is the key of the total.
    hash.finish().max(1)
}

// === impl FairShares ===

impl FairShares {
    pub(crate) fn new(most: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { most, each, taken: Mutex::default() })
    }

    /// Takes a slot; `None` if no slot is free, or this peer has used its share.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Option<Share> {
        let mut taken = self.taken();
        let count = |who: u64| taken.get(&who).copied().unwrap_or_default();
        let of_place = match peer.place {
            Some((place, Locality::Remote)) => count(place),
            Some((_, Locality::Local)) | None => 0,
        };
        if count(ALL) >= self.most
            || count(peer.name) >= self.each
            || of_place >= self.each.max(self.most / 2)
        {
            return None;
        }
        for who in peer.counts() {
            *taken.entry(who).or_default() += 1;
        }
        drop(taken);
        Some(Share { shares: Arc::clone(self), peer })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Share ===

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        for who in self.peer.counts() {
            if let Some(count) = taken.get_mut(&who) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    taken.remove(&who);
                }
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

    fn stranger(name: &str, address: &str) -> Peer {
        let caller = Caller::stranger(Some(address.parse().unwrap()));
        Peer::of(&Caller { client: Some(name.to_owned()), ..caller })
    }

    #[test]
    fn another_name_or_version_gets_an_address_no_more_than_half_of_all() {
        let shares = FairShares::new(8, 2);
        let take = |name: &str, address: &str| shares.take(stranger(name, address));
        let first = take("a/1", "10.0.0.1").unwrap();
        let _rest = [take("a/1", "10.0.0.1").unwrap(), take("b", "10.0.0.1").unwrap()];
        assert!(take("a/2", "10.0.0.1").is_none(), "another version is no other client");
        let _last = take("c", "10.0.0.1").unwrap();
        for name in ["b", "d", "e", ""] {
            assert!(take(name, "10.0.0.1").is_none(), "{name}");
        }
        let _other = [take("a", "10.0.0.2").unwrap(), take("d", "10.0.0.2").unwrap()];
        drop(first);
        assert!(take("d", "10.0.0.1").is_some());
        // Open questions are counted by address, but not those of this machine.
        let number = |name, address| stranger(name, address).number();
        assert_eq!(number("a", "10.0.0.1"), number("b", "10.0.0.1"));
        assert_ne!(number("a", "10.0.0.1"), number("a", "10.0.0.2"));
        assert_ne!(number("a", "127.0.0.1"), number("b", "127.0.0.1"));
        assert_eq!(number("a/1", "127.0.0.1"), number("a/2", "127.0.0.1"));
    }

    #[test]
    fn clients_of_this_machine_have_all_there_is_and_each_its_share() {
        for here in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let shares = FairShares::new(6, 2);
            let take = |name: &str| shares.take(stranger(name, here));
            let all: Vec<Share> = ["a", "a", "b", "b", "c"].map(|name| take(name).unwrap()).into();
            assert!(take("a").is_none() && take("b").is_none(), "{here}");
            let _last = take("d").unwrap();
            assert!(take("e").is_none() && take("c").is_none(), "there is no more");
            drop(all);
            assert!(take("a").is_some(), "{here}");
        }
    }

    #[test]
    fn nobody_gets_more_than_a_share_and_all_together_no_more_than_there_is() {
        let shares = FairShares::new(3, 2);
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
