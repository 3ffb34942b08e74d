//! The translation that dialects share: a file, a server in it, and its keys.
//!
//! A dialect is a table of keys, and code for what a table cannot say.

pub(crate) mod detect;
pub(crate) mod file;
pub(crate) mod login;
pub(crate) mod outline;
pub(crate) mod server;
