//! Rates: how many calls there may be in some time, by caller, by server, by tool or in all.
//!
//! **Invariant:** in no stretch of time as long as a rate's are there more calls than it allows.
//! All rates and the session's quota are looked at and counted in one step, so that two calls
//! racing for the last place cannot both get it, and a call that is refused by one costs nothing
//! at the others.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_model::{CallError, ItemId, Kind, RateBy, Verdict};
use capstan_policy::pattern::spellings;
use capstan_policy::{Arguments, Pattern};

use crate::Call;
use crate::hub::Hub;

/// Counters that are kept. When there are more, those that were not used for longest go first.
const MAX_COUNTERS: usize = 10_000;

/// Calls so close together, as a part of the rate's time, are remembered as one group.
const GROUPS: u32 = 64;

/// A bound on calls in some time.
#[derive(Clone, Debug)]
pub struct Rate {
    /// How many.
    pub limit: u32,
    /// In how long.
    pub every: Duration,
    /// Which calls count together.
    pub by: RateBy,
    /// The tools that are meant; empty for everything that can be called.
    pub tools: Vec<Pattern>,
    /// What callers are told beside the number.
    pub reason: Option<String>,
}

/// All rates, with what was counted so far.
#[derive(Debug, Default)]
pub struct Rates {
    rates: Vec<(u64, Rate)>,
    /// Shared by all rates that came after each other, so that no call is counted where nobody looks.
    counters: Arc<Mutex<HashMap<Key, Counter>>>,
}

/// The rate, by its number, and what is counted together.
type Key = (u64, String);

/// The calls that still count, oldest first.
#[derive(Debug, Default)]
struct Counter {
    groups: VecDeque<Group>,
    used: u32,
}

/// Calls that came close together. They count until the last of them no longer does.
#[derive(Debug)]
struct Group {
    first: Duration,
    last: Duration,
    calls: u32,
}

// === impl Rates ===

impl Rates {
    /// These rates, with nothing counted yet.
    pub fn new(rates: Vec<Rate>) -> Self {
        Self::default().then(rates)
    }

    /// These rates in the place of ours. One that is among ours too goes on with what it counted.
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

    /// Counts a call, unless a rate or the quota has no room for it.
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

    /// Drops what no longer counts, and if that is not enough what was not used for longest.
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
        // A tenth at once, so that not every new caller costs a look at all others.
        by_use.select_nth_unstable(MAX_COUNTERS / 10);
        for (_, key) in by_use.into_iter().take(MAX_COUNTERS / 10) {
            counters.remove(&key);
        }
    }
}

// === impl Rate ===

impl Rate {
    /// Whether both bound the same calls in the same way.
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
        // As for a rule that denies: in doubt it is meant.
        self.tools.iter().any(|pattern| pattern.matches(&names, arguments, Verdict::Deny))
    }

    fn key(&self, subject: &str, id: &ItemId, kind: Kind) -> String {
        match self.by {
            RateBy::Caller => subject.to_owned(),
            RateBy::Server => id.server.to_string(),
            // Anybody can think of any number of addresses; they count for their server.
            RateBy::Tool if kind == Kind::Resource => id.server.to_string(),
            RateBy::Tool => id.to_string(),
            RateBy::All => String::new(),
        }
    }

    /// How long it takes until there is room; `None` when there is.
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
                // Another thread may have looked at the clock a little later.
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
