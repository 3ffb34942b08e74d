//! Reasons why a server cannot be used; a missing login is separate from a broken connection.

use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};

/// The reason why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The server is unreachable, did not start, or does not follow the protocol.
    #[error("{0}")]
    Unreachable(String),
    /// One of our rules forbids connecting to its address. Nothing was sent.
    #[error("{0}")]
    Blocked(String),
    /// The server answered with a redirect to another server, which is not followed.
    #[error("{0}")]
    Elsewhere(String),
    /// The server requires a login.
    #[error("it requires a login: {0}")]
    Login(String),
    /// The server refuses the configured credentials.
    #[error("it refuses the configured credentials: {0}")]
    Credentials(String),
    /// The server requires a login with more scopes, for this request.
    #[error("{0}")]
    Scopes(String),
    /// The server recognizes our login and refuses access.
    #[error("it refused access: {0}")]
    Forbidden(String),
    /// The server accepts no more requests for a while.
    #[error("it takes no more requests for now")]
    RateLimited(Option<Duration>),
    /// The server answered with an HTTP status.
    #[error("it answered with HTTP status {status}: {words}")]
    Status {
        /// The status.
        status: u16,
        /// The server's message, or our text for the status.
        words: String,
    },
    /// The server's message violates the protocol.
    #[error("it sent something that is not MCP: {0}")]
    NotMcp(String),
    /// A message of the server has no end; the connection is closed.
    #[error("it sent something that is not MCP: {0}")]
    Endless(String),
    /// An answer of the server has more bytes than this, and was dropped.
    #[error("an answer of it has more than {0} bytes")]
    TooLong(usize),
}

// === impl Fault ===

impl Fault {
    /// Converts the fault into the error of the call that failed.
    pub(crate) fn into_error(self, server: &ServerName) -> CallError {
        let server = server.clone();
        match self {
            Self::Unreachable(reason) => CallError::Unreachable { server, reason },
            Self::Blocked(reason) => CallError::AddressBlocked { server, reason },
            Self::Elsewhere(reason) => CallError::LedElsewhere { server, reason },
            Self::Login(reason) | Self::Scopes(reason) => CallError::NeedsLogin { server, reason },
            Self::Credentials(reason) | Self::Forbidden(reason) => {
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

    /// The state of a server that has this fault.
    pub(crate) fn state(&self) -> ServerState {
        match self {
            Self::Login(_) => ServerState::NeedsLogin,
            Self::Unreachable(_)
            | Self::Blocked(_)
            | Self::Elsewhere(_)
            | Self::Credentials(_)
            | Self::Scopes(_)
            | Self::Forbidden(_)
            | Self::RateLimited(_)
            | Self::Status { .. }
            | Self::NotMcp(_)
            | Self::Endless(_)
            | Self::TooLong(_) => ServerState::Failed(self.to_string()),
        }
    }

    /// True if an immediate retry would fail in the same way. Callers then need not wait for one.
    pub(crate) fn lasts(&self) -> bool {
        match self {
            Self::Blocked(_)
            | Self::Elsewhere(_)
            | Self::Credentials(_)
            | Self::Scopes(_)
            | Self::Forbidden(_)
            | Self::RateLimited(_) => true,
            Self::Status { status, .. } => *status < 500,
            // Somebody may log in meanwhile.
            Self::Login(_)
            | Self::Unreachable(_)
            | Self::NotMcp(_)
            | Self::Endless(_)
            | Self::TooLong(_) => false,
        }
    }
}
