//! Reads the source tree for the tests about it.
//!
//! The rules are in `tests/`: `layers.rs` says which crate may use which, `dependencies.rs` what
//! may be used from outside, `sources.rs` what every source file keeps to, and `documents.rs` what
//! the documents and scripts keep to. Here is what they read the tree with: [`tree`] finds the
//! files, [`source`] looks into Rust code, [`markdown`] into documents, [`metadata`] asks cargo
//! about the crates, and [`licence`] understands licence expressions.

pub mod tree;
pub mod source;
pub mod markdown;
pub mod metadata;
pub mod licence;
