//! Rates: limits on the number of calls in a period, by caller, by server, by tool or in total.
//!
//! **Invariant:** no period of a rate's length contains more calls than the rate allows. All rates
//! and the session's quota are checked and counted in one step, so that two concurrent calls cannot
//! both take the last place, and a call that one of them refuses does not count at the others.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_model::{CallError, ItemId, Kind};
use capstan_policy::pattern::spellings;
use capstan_policy::{Arguments, Rate};

use crate::Call;
use crate::hub::Hub;

/// The maximum number of counters. Beyond it, the least recently used ones are dropped.
const MAX_COUNTERS: usize = 10_000;

/// Calls within this fraction (1/n) of a rate's period are counted as one group.
const GROUPS: u32 = 64;

/// All rates with their counters.
#[derive(Debug, Default)]
pub struct Rates {
    rates: Vec<(u64, Rate)>,
    /// Shared with the rates that replace these, so that calls counted by either count for both.
    counters: Arc<Mutex<HashMap<Key, Counter>>>,
}

/// The number of the rate, and the key of the calls that are counted together.
type Key = (u64, String);

/// The calls that still count, oldest first.
#[derive(Debug, Default)]
struct Counter {
    groups: VecDeque<Group>,
    used: u32,
}

/// Calls close together. They all count until the last of them expires.
#[derive(Debug)]
struct Group {
    first: Duration,
    last: Duration,
    calls: u32,
}

// === impl Rates ===

impl Rates {
    /// Creates rates with nothing counted.
    pub fn new(rates: Vec<Rate>) -> Self {
        Self::default().then(rates)
    }

    /// Creates rates that replace these. A rate that is in both keeps its counts.
    #[must_use]
    pub fn then(&self, rates: Vec<Rate>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut known: Vec<&(u64, Rate)> = self.rates.iter().collect();
        let numbered = rates.into_iter().map(|rate| {
            let place = known.iter().position(|(_, known)| known.limits_like(&rate));
            let number = place.map(|place| known.swap_remove(place).0);
            (number.unwrap_or_else(|| NUMBERS.fetch_add(1, Ordering::Relaxed)), rate)
        });
        Self { rates: numbered.collect(), counters: Arc::clone(&self.counters) }
    }

    /// Counts a call, unless a rate or the quota is used up.
    pub(crate) fn take(
        &self,
        hub: &Hub,
        id: &ItemId,
        call: &Call,
        quota: impl FnOnce() -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        if self.rates.is_empty() {
            return quota();
        }
        let (subject, kind) = (&call.caller.subject, call.target.kind);
        let concerned = self.rates.iter().filter(|(_, rate)| applies(rate, hub, id, call));
        let concerned =
            concerned.map(|(number, rate)| ((*number, rate.group(subject, id, kind)), rate));
        self.count(concerned.collect(), hub.clock.monotonic(), quota)
    }

    fn count(
        &self,
        concerned: Vec<(Key, &Rate)>,
        now: Duration,
        quota: impl FnOnce() -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, rate) in &concerned {
            let wait = match counters.get_mut(key) {
                Some(counter) => counter.wait(rate, now),
                None => (rate.limit == 0).then_some(rate.every),
            };
            if let Some(free_in) = wait {
                let (rate, reason) = (rate.to_string(), rate.reason.clone());
                return Err(CallError::RateExceeded { rate, reason, free_in });
            }
        }
        quota()?;
        for (key, rate) in concerned {
            if counters.len() >= MAX_COUNTERS && !counters.contains_key(&key) {
                self.make_room(&mut counters, now);
            }
            counters.entry(key).or_default().add(now, rate.every);
        }
        drop(counters);
        Ok(())
    }

    /// Drops expired counters and, if that is not enough, the least recently used ones.
    fn make_room(&self, counters: &mut HashMap<Key, Counter>, now: Duration) {
        counters.retain(|(rate, _), counter| {
            let ours = self.rates.iter().find(|(number, _)| number == rate);
            let every = ours.map(|(_, rate)| rate.every);
            every.is_some_and(|every| counter.last_used() + every > now)
        });
        if counters.len() < MAX_COUNTERS {
            return;
        }
        let by_use = counters.iter().map(|(key, counter)| (counter.last_used(), key.clone()));
        let mut by_use: Vec<(Duration, Key)> = by_use.collect();
        // Drops a tenth at once, so that not every new caller causes a scan of all counters.
        by_use.select_nth_unstable(MAX_COUNTERS / 10);
        for (_, key) in by_use.into_iter().take(MAX_COUNTERS / 10) {
            counters.remove(&key);
        }
    }
}

/// True if a rate applies to a call.
fn applies(rate: &Rate, hub: &Hub, id: &ItemId, call: &Call) -> bool {
    if rate.tools.is_empty() {
        return true;
    }
    if call.target.kind != Kind::Tool {
        return false;
    }
    let server = hub.policy.servers().get(&id.server);
    let display = server.map_or(id.server.as_str(), |server| server.display.as_str());
    let (mut names, arguments) = (spellings(id, display), call.arguments());
    let new = hub.policy.new_name(id);
    names.extend(new.into_iter().flat_map(|new| spellings(&new, display)));
    rate.matches_tool(&names, Arguments::These(&arguments))
}

// === impl Counter ===

impl Counter {
    /// Returns the time until a rate allows another call; `None` if it allows one now.
    fn wait(&mut self, rate: &Rate, now: Duration) -> Option<Duration> {
        self.forget(now, rate.every);
        let first = self.groups.front().filter(|_| self.used >= rate.limit)?;
        Some((first.last + rate.every).saturating_sub(now))
    }

    fn forget(&mut self, now: Duration, every: Duration) {
        while let Some(group) = self.groups.pop_front_if(|group| group.last + every <= now) {
            self.used = self.used.saturating_sub(group.calls);
        }
    }

    fn add(&mut self, now: Duration, every: Duration) {
        self.used = self.used.saturating_add(1);
        match self.groups.back_mut() {
            Some(group) if now.saturating_sub(group.first) < every / GROUPS => {
                group.calls += 1;
                // Another thread may have read the clock slightly later.
                group.last = group.last.max(now);
            }
            Some(_) | None => self.groups.push_back(Group { first: now, last: now, calls: 1 }),
        }
    }

    fn last_used(&self) -> Duration {
        self.groups.back().map_or(Duration::ZERO, |group| group.last)
    }
}

#[cfg(test)]
#[path = "rates_tests.rs"]
mod tests;
