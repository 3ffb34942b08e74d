//! Reading and atomically replacing files.
//!
//! [`read`] reads a file whole within a bound, [`edit()`] replaces one so that whoever looks, at any
//! moment and after any crash, sees the old text or the new one, [`approvals`] remembers which
//! project files the operator has agreed to, [`placed`] changes that can be taken back exactly,
//! [`watch`] tells when files change, [`bundle`] unpacks archives, and [`cache`] keeps what can be
//! made again.
//!
//! Everything here blocks: call it from a thread that may wait.

pub mod error;
pub mod read;
pub mod edit;
pub mod approvals;
pub mod placed;
pub mod bundle;
pub mod watch;
pub mod cache;
mod lock;

pub use approvals::{Approval, Approvals, ApprovalsError, Approved};
pub use bundle::{BundleError, BundleFault, BundleLimits, unpack};
pub use cache::Cache;
pub use edit::{Change, EditFileError, Edited, edit};
pub use error::FileError;
pub use placed::{Placed, PlacedError, Put, Start, Taken};
pub use read::{MAX_SIZE, may_write, read_bounded};
pub use watch::{Watch, WatchError};
