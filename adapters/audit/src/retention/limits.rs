//! Limits on the size and the age of the log.

use std::time::Duration;

use jiff::Timestamp;

/// A log is rotated after the retention time divided by this.
///
/// Only whole files are removed, so an entry is removed later by that much at most.
const PART: u32 = 9;

/// Interval of the check for old files, in addition to each rotation.
const SWEEP: Duration = Duration::from_hours(1);

/// Limits on size and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A log that would exceed this many bytes is rotated.
    pub max_size: u64,
    /// Maximum size of all files together; the current one counts as full.
    pub max_total: u64,
    /// Minimum time that entries are kept, if there is room for them.
    pub retention: Duration,
}

// === impl Limits ===

impl Limits {
    /// Default size at which a log is rotated.
    pub const MAX_SIZE: u64 = 100 << 20;
    /// Default size of all logs.
    pub const MAX_TOTAL: u64 = 1 << 30;
    /// Default retention time.
    pub const RETENTION: Duration = Duration::from_hours(90 * 24);
    /// Number of newest entries that are kept at any age.
    pub const KEEP_NEWEST: u64 = 1000;

    /// True if a log whose first entry is of `first` is old enough to be rotated.
    pub(crate) fn is_time_for_another(&self, first: Option<Timestamp>, now: Timestamp) -> bool {
        first.is_some_and(|first| passed(first, now) >= self.part())
    }

    /// True if a log that ended at `last` is too old, by its date and by the `proven` time since.
    ///
    /// A date in the future was written before the clock was set back, and proves nothing.
    pub(crate) fn is_too_old(&self, last: Timestamp, now: Timestamp, proven: Duration) -> bool {
        proven >= self.retention && (last > now || passed(last, now) >= self.retention)
    }

    /// Interval of sweeps, and the minimum time between two removals.
    pub(crate) fn sweep_every(&self) -> Duration {
        SWEEP.min(self.part())
    }

    /// The age at which a log is rotated, and the maximum that a restart of the system counts.
    pub(crate) fn part(&self) -> Duration {
        self.retention / PART
    }
}

impl Default for Limits {
    fn default() -> Self {
        let (max_size, max_total) = (Self::MAX_SIZE, Self::MAX_TOTAL);
        Self { max_size, max_total, retention: Self::RETENTION }
    }
}

/// The time between two moments; zero if the clock was set back.
pub(crate) fn passed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_also_when_the_clock_was_set_back() {
        let limits = Limits { retention: Duration::from_hours(9), ..Limits::default() };
        let at = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
        let enough = Duration::from_hours(9);
        for (hour, another, too_old) in [(0, false, false), (1, true, false), (9, true, true)] {
            assert_eq!(limits.is_time_for_another(Some(at(0)), at(hour)), another, "{hour}");
            assert_eq!(limits.is_too_old(at(0), at(hour), enough), too_old, "{hour}");
            // Without enough proven time, the wall clock does not matter.
            assert!(!limits.is_too_old(at(0), at(hour), enough / 2), "{hour}");
        }
        assert!(!limits.is_too_old(at(100), at(0), enough / 2));
        assert!(limits.is_too_old(at(100), at(0), enough));
        assert!(!limits.is_time_for_another(None, at(100)));
    }
}
