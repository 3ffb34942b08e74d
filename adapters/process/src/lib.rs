//! Starts programs and ends them reliably.
//!
//! [`spawn`](mod@spawn) starts a program behind its [`keeper`]; no other code starts processes.
//! [`sandbox`] confines it. [`once`] runs a program and collects its output, [`stderr`] keeps the last lines of a program
//! that keeps running, `line` and [`turn`] bound reading, [`footprint`] measures memory and
//! processor time.

pub mod spawn;
pub mod keeper;
pub mod once;
pub mod sandbox;
pub mod stderr;
pub mod line;
pub mod turn;
pub mod footprint;

pub use spawn::SpawnError;
