//! The translation code that dialects share: for a file, a server in it, and its keys.
//!
//! A dialect is a table of keys, and code for cases that a table cannot express.

pub(crate) mod detect;
pub(crate) mod file;
pub(crate) mod login;
pub(crate) mod outline;
pub(crate) mod prefix;
pub(crate) mod server;
