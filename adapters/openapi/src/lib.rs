//! HTTP interfaces as servers: the operations of an OpenAPI document become tools.
//!
//! Read in this order: [`settings`] is the configuration of one document, `load` fetches it, `yaml`
//! and `document` parse it, `files` adds the files beside it, `base` determines where requests go,
//! `schema` writes JSON schemas, `operation`, `parameter` and `body` read operations, `tool`
//! converts them into tools, `arguments`, `encode` and `request` convert a call into a request,
//! `scheme` and `auth` add its credentials, `token` gets tokens for them, `answer` converts the
//! response into an answer, and `server` implements the hub's port.
//!
//! **Invariant:** a caller's value stays within the place that the document gives it: one segment
//! of the path, one value of the query, one header, one part of the body. It chooses neither the
//! operation nor the host, and it adds no parameter of its own.

pub mod settings;
mod load;
mod yaml;
mod document;
mod files;
mod base;
mod schema;
mod parameter;
mod body;
mod operation;
mod tool;
mod encode;
mod arguments;
mod request;
mod answer;
mod token;
mod scheme;
mod auth;
mod server;

pub use server::OpenApiServer;
pub use settings::{OpenApiSettings, Source};
