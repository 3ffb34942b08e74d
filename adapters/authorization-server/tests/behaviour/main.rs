//! The behaviour of the authorization server, as clients, users and attackers see it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

mod authorize;
mod clients;
mod consent;
mod memory;
mod site;
mod tokens;
mod upstream;
