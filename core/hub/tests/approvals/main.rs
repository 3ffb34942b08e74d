//! Calls that a rule asks about: who may say yes, how far it reaches, and how often it counts.
//!
//! The scene is two servers, `files` and `notes`. No rule speaks of their tools, so all of them
//! ask; only `files__pay` has a rule of its own that asks.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

#[path = "../world/mod.rs"]
mod world;
mod scene;
mod shells;
mod extents;
mod bounds;
mod changes;
mod client_dialog;
