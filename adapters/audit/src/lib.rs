//! The audit log: hash-chained JSON lines.
//!
//! [`row`] is one line and how it is sealed, [`jsonl`] writes them, [`background`] does so beside
//! the calls, [`health`] knows whether that works, [`limits`] how much is kept, [`reader`] reads and
//! filters, [`verify`] looks for tampering. Around the log `audit.jsonl` in its folder stand the
//! older logs `audit.1.jsonl` and on, `audit.head` (the lock, the place before the oldest entry that
//! is kept, and the last entry written), `audit.clock` (the time that has provably passed, see [`age`]),
//! the folder `audit.open` (markers of processes that write beside their calls) and, after a crash,
//! `audit.torn`.
//!
//! **Invariant:** whoever writes, of however many processes, holds the lock; each entry carries
//! the hash of the one before it, also from one file to the next.

pub mod error;
pub mod row;
pub mod limits;
pub mod health;
pub mod jsonl;
pub mod background;
pub mod reader;
pub mod verify;
mod write;
mod place;
mod head;
mod lines;
mod backwards;
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
