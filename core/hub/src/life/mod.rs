//! The lifecycle of servers: listed from memory, started on first use, stopped when idle.
//!
//! `server` is a server of the hub, `lease` the right to its connections that every use of it takes,
//! `lane_agreement` tells if they define an item in the same way; [`Supervisor`] supervises all
//! servers. [`Manifest`] is the saved identity and lists of a server, [`IdleRule`]
//! the idle timeout, [`Usage`] the call counts, and `holds` tracks what keeps a server from being
//! stopped.
//!
//! **Invariant:** saved lists are only displayed. Every decision about a call is based on the lists
//! of the running server, on the connection that the call is sent to.

mod holds;
mod idle;
mod lane_agreement;
mod lease;
mod manifest;
mod memory;
mod server;
mod supervisor;
mod usage;
mod watch;

pub use holds::is_over;
pub use idle::IdleRule;
pub(crate) use lease::Lease;
pub use manifest::Manifest;
pub(crate) use server::Server;
pub use server::{Start, Terms};
pub use supervisor::{Spawn, Supervision, Supervisor, SupervisorPorts};
pub use usage::Usage;
