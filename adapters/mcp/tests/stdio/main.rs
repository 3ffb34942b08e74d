//! Real children, in every mood.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod scene;
mod eras;
mod lanes;
mod lists;
mod outside;
mod long;
mod calls;
mod deaths;
mod definition;
mod questions;
mod follow;
mod failures;
mod surroundings;
