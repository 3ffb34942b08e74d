//! Logins at a server and an authorization server that a test scripts.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod stage;
mod flow;
mod clients;
mod renew;
mod attacks;
