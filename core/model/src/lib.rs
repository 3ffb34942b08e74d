//! The types that all parts of the hub share.
//!
//! Read in this order: [`name`] defines the names of servers and items, [`caller`] who makes a
//! call, [`call`] what it asks for, [`verdict`] how rules decide on it, [`tool_override`] how the
//! operator changes a tool, [`server`] the state of a server, [`error`] how a call can fail (`hint`:
//! and what to do then), [`error_code`] the classes of these failures, [`rpc_code`] the codes of errors on the wire, [`secret`] values that must never be shown,
//! [`secret_reference`] how a configuration names them, [`credentials`] the logins for servers, and [`expose`] what a client is
//! offered.
//!
//! **Invariant:** nothing here does I/O, reads the clock, or is async.

pub mod name;
pub mod caller;
pub mod call;
pub mod verdict;
pub mod tool_override;
pub mod server;
pub mod error;
pub mod error_code;
mod hint;
pub mod rpc_code;
pub mod secret;
pub mod secret_reference;
pub mod credentials;
pub mod expose;

pub use call::{Kind, Target};
pub use caller::{Binding, Caller, Front};
pub use credentials::Credentials;
pub use error::{CallError, Unapproved};
pub use error_code::ErrorCode;
pub use expose::{CallTools, Expose};
pub use name::{BadServerName, ItemId, Naming, ServerName};
pub use secret::Secret;
pub use secret_reference::{BadSecretName, Piece, SecretName, SecretReference};
pub use server::{Effect, Glyph, ServerState, StateName, Trust};
pub use tool_override::ToolOverride;
pub use verdict::{By, Ruling, Verdict};
