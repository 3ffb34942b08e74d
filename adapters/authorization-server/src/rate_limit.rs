//! Limits on attempts, counted in windows of time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most keys that are counted at the same time.
const MAX_KEYS: usize = 10_000;

/// Counts attempts per key.
pub(crate) struct RateLimit<K> {
    window: Duration,
    most: u32,
    counts: Mutex<HashMap<K, Count>>,
}

struct Count {
    since: Duration,
    attempts: u32,
}

// === impl RateLimit ===

impl<K: Hash + Eq> RateLimit<K> {
    pub(crate) fn new(most: u32, window: Duration) -> Self {
        Self { window, most, counts: Mutex::default() }
    }

    /// Counts an attempt. Returns false if there were too many.
    pub(crate) fn admit(&self, key: K, now: Duration) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_KEYS && !counts.contains_key(&key) {
            counts.retain(|_, count| now.saturating_sub(count.since) < self.window);
            if counts.len() >= MAX_KEYS {
                return false;
            }
        }
        let count = counts.entry(key).or_insert(Count { since: now, attempts: 0 });
        if now.saturating_sub(count.since) >= self.window {
            *count = Count { since: now, attempts: 0 };
        }
        count.attempts = count.attempts.saturating_add(1);
        let attempts = count.attempts;
        drop(counts);
        attempts <= self.most
    }

    /// True if there were too many attempts; counts none.
    pub(crate) fn is_exhausted(&self, key: &K, now: Duration) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(key).is_some_and(|count| {
            now.saturating_sub(count.since) < self.window && count.attempts >= self.most
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_by_key_and_forgotten_after_the_window() {
        let limit = RateLimit::new(2, Duration::from_mins(1));
        let at = Duration::from_secs;
        assert!(limit.admit("a", at(0)) && limit.admit("a", at(1)));
        assert!(limit.is_exhausted(&"a", at(1)) && !limit.is_exhausted(&"b", at(1)));
        assert!(!limit.admit("a", at(59)));
        assert!(limit.admit("b", at(59)));
        assert!(!limit.is_exhausted(&"a", at(60)));
        assert!(limit.admit("a", at(60)));
    }

    #[test]
    fn a_full_table_admits_no_new_key_until_old_ones_expire() {
        let limit = RateLimit::new(1, Duration::from_mins(1));
        for key in 0..MAX_KEYS {
            assert!(limit.admit(key, Duration::ZERO));
        }
        assert!(!limit.admit(MAX_KEYS, Duration::from_secs(1)));
        assert!(limit.admit(MAX_KEYS, Duration::from_secs(61)));
    }
}
