//! The idle timeout of servers.

use std::time::Duration;

/// More calls per hour than this are frequent use.
const HOT: f64 = 20.0;

/// Fewer calls per hour than this are rare use.
const WARM: f64 = 5.0;

/// Adaptive timeouts: a frequently used server is kept longer.
const HOT_TIME: Duration = Duration::from_mins(5);
const WARM_TIME: Duration = Duration::from_mins(3);
const COLD_TIME: Duration = Duration::from_mins(1);

/// The rule for stopping an idle server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleRule {
    /// Depends on the number of calls per hour, within bounds.
    Adaptive {
        /// The minimum timeout.
        min: Duration,
        /// The maximum timeout.
        max: Duration,
    },
    /// Never.
    Never,
    /// After this fixed time.
    After(Duration),
}

// === impl IdleRule ===

impl IdleRule {
    /// Returns the idle timeout at this number of calls per hour; `None` for never.
    pub fn timeout(self, calls_per_hour: f64) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(time) => Some(time),
            Self::Adaptive { min, max } => {
                let time = if calls_per_hour > HOT {
                    HOT_TIME
                } else if calls_per_hour >= WARM {
                    WARM_TIME
                } else {
                    COLD_TIME
                };
                // The code that creates the rule ensures that `min` is not larger than `max`.
                Some(time.min(max).max(min))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn c27_the_more_calls_the_longer_it_is_kept_within_the_bounds() {
        let usual = (MINUTE, 5 * MINUTE);
        for (rate, (min, max), expected) in [
            (21.0, usual, 5 * MINUTE),
            (20.0, usual, 3 * MINUTE),
            (5.0, usual, 3 * MINUTE),
            (4.0, usual, MINUTE),
            (0.0, usual, MINUTE),
            (f64::INFINITY, usual, 5 * MINUTE),
            (f64::NAN, usual, MINUTE),
            (21.0, (MINUTE, 2 * MINUTE), 2 * MINUTE),
            (4.0, (2 * MINUTE, 5 * MINUTE), 2 * MINUTE),
            (4.0, (30 * SECOND, 5 * MINUTE), MINUTE),
            (4.0, (10 * SECOND, 20 * SECOND), 20 * SECOND),
            (21.0, (10 * MINUTE, 20 * MINUTE), 10 * MINUTE),
        ] {
            let rule = IdleRule::Adaptive { min, max };
            assert_eq!(rule.timeout(rate), Some(expected), "{rate} within {min:?} and {max:?}");
        }
    }

    #[test]
    fn c25_a_fixed_time_is_kept_to_and_never_is_never() {
        for rate in [0.0, 4.0, 21.0] {
            assert_eq!(IdleRule::After(2 * MINUTE).timeout(rate), Some(2 * MINUTE));
            assert_eq!(IdleRule::After(SECOND).timeout(rate), Some(SECOND));
            assert_eq!(IdleRule::Never.timeout(rate), None);
        }
    }
}
