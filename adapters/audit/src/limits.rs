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

    /// Whether a log that begins at `first` has been written to for long enough.
    pub(crate) fn is_time_for_another(&self, first: Option<Timestamp>, now: Timestamp) -> bool {
        first.is_some_and(|first| passed(first, now) >= self.retention / PART)
    }

    /// Whether something that ended at `last` is too old to be kept.
    pub(crate) fn is_too_old(&self, last: Timestamp, now: Timestamp) -> bool {
        passed(last, now) >= self.retention
    }

    /// Whether older logs have to be looked at again.
    pub(crate) fn is_time_to_sweep(&self, swept: Option<Timestamp>, now: Timestamp) -> bool {
        swept.is_none_or(|swept| passed(swept, now) >= SWEEP.min(self.retention / PART))
    }
}

impl Default for Limits {
    fn default() -> Self {
        let (max_size, max_total) = (Self::MAX_SIZE, Self::MAX_TOTAL);
        Self { max_size, max_total, retention: Self::RETENTION }
    }
}

/// The time between two moments; none when the clock was set back.
fn passed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_also_when_the_clock_was_set_back() {
        let limits = Limits { retention: Duration::from_hours(9), ..Limits::default() };
        let at = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
        for (hour, another, too_old) in [(0, false, false), (1, true, false), (9, true, true)] {
            assert_eq!(limits.is_time_for_another(Some(at(0)), at(hour)), another, "{hour}");
            assert_eq!(limits.is_too_old(at(0), at(hour)), too_old, "{hour}");
        }
        assert!(!limits.is_too_old(at(100), at(0)) && !limits.is_time_for_another(None, at(100)));
        assert!(
            limits.is_time_to_sweep(None, at(0)) && !limits.is_time_to_sweep(Some(at(5)), at(1))
        );
    }
}
