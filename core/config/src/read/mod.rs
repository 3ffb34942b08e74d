//! Interprets the canonical tree of one file.

mod auth;
pub(crate) mod file;
pub(crate) mod server;
pub(crate) mod kind;
mod tables;

pub(crate) use file::Part;
pub(crate) use tables::Tables;
