//! Servers that come and go: listed from memory, started on first use, stopped when idle.
//!
//! [`server`] is one server as the hub knows it, with the lease that every use of it takes;
//! [`Supervisor`] supervises all of them. [`Manifest`] is what is remembered of a server over
//! restarts, [`IdleRule`] says after what time without use it is stopped, [`Usage`] how often it is
//! used, and `holds` what keeps it from being stopped.
//!
//! **Invariant:** what is remembered is only shown. Whatever is decided about a call is decided on
//! what the running server lists, on the connection that the call is sent to.

mod holds;
mod idle;
mod manifest;
mod memory;
mod server;
mod supervisor;
mod usage;
mod watch;

pub use holds::is_over;
pub use idle::IdleRule;
pub use manifest::Manifest;
pub(crate) use server::{Lease, Server};
pub use server::{Start, Terms};
pub use supervisor::{Spawn, Supervision, Supervisor, SupervisorPorts};
pub use usage::Usage;
