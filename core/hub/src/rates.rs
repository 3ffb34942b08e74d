//! Rates: limits on the number of calls in a period, by caller, by server, by tool or in total.
//!
//! **Invariant:** no period of a rate's length contains more calls than the rate allows. All rates
//! and the session's quota are checked and counted in one step, so that two concurrent calls cannot
//! both take the last place, and a call that one of them refuses does not count at the others.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_model::{CallError, ItemId, Kind, RateBy, Verdict};
use capstan_policy::pattern::spellings;
use capstan_policy::{Arguments, Pattern};

use crate::Call;
use crate::hub::Hub;

/// The maximum number of counters. Beyond it, the least recently used ones are dropped.
const MAX_COUNTERS: usize = 10_000;

/// Calls within this fraction (1/n) of a rate's period are counted as one group.
const GROUPS: u32 = 64;

/// A limit on the number of calls in a period.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The maximum number of calls.
    pub limit: u32,
    /// The period.
    pub every: Duration,
    /// The calls that are counted together.
    pub by: RateBy,
    /// The tools that it applies to; empty for everything that can be called.
    pub tools: Vec<Pattern>,
    /// A text for callers, in addition to the limit.
    pub reason: Option<String>,
}

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
            let place = known.iter().position(|(_, known)| known.is_same(&rate));
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
        let speaks = |rate: &Rate| rate.speaks_of(hub, id, call);
        let concerned = self.rates.iter().filter(|(_, rate)| speaks(rate));
        let concerned =
            concerned.map(|(number, rate)| ((*number, rate.key(subject, id, kind)), rate));
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
            let known = counters.get_mut(key);
            if let Some(free_in) = rate.wait(known, now) {
                let (rate, reason) = (rate.in_words(), rate.reason.clone());
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

// === impl Rate ===

impl Rate {
    /// True if both limit the same calls in the same way.
    fn is_same(&self, other: &Self) -> bool {
        let Self { limit, every, by, tools, reason: _ } = self;
        let texts = |tools: &[Pattern]| -> Vec<String> {
            tools.iter().map(|tool| tool.as_str().to_owned()).collect()
        };
        (*limit, *every, *by) == (other.limit, other.every, other.by)
            && texts(tools) == texts(&other.tools)
    }

    fn speaks_of(&self, hub: &Hub, id: &ItemId, call: &Call) -> bool {
        if self.tools.is_empty() {
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
        let arguments = Arguments::These(&arguments);
        // Matches like a deny rule: in doubt, the rate applies.
        self.tools.iter().any(|pattern| pattern.matches(&names, arguments, Verdict::Deny))
    }

    fn key(&self, subject: &str, id: &ItemId, kind: Kind) -> String {
        match self.by {
            RateBy::Caller => subject.to_owned(),
            RateBy::Server => id.server.to_string(),
            // A caller can invent any number of URIs, so they count for their server.
            RateBy::Tool if kind == Kind::Resource => id.server.to_string(),
            RateBy::Tool => id.to_string(),
            RateBy::All => String::new(),
        }
    }

    /// Returns the time until a call is possible; `None` if it is possible now.
    fn wait(&self, counter: Option<&mut Counter>, now: Duration) -> Option<Duration> {
        if self.limit == 0 {
            return Some(self.every);
        }
        let counter = counter?;
        counter.forget(now, self.every);
        let first = counter.groups.front().filter(|_| counter.used >= self.limit)?;
        Some((first.last + self.every).saturating_sub(now))
    }

    fn in_words(&self) -> String {
        let of_whom = match self.by {
            RateBy::Caller => "for this caller",
            RateBy::Server => "for this server",
            RateBy::Tool => "for this tool",
            RateBy::All => "in all",
        };
        let calls = if self.limit == 1 { "call" } else { "calls" };
        format!("{} {calls} in {:?} {of_whom}", self.limit, self.every)
    }
}

// === impl Counter ===

impl Counter {
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
