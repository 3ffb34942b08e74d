//! Unauthenticated clients are told apart by name and IP address.
//!
//! The first eight names per address get their own limits; the rest share one, so that a client
//! cannot evade limits with new names.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Names per network that are counted individually; all further names share one count.
pub(crate) const MAX_NAMES: usize = 8;

/// Maximum number of networks; above it, the one that was idle longest is removed.
const MAX_PLACES: usize = 10_000;

/// A name is removed after this time without a request.
const IDLE: Duration = Duration::from_mins(30);

/// The names per network, with the time of the last request of each.
#[derive(Default)]
pub(crate) struct ClientNames(Mutex<HashMap<ClientNetwork, HashMap<String, Duration>>>);

/// The IP address of a client, or its /64 network for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(IpAddr);

/// How an unauthenticated client is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameCount {
    /// Individually, by its name.
    Alone,
    /// Together with all other clients of its network beyond the first names.
    Among(ClientNetwork),
}

// === impl ClientNetwork ===

impl ClientNetwork {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Self(IpAddr::V6(network.into()))
            }
            address @ (IpAddr::V4(_) | IpAddr::V6(_)) => Self(address),
        }
    }

    /// True for the local machine.
    pub(crate) fn is_here(self) -> bool {
        self.0.is_loopback()
    }
}

// === impl ClientNames ===

impl ClientNames {
    /// Returns how a client with this name is counted.
    pub(crate) fn count(&self, place: ClientNetwork, name: &str, now: Duration) -> NameCount {
        let mut places = self.places();
        if !places.contains_key(&place) && places.len() >= MAX_PLACES {
            let last = |names: &HashMap<String, Duration>| names.values().max().copied();
            let quiet = places.iter().min_by_key(|(_, names)| last(names)).map(|(place, _)| *place);
            quiet.and_then(|quiet| places.remove(&quiet));
        }
        let names = places.entry(place).or_default();
        let counted = if let Some(heard) = names.get_mut(name) {
            *heard = now;
            NameCount::Alone
        } else if names.len() < MAX_NAMES {
            names.insert(name.to_owned(), now);
            NameCount::Alone
        } else {
            NameCount::Among(place)
        };
        drop(places);
        counted
    }

    /// Removes names that have been idle for too long.
    pub(crate) fn sweep(&self, now: Duration) {
        self.places().retain(|_, names| {
            names.retain(|_, heard| now.saturating_sub(*heard) < IDLE);
            !names.is_empty()
        });
    }

    fn places(&self) -> MutexGuard<'_, HashMap<ClientNetwork, HashMap<String, Duration>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str) -> ClientNetwork {
        ClientNetwork::of(address.parse().unwrap())
    }

    #[test]
    fn a_place_has_so_many_names_and_further_ones_count_together() {
        let (names, here, there) = (ClientNames::default(), place("10.0.0.1"), place("10.0.0.2"));
        let now = Duration::from_secs(1);
        for number in 0..MAX_NAMES {
            assert_eq!(names.count(here, &number.to_string(), now), NameCount::Alone);
        }
        for number in MAX_NAMES..3 * MAX_NAMES {
            assert_eq!(names.count(here, &number.to_string(), now), NameCount::Among(here));
        }
        assert_eq!(names.count(here, "0", now + IDLE / 2), NameCount::Alone);
        assert_eq!(names.count(there, "99", now), NameCount::Alone, "another place");
        names.sweep(now + IDLE);
        assert_eq!(names.count(here, "0", now + IDLE), NameCount::Alone);
        assert_eq!(names.count(here, "99", now + IDLE), NameCount::Alone, "others were quiet");
    }

    #[test]
    fn a_network_of_one_client_is_one_place() {
        let same =
            [("::1", "::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::2")];
        for (one, other) in same {
            assert_eq!(place(one), place(other));
        }
        let different =
            [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8:0:1::1"), ("::1", "::2")];
        for (one, other) in different {
            assert_ne!(place(one), place(other));
        }
        assert!(place("127.0.0.1").is_here() && place("::1").is_here());
        assert!(!place("10.0.0.1").is_here() && !place("2001:db8::1").is_here());
    }
}
