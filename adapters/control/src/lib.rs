//! The socket by which the operator reaches a running gateway.
//!
//! Read in this order: `folder` says where sockets are and who may reach them, `message` what is
//! said over one, [`Control`] is a gateway's end and [`Gateway`] a shell's; `conversation` is
//! one operation that runs in the gateway.
//!
//! **Invariant:** both ends belong to the same user, and both check it: the folder and the socket are
//! closed to others, and the kernel is asked who is on the other side.

mod folder;
mod message;
mod server;
mod client;
mod conversation;

pub use client::{Gateway, find};
pub use conversation::{Heard, Hears, Outgoing};
pub use server::{Control, ControlEndpoint, NotHere};

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long one line of a conversation may be, in bytes.
const MAX_LINE: usize = 1024 * 1024;

/// How long a line may be that carries an operation or its result: an answer of a server, and the
/// escapes in it.
const MAX_LONG_LINE: usize = 128 * 1024 * 1024;

/// How long the other side may take for a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the socket cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The folder or the socket cannot be had.
    #[error("cannot use {}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The folder is not ours alone.
    #[error("{} belongs to somebody else or is no folder", path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
    },
    /// A gateway does not answer, or not in our language.
    #[error("the gateway at {} does not answer", path.display())]
    Silent {
        /// Where.
        path: PathBuf,
    },
    /// No question of that name lies open.
    #[error("there is no open question of that name")]
    Unknown,
    /// The gateway does not run the operation; nothing was done.
    #[error("the gateway does not run it: {0}")]
    NotHere(String),
    /// The gateway refuses.
    #[error("{0}")]
    Refused(String),
}
