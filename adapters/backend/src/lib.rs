//! Connections to MCP servers.
//!
//! Read in this order: [`settings`] is what the configuration says of one server. `channel` is the
//! way to it: over standard streams, where `spawn` starts it behind a [`keeper`], `line` and
//! `stderr` read what it prints and `connection` carries messages both ways; or over HTTP, where
//! `web` sends requests by `reach`, `events` reads streams, and `http` and `sse` are the two transports on
//! top of a common `link`. `inbound` deals with what the server asks, `handshake` finds out which
//! revision of the protocol it speaks, `session` speaks it (`listing`, `errand` and `input` are parts
//! of that), `connect` puts all that together, and `server` keeps one alive and implements the hub's
//! port, with `life` for what it knows of it and `footprint` for what it uses up. [`plain`] speaks to
//! servers on the web that do not speak MCP, and [`once`] runs a program that does not, and reads what
//! it prints; [`attempt`] is what the servers made of these two share.

pub mod settings;
pub mod keeper;
mod spawn;
mod turn;
mod line;
mod cut;
mod stderr;
mod mask;
mod address_guard;
mod alive;
mod signs;
mod pending;
mod started;
mod fault;
mod channel;
mod minder;
mod connection;
mod inbound;
mod events;
mod pieces;
mod local;
mod unpack;
mod reach;
mod web;
mod large;
mod link;
mod http;
mod sse;
mod handshake;
mod refusal;
mod session;
mod errand;
mod input;
mod listing;
mod connect;
mod backoff;
mod life;
mod footprint;
mod wanted;
mod server;
pub mod plain;
pub mod download;
pub mod once;
pub mod attempt;

pub use server::Server;
pub use settings::{Era, HttpSettings, Others, Prefer, Root, Settings, StdioSettings};
pub use spawn::SpawnError;

/// A server that is started as a child of its keeper and spoken to over its standard streams.
pub type StdioServer = Server;
