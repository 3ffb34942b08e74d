//! HTTP interfaces as servers: the operations of an OpenAPI document become tools.
//!
//! Read in this order: [`settings`] is what the configuration says of one document, `load` fetches
//! it, `yaml` and `document` read it, `files` what lies beside it, `base` says where requests go, `schema` makes JSON schemas of
//! what it says, `operation`, `parameter` and `body` read operations, `tool` makes tools of them,
//! `arguments`, `encode` and `request` make a request of a call, `scheme` and `auth` say what it is sent with, `token`
//! gets what must be got for that, `answer` makes an answer of what came back, and `server` implements
//! the hub's port.
//!
//! **Invariant:** a caller's value stays within the place that the document gives it: one segment of
//! the path, one value of the query, one header, one part of the body. It chooses neither the
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
