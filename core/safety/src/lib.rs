//! Pure checks of data that crosses the boundary of the process.
//!
//! [`environment`] and [`command`] guard the start of programs, [`address`] guards connections.
//! [`mask`] removes secrets from shown or logged text, [`clean`] escapes or removes control and
//! hidden characters, [`scan`] finds texts that try to steer a model or to deceive a person.
//!
//! **Invariant:** no I/O, no clock, no randomness: equal inputs give equal results.

pub mod address;
pub mod app_scheme;
pub mod command;
pub mod environment;
pub mod mask;
pub mod scan;
pub mod clean;
