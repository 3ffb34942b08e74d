//! Exponential backoff with jitter before a failed server is started again.

use std::time::Duration;

/// The wait after the first failure in a row.
const FIRST: Duration = Duration::from_millis(500);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// The wait after `failures` failures in a row; `dice` is a random number from 0 to 1.
///
/// The first start and the first restart happen at once. Jitter subtracts up to a quarter, so that
/// servers that failed together do not restart together.
pub(crate) fn wait_after(failures: u32, dice: f64) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let full = FIRST.saturating_mul(2_u32.saturating_pow(doublings.min(16))).min(LONGEST);
    full.mul_f64(1.0 - 0.25 * dice.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_jitter_only_shortens() {
        let waits: Vec<u128> = (0..9).map(|n| wait_after(n, 0.0).as_millis()).collect();
        assert_eq!(waits, [0, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(wait_after(2, 1.0).as_millis(), 750);
        assert_eq!(wait_after(u32::MAX, 0.0), LONGEST);
    }
}
