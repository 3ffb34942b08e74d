//! What the canonical tree of one file means.

pub(crate) mod file;
pub(crate) mod server;
mod openapi;
pub(crate) mod preset;
mod kind;
mod access;
mod authorization;
mod tables;

pub(crate) use file::Part;
pub(crate) use tables::Tables;
