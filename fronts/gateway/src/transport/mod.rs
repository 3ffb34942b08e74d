//! The transports: they carry messages between clients and the gateway.
//!
//! [`stdio`] serves one client over standard input and output; [`http`] serves many clients over
//! Streamable HTTP and over HTTP with server-sent events.

pub mod stdio;
pub mod http;
