//! The common parts of the tests of the other crates.
//!
//! - [`fakes`] are fakes of the hub's ports, and [`SingleServerHub`] is a hub with one server.
//! - [`MemoryVault`] is a vault in memory.
//! - [`http`] is a raw HTTP client.
//! - [`World`] is a home folder with configuration, in which `capstan` is run.
//! - [`fixture`] is the server behind the binary `capstan-fixture`.
//! - [`conformance`] is the server behind the binary `capstan-conformance-server`.
//! - [`Remote`] is that server behind HTTP, while a test runs.
//! - [`model_api`] is a stand-in for the interfaces of model providers, [`embedding_api`] for services
//!   of embeddings, [`qdrant`] for a Qdrant server; [`json_server`] is what the last two are made of.
//! - [`peer`] is the client behind the binary `capstan-thinclient`.
//! - [`process`] looks at processes from outside.
//!
//! A failed setup fails the test at once, with the line of the caller.

pub mod world;
pub mod process;
pub mod peer;
pub mod fixture;
pub mod conformance;
pub mod remote;
pub mod fakes;
pub mod vault;
pub mod http;
pub mod model_api;
pub mod json_server;
pub mod embedding_api;
pub mod qdrant;
pub mod single_server_hub;

mod fail;

pub use process::{alive, descendants, wait_until};
pub use remote::Remote;
pub use single_server_hub::{SingleServerHub, until};
pub use vault::MemoryVault;
pub use world::{Capstan, Ended, World, binary};
