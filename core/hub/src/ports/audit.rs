//! The port for the audit log.

use super::BoxFuture;
use crate::Entry;

/// The log of finished calls.
pub trait AuditLog: Send + Sync {
    /// Records one call. Called exactly once for every call, whatever its outcome.
    fn record(&self, entry: Entry);

    /// Records one call like [`record`](Self::record). Returns what its answer must wait for. The
    /// entry is written even if the returned value is dropped.
    fn settle(&self, entry: Entry) -> Settling {
        self.record(entry);
        Settling::Done
    }

    /// Checks that a call may be made.
    ///
    /// # Errors
    /// Fails if the call could not be recorded and the operator forbids unrecorded calls.
    fn ready(&self) -> Result<(), Unwritten> {
        Ok(())
    }

    /// True if answers wait for [their entries](Self::settle). Then no answer is streamed.
    fn withholds(&self) -> bool {
        false
    }

    /// How many entries were lost because they could not be written.
    fn lost(&self) -> u64 {
        0
    }
}

/// The condition for delivering an answer.
pub enum Settling {
    /// Deliver at once.
    Done,
    /// Deliver when the entry is durable; withhold the answer if that fails.
    Waits(BoxFuture<'static, Result<(), Unwritten>>),
}

/// The reason that an entry cannot be written, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten(pub String);
