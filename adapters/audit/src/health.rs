//! How the log is: whether it can be written, what was lost, and when somebody is told.

use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use capstan_hub::ports::Unwritten;

use crate::AuditError;
use crate::row::Fault;

/// How often somebody is told that entries are lost.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// What becomes of calls that cannot be written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// They are made; how many there were is told, and written down as soon as that is possible.
    #[default]
    Degrade,
    /// They are refused.
    Refuse,
}

/// What is known of the log.
#[derive(Debug, Default)]
pub(crate) struct Health {
    word: AtomicU8,
    /// What the last failure said.
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
    /// How many times something could not be written.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// How many entries could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether the log can be written, as far as that is known; when nothing is known, `probe` is
    /// to find out.
    pub(crate) fn check(&self, probe: impl FnOnce()) -> Result<(), Unwritten> {
        if self.word.load(Ordering::Acquire) == UNKNOWN {
            probe();
        }
        if self.word.load(Ordering::Acquire) == BAD { Err(self.unwritten()) } else { Ok(()) }
    }

    pub(crate) fn unwritten(&self) -> Unwritten {
        Unwritten(self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The log was written to.
    pub(crate) fn is_good(&self) {
        self.word.store(GOOD, Ordering::Release);
    }

    /// The log could not be written to, and so many entries are lost.
    pub(crate) fn is_bad(&self, error: &AuditError, lost: u64) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = error.with_cause();
        self.word.store(BAD, Ordering::Release);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        self.tell(error);
    }

    /// Counts a failure, and tells of it unless that was done a moment ago.
    pub(crate) fn tell(&self, error: &AuditError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if self.is_time_to_tell(Instant::now()) {
            let hint = error.hint().unwrap_or_default();
            let (error, lost) = (error.with_cause(), self.lost());
            tracing::error!(error, hint, lost, "calls are not written to the audit log");
        }
    }

    /// Tells what happened to the log. It is noted in the log as well.
    pub(crate) fn found(fault: Fault, log: &Path) {
        let log = log.display();
        let what = match fault {
            Fault::Torn { .. } => {
                // What a crash leaves, and nothing that was acknowledged.
                return tracing::info!("the last line of the audit log at `{log}` was incomplete");
            }
            Fault::Damaged => "was changed",
            Fault::Cut => "lacks entries at its end, or was deleted",
            Fault::Unanchored => "has no head that tells whether it is whole",
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
        tracing::error!("the audit log at `{log}` {what}; `capstan audit --verify` says where");
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
