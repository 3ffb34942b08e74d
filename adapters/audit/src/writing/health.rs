//! The health of the log: whether it is writable, how much was lost, and when to report it.

use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use capstan_hub::ports::Unwritten;

use crate::AuditError;
use crate::row::Fault;

/// Minimum interval between reports of lost entries.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// The treatment of calls that cannot be recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// They run; their number is reported, and recorded as soon as possible.
    #[default]
    Degrade,
    /// They are refused.
    Refuse,
}

/// The state of the log.
#[derive(Debug, Default)]
pub(crate) struct Health {
    word: AtomicU8,
    /// The text of the last failure.
    reason: Mutex<String>,
    failures: AtomicU64,
    lost: AtomicU64,
    told: Mutex<Option<Instant>>,
}

const UNKNOWN: u8 = 0;
const GOOD: u8 = 1;
const BAD: u8 = 2;

// === impl Health ===

impl Health {
    /// The number of failed writes.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The number of entries that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns an error if the log is unwritable; calls `probe` first if that is unknown.
    pub(crate) fn check(&self, probe: impl FnOnce()) -> Result<(), Unwritten> {
        if self.word.load(Ordering::Acquire) == UNKNOWN {
            probe();
        }
        if self.word.load(Ordering::Acquire) == BAD { Err(self.unwritten()) } else { Ok(()) }
    }

    pub(crate) fn unwritten(&self) -> Unwritten {
        Unwritten(self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Records a successful write.
    pub(crate) fn is_good(&self) {
        self.word.store(GOOD, Ordering::Release);
    }

    /// Records a failed write that lost this many entries.
    pub(crate) fn is_bad(&self, error: &AuditError, lost: u64) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = error.with_cause();
        self.word.store(BAD, Ordering::Release);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        self.tell(error);
    }

    /// Counts a failure, and logs it unless one was logged recently.
    pub(crate) fn tell(&self, error: &AuditError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if self.is_time_to_tell(Instant::now()) {
            let hint = error.hint().unwrap_or_default();
            let (error, lost) = (error.with_cause(), self.lost());
            tracing::error!(error, hint, lost, "calls are not written to the audit log");
        }
    }

    /// Logs a fault of the log. The log itself records it as well.
    pub(crate) fn found(fault: Fault, log: &Path) {
        let log = log.display();
        let what = match fault {
            Fault::Torn { .. } => {
                // The remains of a crash; no acknowledged entry is affected.
                return tracing::info!("the last line of the audit log at `{log}` was incomplete");
            }
            Fault::Damaged => "was changed",
            Fault::Cut => "lacks entries at its end, or was deleted",
            Fault::Unanchored => "has no head to check it against",
            Fault::Unclosed { process } => {
                return tracing::warn!(
                    "process {process} ended without closing the audit log at `{log}`; entries of its \
                     last calls may be missing"
                );
            }
            Fault::Expired { first, last } => {
                return tracing::warn!(
                    "retention removes the entries {first} to {last} of the audit log at `{log}`"
                );
            }
            Fault::Lost { .. } => return,
        };
        tracing::error!("the audit log at `{log}` {what}; `capstan audit --verify` shows where");
    }

    fn is_time_to_tell(&self, now: Instant) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_EVERY);
        if is_due {
            *told = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_entries_are_told_at_once_and_then_once_a_minute() {
        let (health, start) = (Health::default(), Instant::now());
        for (second, expected) in
            [(0, true), (1, false), (59, false), (60, true), (61, false), (500, true)]
        {
            let now = start + Duration::from_secs(second);
            assert_eq!(health.is_time_to_tell(now), expected, "second {second}");
        }
    }
}
