//! What tests of the other crates stand on: a world of their own, a server that misbehaves on
//! request, and the smallest possible client.
//!
//! - [`World`] is a home folder with configuration, in which `capstan` is run.
//! - [`fixture`] is the server behind the binary `capstan-fixture`.
//! - [`conformance`] is the server behind the binary `capstan-conformance-server`.
//! - [`Remote`] is that server behind HTTP, while a test runs.
//! - [`peer`] is the client behind the binary `capstan-thinclient`.
//! - [`process`] looks at processes from outside.
//!
//! Whatever cannot be set up fails the test at once, with the line that asked for it.

pub mod world;
pub mod process;
pub mod peer;
pub mod fixture;
pub mod conformance;
pub mod remote;

mod fail;

pub use process::{alive, descendants, wait_until};
pub use remote::Remote;
pub use world::{Capstan, Ended, World, binary};
