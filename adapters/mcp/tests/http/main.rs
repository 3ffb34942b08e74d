//! Servers behind HTTP, in every mood.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod peer;
mod scene;
mod legacy;
mod modern;
mod older;
mod streams;
mod lanes;
mod large;
mod faults;
mod redirects;
