//! Reading and atomically replacing files.
//!
//! [`read`] reads a whole file within a bound, [`edit()`] replaces one so that readers, at any
//! moment and after any crash, see the old text or the new one, [`approvals`] stores which project
//! files the operator has approved, [`placed`] makes changes that can be reverted exactly,
//! [`watch`] reports changes of files, [`bundle`] unpacks archives, [`cache`] keeps texts that can be
//! recreated, [`answers`] keeps long answers of servers, and [`drafts`] texts that are being edited.
//!
//! All functions block: call them from a thread that may wait.

pub mod error;
pub mod read;
pub mod edit;
pub mod approvals;
pub mod placed;
pub mod bundle;
pub mod watch;
pub mod cache;
pub mod answers;
pub mod drafts;
mod lock;

pub use approvals::{Approval, Approvals, ApprovalsError, Approved};
pub use bundle::{BundleError, BundleFault, BundleLimits, unpack};
pub use cache::Cache;
pub use edit::{Change, EditFileError, Edited, edit, remove_unchanged, with_lock};
pub use error::FileError;
pub use placed::{Placed, PlacedError, Put, Start, Taken};
pub use read::{MAX_SIZE, may_write, read_bounded};
pub use watch::{Watch, WatchError};
