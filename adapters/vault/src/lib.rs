//! Secrets that outlive a process: tokens of logins, registered clients, secrets that the user named.
//!
//! A value is in the keyring of the system, or in a file that only its owner can read. The file is
//! always the index: it says for each entry where the newest value is. A value in the keyring has an
//! item of its own, which is never overwritten; a write makes a new item and then changes the index.
//! So the old value stays until the new one is stored, wherever either of them is.
//!
//! The file is JSON with mode 0600:
//!
//! ```text
//! {
//!   "version": 1,
//!   "entries": {
//!     "secret": {
//!       "NAME": { "keyring": "secret:NAME#5f0c…" },
//!       "OTHER": { "value": "…" }
//!     },
//!     "tokens": { … }, "client": { … }
//!   },
//!   "stale": ["secret:NAME#17ab…"]
//! }
//! ```
//!
//! `keyring` is the user name of an item whose service is `capstan`. `stale` lists items of the
//! keyring that no entry uses; the next write removes them.

mod file;
mod keyring;
mod lock;
mod memory;
mod vault;

pub use keyring::KeyringMode;
pub use vault::SystemVault;
