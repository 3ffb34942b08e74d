//! The gateway: all servers behind one endpoint, for clients of every revision of the protocol.
//!
//! A request passes the folders from the bottom to the top: a [`transport`] reads it,
//! [`gateway`] hands it to one of the `methods`, and an [`exchange`] carries notices, questions
//! and the answer back.
//!
//! **Invariant:** a transport handles bytes and connections, and no method; a method uses no
//! transport.

mod protocol;
pub mod client;
mod fairness;
pub mod exchange;
mod questions;
mod methods;
mod metrics;
pub mod gateway;
pub mod transport;

pub use client::{Client, ClientContext, View};
pub use exchange::answer::{Answer, Partly};
pub use exchange::streamed_answer::{Cut, StreamedAnswer};
pub use exchange::{Exchange, Next, Out};
pub use gateway::Gateway;
pub use metrics::Readings;
pub use protocol::revision::{self, Revision};
pub use questions::sealed_state::NoRandomness;
pub use transport::{http, stdio};
