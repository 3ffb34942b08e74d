//! Limits how often a network may present tokens that are not valid.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Wrong tokens of one network that are accepted in quick succession.
const BURST: u32 = 20;

/// The time after which one more may follow.
const REFILL: Duration = Duration::from_secs(3);

/// Networks that are remembered; beyond it, the one that may continue first is forgotten.
const MAX_NETWORKS: usize = 10_000;

/// Slots for tokens that were accepted.
const SLOTS: usize = 4096;

/// Counts wrong tokens per network.
pub struct Attempts {
    /// The time at which all attempts of a network are forgotten.
    networks: Mutex<HashMap<IpAddr, Duration>>,
    /// True if there is such a network, so that other requests need no lock.
    any: AtomicBool,
    /// Hashes of tokens that were accepted from their network. A slot keeps the last one.
    accepted: Box<[AtomicU64]>,
}

// === impl Attempts ===

impl Default for Attempts {
    fn default() -> Self {
        Self {
            networks: Mutex::default(),
            any: AtomicBool::new(false),
            accepted: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Attempts {
    /// The time that a network must wait before its next token is looked at, if any.
    pub(crate) fn wait(&self, from: IpAddr, now: Duration) -> Option<Duration> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let until = *self.networks().get(&from)?;
        // One more attempt is possible once there is room for it.
        let full = REFILL * (BURST - 1);
        until.checked_sub(now)?.checked_sub(full).filter(|wait| !wait.is_zero())
    }

    /// Counts a wrong token. Returns true if the network must wait from now on.
    pub(crate) fn failed(&self, from: IpAddr, now: Duration) -> bool {
        let mut networks = self.networks();
        if !networks.contains_key(&from) && networks.len() >= MAX_NETWORKS {
            networks.retain(|_, until| *until > now);
            if networks.len() >= MAX_NETWORKS {
                let first = networks.iter().min_by_key(|(_, until)| **until);
                let first = first.map(|(network, _)| *network);
                first.and_then(|network| networks.remove(&network));
            }
        }
        let until = networks.entry(from).or_insert(now);
        *until = (*until).max(now) + REFILL;
        let is_full = until.saturating_sub(now) > REFILL * (BURST - 1);
        self.any.store(true, Ordering::Relaxed);
        drop(networks);
        is_full
    }

    /// True if this token was accepted from its network before.
    pub(crate) fn was_accepted(&self, pair: u64) -> bool {
        self.slot(pair).is_some_and(|slot| slot.load(Ordering::Relaxed) == pair)
    }

    /// Remembers a token that was accepted. Returns true for the first time.
    pub(crate) fn accepted(&self, pair: u64) -> bool {
        let Some(slot) = self.slot(pair) else { return false };
        if slot.load(Ordering::Relaxed) == pair {
            return false;
        }
        slot.store(pair, Ordering::Relaxed);
        true
    }

    /// Forgets networks whose attempts are long ago.
    pub(crate) fn sweep(&self, now: Duration) {
        let mut networks = self.networks();
        networks.retain(|_, until| *until > now);
        self.any.store(!networks.is_empty(), Ordering::Relaxed);
    }

    fn slot(&self, pair: u64) -> Option<&AtomicU64> {
        let slots = u64::try_from(SLOTS).ok()?;
        self.accepted.get(usize::try_from(pair % slots).ok()?)
    }

    fn networks(&self) -> MutexGuard<'_, HashMap<IpAddr, Duration>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The IP address of a peer, or its /64 network for IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into())
        }
        address @ (IpAddr::V4(_) | IpAddr::V6(_)) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_so_many_wrong_tokens_and_then_one_at_a_time() {
        let (attempts, start) = (Attempts::default(), Duration::from_secs(1000));
        let (here, there) = (ip("10.0.0.1"), ip("10.0.0.2"));
        assert_eq!(attempts.wait(here, start), None);
        for number in 1..=BURST {
            assert_eq!(attempts.wait(here, start), None, "{number}");
            assert_eq!(attempts.failed(here, start), number == BURST, "{number}");
        }
        assert_eq!(attempts.wait(here, start), Some(REFILL));
        assert_eq!(attempts.wait(there, start), None, "another network");
        let later = start + REFILL;
        assert_eq!(attempts.wait(here, later), None);
        attempts.failed(here, later);
        assert_eq!(attempts.wait(here, later), Some(REFILL), "one more only");
        attempts.sweep(later + REFILL * BURST);
        assert_eq!(attempts.wait(here, later), None, "forgotten");
    }

    #[test]
    fn the_table_of_networks_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..u32::try_from(MAX_NETWORKS).unwrap() + 500 {
            attempts.failed(IpAddr::V4(number.into()), Duration::from_secs(1));
        }
        assert_eq!(attempts.networks().len(), MAX_NETWORKS);
    }

    #[test]
    fn a_network_of_one_peer_counts_once() {
        for (one, other) in [("2001:db8::1", "2001:db8::2"), ("::ffff:10.0.0.1", "10.0.0.1")] {
            assert_eq!(network(ip(one)), network(ip(other)));
        }
        for (one, other) in [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8:0:1::1")] {
            assert_ne!(network(ip(one)), network(ip(other)));
        }
    }
}
