//! A gateway that runs while its configuration changes: the real binary, real servers.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

#[path = "../leftovers/mod.rs"]
mod leftovers;
#[expect(dead_code, reason = "it is shared, and not every test needs all of it")]
#[path = "../serve/stage.rs"]
mod stage;
mod scene;
mod reload;
mod attach;
