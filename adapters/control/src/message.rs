//! The protocol of the socket: JSON-RPC, one message per line.
//!
//! Operations and their results are JSON of the application layer, which the socket only carries.

use serde::Deserialize;

/// Reports which configuration is in force.
pub(crate) const ABOUT: &str = "gateway/about";

/// Runs an operation of the API for a shell.
pub(crate) const RUN: &str = "api/run";

/// Sends an event of the operation to the shell.
pub(crate) const EVENT: &str = "api/event";

/// Asks the shell a question of the operation.
pub(crate) const ASK: &str = "api/ask";

/// The error of an operation that does not run here; nothing was done.
///
/// It is meant for another configuration or version, or too many are running.
pub(crate) const DECLINED: i64 = -32002;

/// The result of [`ABOUT`].
#[derive(Debug, Deserialize)]
pub(crate) struct About {
    pub(crate) digest: String,
}
