//! Connections to MCP servers.
//!
//! Read in this order: [`settings`] is what the configuration says of one server, `spawn` starts
//! it behind a [`keeper`], `line` and `stderr` read what it prints, `connection` carries messages
//! both ways, `inbound` deals with what the server asks, `handshake` finds out which revision of
//! the protocol it speaks, `session` speaks it, and `server` keeps one alive and implements the
//! hub's port.

pub mod settings;
pub mod keeper;
mod spawn;
mod line;
mod stderr;
mod mask;
mod alive;
mod pending;
mod minder;
mod connection;
mod inbound;
mod handshake;
mod session;
mod listing;
mod backoff;
mod server;

pub use server::StdioServer;
pub use settings::{Era, Root, StdioSettings};
