//! The nouns of the hub.
//!
//! Read in this order: [`name`] says what servers and tools are called, [`caller`] who asks,
//! [`call`] what is asked, [`verdict`] what a rule can say about it, [`rate`] how calls are counted, [`server`] how a server is,
//! [`error`] how a call can go wrong (`hint`: and what to do then), [`secret`] what must never be shown, and [`credentials`] what
//! opens doors.
//!
//! **Invariant:** nothing here does I/O, reads the clock, or is async.

pub mod name;
pub mod caller;
pub mod call;
pub mod verdict;
pub mod rate;
pub mod server;
pub mod error;
mod hint;
pub mod secret;
pub mod credentials;

pub use call::{Kind, Target};
pub use caller::{Binding, Caller, Front};
pub use credentials::Credentials;
pub use error::{CallError, ErrorCode};
pub use name::{BadServerName, ItemId, Naming, ServerName};
pub use rate::RateBy;
pub use secret::Secret;
pub use server::{Effect, Glyph, ServerState, StateName, Trust};
pub use verdict::{By, Ruling, Verdict};
