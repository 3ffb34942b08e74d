//! Pure checks of what crosses the boundary of the process.
//!
//! [`environment`] and [`command`] guard the start of programs, [`address`] guards connections.
//! [`mask`] keeps secrets out of what is shown or logged, [`clean`] control and hidden characters,
//! [`injection`] marks texts that try to
//! instruct a model.
//!
//! **Invariant:** no I/O, no clock, no randomness: equal inputs give equal results.

pub mod address;
pub mod command;
pub mod environment;
pub mod injection;
pub mod mask;
pub mod clean;
