//! The audit log: hash-chained JSON lines.
//!
//! `row` is one line and its seal, `writing` appends lines, `retention` bounds size and age,
//! `reading` filters and verifies. The log `audit.jsonl` has these `files` next to it: the
//! older logs `audit.1.jsonl` and on, `audit.head` (the lock, the link before the oldest entry that
//! is kept, and the last written entry), `audit.clock` (the time that has provably passed, see
//! `retention::age`), the folder `audit.open` (markers of processes that write in the background)
//! and, after a crash, `audit.torn`.
//!
//! **Invariant:** every writer, in any process, holds the lock; each entry carries the hash of the
//! one before it, also across files.

mod error;
mod row;
mod files;
mod writing;
mod retention;
mod reading;

pub use error::AuditError;
pub use reading::reader::{Position, Query, Reader};
pub use reading::verify::{Broken, Reason, Verified, VerifyError};
pub use retention::age::{BootClock, BootTime};
pub use retention::limits::Limits;
pub use row::Row;
pub use writing::background::{Background, MAX_WAITING};
pub use writing::health::OnFull;
pub use writing::jsonl::{Durability, JsonLines};
