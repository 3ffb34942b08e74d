//! Servers behind HTTP, through the real binary: faults, certificates, proxies, and the examples
//! of other programs' manuals.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

mod peer;
mod stage;
mod faults;
mod headers;
mod secrets;
mod tls;
mod proxy;
mod login;
mod caliban_and_mcp;
mod zeph_and_llxprt;
