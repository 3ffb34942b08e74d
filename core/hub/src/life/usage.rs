//! Usage counts of a server: calls per hour, over the time in which it could have been called.

use std::collections::BTreeMap;
use std::time::Duration;

use capstan_model::ServerName;

use crate::ports::UsageRow;

/// The number of hours in the average. Only hours in which a hub ran are used, the latest ones, so
/// that a weekend in which none runs does not count as disuse.
const WINDOW: usize = 24;

/// The number of hours that are kept.
pub(super) const KEPT_HOURS: i64 = 7 * 24;

const HOUR: f64 = 3600.0;

/// The usage of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    hours: BTreeMap<i64, Hour>,
    /// Counts that are not saved yet.
    unsaved: BTreeMap<i64, Hour>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Hour {
    calls: u64,
    time: Duration,
}

// === impl Usage ===

impl Usage {
    /// Counts a call.
    pub fn call(&mut self, hour: i64) {
        for hours in [&mut self.hours, &mut self.unsaved] {
            let hour = hours.entry(hour).or_default();
            hour.calls = hour.calls.saturating_add(1);
        }
    }

    /// Adds time in which the server could have been called.
    pub fn pass(&mut self, hour: i64, time: Duration) {
        for hours in [&mut self.hours, &mut self.unsaved] {
            let hour = hours.entry(hour).or_default();
            hour.time = hour.time.saturating_add(time);
        }
        self.hours.retain(|known, _| *known > hour.saturating_sub(KEPT_HOURS));
    }

    /// Adds counts that were saved earlier.
    pub fn recall(&mut self, row: &UsageRow) {
        let hour = self.hours.entry(row.hour).or_default();
        hour.calls = hour.calls.saturating_add(row.calls);
        hour.time = hour.time.saturating_add(Duration::from_secs(row.seconds));
    }

    /// Takes the counts to be saved, in whole seconds. Fractions are left for the next time.
    pub fn take_unsaved(&mut self, server: &ServerName) -> Vec<UsageRow> {
        let mut rows = Vec::new();
        for (number, hour) in &mut self.unsaved {
            let (calls, seconds) = (hour.calls, hour.time.as_secs());
            if calls > 0 || seconds > 0 {
                rows.push(UsageRow { server: server.clone(), hour: *number, calls, seconds });
            }
            *hour = Hour { calls: 0, time: hour.time.saturating_sub(Duration::from_secs(seconds)) };
        }
        // Hours that are over get no more counts.
        while self.unsaved.len() > 1 {
            self.unsaved.pop_first();
        }
        rows
    }

    /// Returns the calls per hour. Within the first hour, this is the number of calls.
    pub fn calls_per_hour(&self) -> f64 {
        let latest = self.hours.values().rev().take(WINDOW);
        let (calls, time) = latest.fold((0_u64, Duration::ZERO), |(calls, time), hour| {
            (calls.saturating_add(hour.calls), time.saturating_add(hour.time))
        });
        // One call in the first five seconds must not count as hundreds per hour.
        let hours = (time.as_secs_f64() / HOUR).max(1.0);
        f64::from(u32::try_from(calls).unwrap_or(u32::MAX)) / hours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn used(calls: u64, time: Duration) -> Usage {
        let mut usage = Usage::default();
        usage.pass(10, time);
        for _ in 0..calls {
            usage.call(10);
        }
        usage
    }

    #[test]
    fn calls_count_by_the_time_in_which_there_could_have_been_some() {
        for (calls, time, expected) in [
            (21, HOUR, 21.0),
            (20, HOUR, 20.0),
            (5, HOUR, 5.0),
            (4, HOUR, 4.0),
            (10, HOUR / 2, 10.0),
            (10, HOUR * 2, 5.0),
            (1, Duration::from_secs(5), 1.0),
            (0, HOUR, 0.0),
        ] {
            let rate = used(calls, time).calls_per_hour();
            assert!((rate - expected).abs() < 1e-9, "{calls} in {time:?}: {rate}");
        }
    }

    #[test]
    fn what_is_kept_comes_back_after_a_restart_and_adds_up() {
        let server: ServerName = "s".parse().unwrap();
        let mut before = used(30, HOUR);
        let rows = before.take_unsaved(&server);
        assert_eq!(rows, [UsageRow { server: server.clone(), hour: 10, calls: 30, seconds: 3600 }]);
        assert_eq!(before.take_unsaved(&server), []);
        let mut after = used(0, HOUR);
        for row in &rows {
            after.recall(row);
        }
        assert!((after.calls_per_hour() - 15.0).abs() < 1e-9);
    }

    #[test]
    fn parts_of_seconds_are_not_lost() {
        let server: ServerName = "s".parse().unwrap();
        let mut usage = Usage::default();
        let mut seconds = 0;
        for _ in 0..4 {
            usage.pass(10, Duration::from_millis(500));
            seconds += usage.take_unsaved(&server).iter().map(|row| row.seconds).sum::<u64>();
        }
        assert_eq!(seconds, 2);
    }

    #[test]
    fn old_hours_do_not_count_and_are_forgotten() {
        let mut usage = used(1000, HOUR);
        for hour in 11..=34 {
            usage.pass(hour, HOUR);
        }
        assert!(usage.calls_per_hour() < 1e-9);
        usage.pass(10 + KEPT_HOURS, HOUR);
        assert!(!usage.hours.contains_key(&10) && usage.hours.len() < 30);
    }
}
