//! Why a server cannot be used, in terms that tell a login from a broken wire.

use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// It cannot be reached, or did not start, or makes no sense.
    #[error("{0}")]
    Unreachable(String),
    /// A rule of ours keeps us from connecting to its address. Nothing was sent.
    #[error("{0}")]
    Blocked(String),
    /// It answered, and leads to another server, where we do not go.
    #[error("{0}")]
    Elsewhere(String),
    /// It wants a login.
    #[error("it wants a login: {0}")]
    Login(String),
    /// It knows us and says no.
    #[error("it refuses us: {0}")]
    Forbidden(String),
    /// It takes no more requests for a while.
    #[error("it takes no more requests for now")]
    RateLimited(Option<Duration>),
    /// It answered with an HTTP status.
    #[error("it answered with HTTP status {status}: {words}")]
    Status {
        /// The status.
        status: u16,
        /// Its words, or ours for the status.
        words: String,
    },
    /// What it sent is not what the protocol says.
    #[error("it sent something that is not MCP: {0}")]
    NotMcp(String),
    /// It sends a message without end; the connection ends with it.
    #[error("it sent something that is not MCP: {0}")]
    Endless(String),
    /// An answer of it has more bytes than this, and was not kept.
    #[error("an answer of it has more than {0} bytes")]
    TooLong(usize),
}

// === impl Fault ===

impl Fault {
    /// The error of a call that failed for this.
    pub(crate) fn into_error(self, server: &ServerName) -> CallError {
        let server = server.clone();
        match self {
            Self::Unreachable(reason) => CallError::Unreachable { server, reason },
            Self::Blocked(reason) => CallError::AddressBlocked { server, reason },
            Self::Elsewhere(reason) => CallError::LedElsewhere { server, reason },
            Self::Login(reason) | Self::Forbidden(reason) => {
                CallError::Unauthorized { server, reason }
            }
            Self::RateLimited(retry_after) => CallError::RateLimited { server, retry_after },
            Self::Status { status, words } => CallError::Status { server, status, reason: words },
            Self::NotMcp(problem) | Self::Endless(problem) => {
                CallError::Protocol { server, problem }
            }
            Self::TooLong(limit) => CallError::AnswerTooLarge {
                item: server.to_string(),
                size: limit.saturating_add(1),
                limit,
            },
        }
    }

    /// The state of a server that failed for this.
    pub(crate) fn state(&self) -> ServerState {
        match self {
            Self::Login(_) => ServerState::NeedsLogin,
            Self::Unreachable(_)
            | Self::Blocked(_)
            | Self::Elsewhere(_)
            | Self::Forbidden(_)
            | Self::RateLimited(_)
            | Self::Status { .. }
            | Self::NotMcp(_)
            | Self::Endless(_)
            | Self::TooLong(_) => ServerState::Failed(self.to_string()),
        }
    }

    /// Whether asking again at once would get the same answer, so that nobody needs to wait for it.
    pub(crate) fn lasts(&self) -> bool {
        match self {
            Self::Blocked(_)
            | Self::Elsewhere(_)
            | Self::Login(_)
            | Self::Forbidden(_)
            | Self::RateLimited(_) => true,
            Self::Status { status, .. } => *status < 500,
            Self::Unreachable(_) | Self::NotMcp(_) | Self::Endless(_) | Self::TooLong(_) => false,
        }
    }
}
