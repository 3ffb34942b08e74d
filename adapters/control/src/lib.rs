//! The socket through which the operator reaches a running gateway.
//!
//! Read in this order: `folder` has the paths of sockets and their permissions, `message` the
//! protocol, [`Control`] is a gateway's side and [`Gateway`] a shell's; `conversation` is one
//! operation that runs in the gateway.
//!
//! **Invariant:** both sides belong to the same user, and both check it: the folder and the socket
//! are closed to others, and the kernel reports the user of the other side.

mod folder;
mod message;
mod server;
mod client;
mod conversation;

pub use client::{Gateway, find};
pub use conversation::{Handler, OperationMessage, ToShell};
pub use server::{Control, ControlEndpoint, Declined};

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 1024 * 1024;

/// Maximum length of a line with an operation or its result, in bytes.
///
/// The result may be the answer of a server, with escapes.
const MAX_LONG_LINE: usize = 128 * 1024 * 1024;

/// Timeout for a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason why the socket cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The folder or the socket is not accessible.
    #[error("cannot use {}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The folder belongs to another user, or is not a folder.
    #[error("{} belongs to another user or is not a folder", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// A gateway does not answer, or not in this protocol.
    #[error("the gateway at {} does not answer", path.display())]
    Silent {
        /// The path.
        path: PathBuf,
    },
    /// The gateway does not run the operation; nothing was done.
    #[error("the gateway refused the operation: {0}")]
    Declined(String),
    /// The gateway refuses the request.
    #[error("{0}")]
    Refused(String),
}
