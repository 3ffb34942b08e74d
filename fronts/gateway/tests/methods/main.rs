//! The methods of the gateway, without a face: what clients of either era get from servers that
//! do as they are told.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod harness;

mod audit;
mod changes;
mod first_list;
mod side_requests;
mod limits;
mod names;
mod renew;
mod questions;
mod tasks;
mod follow;
mod stdio_end;
mod extensions;
mod own_tools;
mod own_words;
mod uris;
