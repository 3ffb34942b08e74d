//! How much is kept, and for how long.

use std::time::Duration;

use jiff::Timestamp;

/// A log is put aside after this part of the time for which entries are kept, because only whole
/// files are dropped: an entry is gone so much later at the most.
const PART: u32 = 9;

/// How often it is looked whether a file is too old, beside whenever a new one is begun.
const SWEEP: Duration = Duration::from_hours(1);

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A log that would grow beyond this many bytes is put aside, and a new one begun.
    pub max_size: u64,
    /// All files together have no more bytes than this, the one that is written to counted as full.
    pub max_total: u64,
    /// How long entries are kept, at least where there is room for them.
    pub retention: Duration,
}

// === impl Limits ===

impl Limits {
    /// Size at which a log is put aside.
    pub const MAX_SIZE: u64 = 100 << 20;
    /// Size of all logs.
    pub const MAX_TOTAL: u64 = 1 << 30;
    /// How long entries are kept.
    pub const RETENTION: Duration = Duration::from_hours(90 * 24);
    /// The newest entries, which stay however old they are.
    pub const KEEP_NEWEST: u64 = 1000;

    /// Whether a log that begins at `first` has been written to for long enough.
    pub(crate) fn is_time_for_another(&self, first: Option<Timestamp>, now: Timestamp) -> bool {
        first.is_some_and(|first| passed(first, now) >= self.part())
    }

    /// Whether something that ended at `last` is too old to be kept, where so much time has provably
    /// passed since. A date in the future was written before the clock was set back, and says nothing.
    pub(crate) fn is_too_old(&self, last: Timestamp, now: Timestamp, proven: Duration) -> bool {
        proven >= self.retention && (last > now || passed(last, now) >= self.retention)
    }

    /// How long older logs need not be looked at, and the least time between two removals.
    pub(crate) fn sweep_every(&self) -> Duration {
        SWEEP.min(self.part())
    }

    /// The time after which a log is put aside, and the most that a restart of the system counts.
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

/// The time between two moments; none when the clock was set back.
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
            // Whatever the clock says.
            assert!(!limits.is_too_old(at(0), at(hour), enough / 2), "{hour}");
        }
        assert!(!limits.is_too_old(at(100), at(0), enough / 2));
        assert!(limits.is_too_old(at(100), at(0), enough));
        assert!(!limits.is_time_for_another(None, at(100)));
    }
}
