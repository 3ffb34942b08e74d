//! Authentication of callers: the chain, tokens of issuers, and attacks on both.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

mod chain;
mod jwt;
mod support;
