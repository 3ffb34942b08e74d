//! Servers that come and go: listed from memory, started on first use, stopped when idle.
//!
//! [`Tended`] stands around a server and is what the hub knows of it; [`Tender`] looks after all of
//! them. [`Manifest`] is what is remembered of a server over restarts, [`IdleRule`] says after what
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
mod tended;
mod tender;
mod usage;
mod vitals;
mod watch;

pub use holds::is_over;
pub use idle::IdleRule;
pub use manifest::Manifest;
pub use tended::{Start, Tended, Terms};
pub use tender::{Around, Spawn, Tender};
pub use usage::Usage;
pub use vitals::Vitals;
