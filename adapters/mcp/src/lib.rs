//! Connections to MCP servers.
//!
//! [`settings`] is the configuration of one server. [`Server`] implements the hub's port and keeps
//! one `session` connected; `connect` opens it. A session speaks one era of the protocol over a
//! `channel`; `stdio` and `http` are the transports below that.

pub mod settings;
mod server;
mod connect;
mod session;
mod channel;
mod stdio;
mod http;
mod fault;

pub use server::Server;
pub use server::per_caller::{CallerCredentials, FindCredentials, PerCallerServer};
pub use settings::{Era, HttpSettings, Others, Prefer, Root, Settings, StdioSettings};

/// A server that runs as a child of its keeper and communicates over its standard streams.
pub type StdioServer = Server;
