//! Writes the log.
//!
//! [`jsonl`] appends under the lock, [`background`] does so on a separate thread, [`open_log`] is the
//! open file, [`recover`] finds the end of the chain after a crash, [`health`] tracks failures.

pub(crate) mod jsonl;
pub(crate) mod background;
pub(crate) mod open_log;
pub(crate) mod recover;
pub(crate) mod health;
