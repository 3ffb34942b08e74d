//! Servers that come and go: listed from memory, started on first use, stopped when idle.
//!
//! A tended server stands around a backend and is what the hub knows of it; [`Supervisor`] looks
//! after all of them. [`Manifest`] is what is remembered of a server over restarts, [`IdleRule`] says after what
//! time without use it is stopped, [`Usage`] how often it is used, and `holds` what keeps it from
//! being stopped.
//!
//! **Invariant:** what is remembered is only shown. Whatever is decided about a call is decided on
//! what the running server says of its items ([`Backend::current`](crate::ports::Backend::current)).

mod counted;
mod holds;
mod idle;
mod manifest;
mod memory;
mod supervisor;
mod tended;
mod usage;
mod watch;

pub use holds::is_over;
pub use idle::IdleRule;
pub use manifest::Manifest;
pub use supervisor::{Spawn, Supervision, Supervisor, SupervisorPorts};
pub use tended::{Start, Terms};
pub use usage::Usage;
