//! What reaches a collector, as a collector reads it.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod sink;
mod traces;
mod numbers;
mod ends;
