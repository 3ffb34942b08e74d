//! Where calls are written down.

use super::BoxFuture;
use crate::Entry;

/// Where finished calls are written down.
pub trait AuditLog: Send + Sync {
    /// Records one call. Called exactly once for every call, whatever became of it.
    fn record(&self, entry: Entry);

    /// Records one call as [`record`](Self::record) does, and gives what its answer has to wait
    /// for. Nobody needs to wait: the entry is on its way.
    fn settle(&self, entry: Entry) -> Settling {
        self.record(entry);
        Settling::Done
    }

    /// Whether a call may be made at all.
    ///
    /// # Errors
    /// When it could not be written down, and the operator wants no such calls.
    fn ready(&self) -> Result<(), Unwritten> {
        Ok(())
    }

    /// Whether answers wait for [their entries](Self::settle). Then none is given out in parts.
    fn withholds(&self) -> bool {
        false
    }

    /// How many entries were lost because they could not be written.
    fn lost(&self) -> u64 {
        0
    }
}

/// What an answer has to wait for before it is delivered.
pub enum Settling {
    /// Nothing.
    Done,
    /// That its entry is kept for good.
    Waits(BoxFuture<'static, Result<(), Unwritten>>),
}

/// Why an entry cannot be written, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten(pub String);
