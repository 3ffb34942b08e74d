//! The HTTP transport, as a client sees it: a real socket, a hub of fakes behind it.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod resume;
mod harness;

mod guards;
mod routes;
mod half_close;
mod legacy;
mod metrics;
mod batches;
mod modern;
mod legacy_sse;
mod limits;
mod shutdown;
mod streamed;
mod traces;
mod tls;
