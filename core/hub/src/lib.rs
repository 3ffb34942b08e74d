//! The road every call takes.

pub mod entry;

pub use entry::{Entry, Ground, Outcome};
