//! Many clients at once: every answer, message and failure reaches whom it belongs to.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

mod wire;
mod client;
mod calls;
mod ends;
mod order;
mod quota;
#[path = "../serve/stage.rs"]
#[expect(dead_code, reason = "the other half is for the tests of one client")]
mod stage;
