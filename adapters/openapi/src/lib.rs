//! HTTP interfaces as servers: the operations of an OpenAPI document become tools.
//!
//! Read in this order: [`settings`] is the configuration of one document, `document` loads and
//! parses it, `operation` reads its operations and makes tools of them, `request` converts a call
//! into a request and its response into an answer, `auth` adds the credentials, and `server` puts
//! them together.
//!
//! **Invariant:** a caller's value stays within the place that the document gives it: one segment
//! of the path, one value of the query, one header, one part of the body. It chooses neither the
//! operation nor the host, and it adds no parameter of its own.

pub mod settings;
mod document;
mod operation;
mod request;
mod auth;
mod server;

pub use server::OpenApiServer;
pub use settings::{OpenApiSettings, Source};
