//! The audit log: hash-chained JSON lines.
//!
//! [`row`] is one line and its seal, [`jsonl`] writes lines, [`background`] does so on a separate
//! thread, [`health`] tracks failures, [`limits`] bounds size and age, [`reader`] reads and
//! filters, [`verify`] detects tampering. The log `audit.jsonl` has these files next to it: the
//! older logs `audit.1.jsonl` and on, `audit.head` (the lock, the link before the oldest entry that
//! is kept, and the last written entry), `audit.clock` (the time that has provably passed, see
//! [`age`]), the folder `audit.open` (markers of processes that write in the background) and, after
//! a crash, `audit.torn`.
//!
//! **Invariant:** every writer, in any process, holds the lock; each entry carries the hash of the
//! one before it, also across files.

pub mod error;
pub mod row;
pub mod limits;
pub mod health;
pub mod jsonl;
pub mod background;
pub mod reader;
pub mod verify;
mod write;
mod log_files;
mod head;
mod lines;
mod reverse_reader;
mod recover;
mod rotate;
pub mod age;
mod open_log;
mod open_marker;
mod retention;

pub use age::{BootClock, BootTime};
pub use background::Background;
pub use error::AuditError;
pub use health::OnFull;
pub use jsonl::{Durability, JsonLines};
pub use limits::Limits;
pub use reader::{Position, Query, Reader};
pub use row::Row;
pub use verify::{Broken, Reason, Verified, VerifyError};
