//! How a call can fail.

use std::time::Duration;

use serde::Serialize;

use crate::{Kind, ServerName};

/// A failed call.
///
/// `Display` names the failure without its cause; print the cause chain where it is shown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Nobody offers an item of that name.
    #[error("no {kind} named `{name}`", kind = kind.as_str())]
    Unknown {
        /// Tool, resource or prompt.
        kind: Kind,
        /// The name as the caller wrote it.
        name: String,
        /// Names that look like it, nearest first.
        nearest: Vec<String>,
    },
    /// It is there, but what its server says of it cannot be used.
    #[error("`{item}` is hidden: {reason}")]
    Hidden {
        /// The item asked for.
        item: String,
        /// What is wrong with its definition.
        reason: String,
    },
    /// The arguments cannot be sent as they are.
    #[error("invalid arguments for `{item}`: {problem}")]
    InvalidArguments {
        /// The item asked for.
        item: String,
        /// What is wrong with them.
        problem: String,
    },
    /// A rule forbids the call.
    #[error("`{item}` is denied by rule `{rule}`")]
    Denied {
        /// The item asked for.
        item: String,
        /// The rule that forbade it.
        rule: String,
    },
    /// The operator said no.
    #[error("`{item}` was refused by whoever was asked (by rule `{rule}`)")]
    Refused {
        /// The item asked for.
        item: String,
        /// The rule that asked.
        rule: String,
    },
    /// Nobody was there to ask, or nobody answered.
    #[error("`{item}` needs an approval and got none (rule `{rule}`)")]
    NotApproved {
        /// The item asked for.
        item: String,
        /// The rule that asked.
        rule: String,
        /// The question that the operator can still answer, so that the same call passes later.
        open: Option<String>,
    },
    /// The session has used up its calls.
    #[error("the quota of {limit} calls for this session is used up")]
    QuotaExceeded {
        /// Calls allowed.
        limit: u32,
    },
    /// Too many calls of this kind in too little time, by a rate that the operator has set.
    #[error("the rate of {rate} is used up{}", because(reason.as_deref()))]
    RateExceeded {
        /// The rate, in words.
        rate: String,
        /// What the operator has to say about it.
        reason: Option<String>,
        /// When there is room for the next call.
        free_in: Duration,
    },
    /// The call was not made, because it could not be written down and the operator wants no such
    /// calls.
    #[error("the audit log cannot be written, and so the call was not made: {reason}")]
    Unrecordable {
        /// What is in the way.
        reason: String,
    },
    /// The call was made and could not be written down; its answer is withheld.
    #[error("the call was made but could not be written to the audit log: {reason}")]
    Unrecorded {
        /// What was in the way.
        reason: String,
    },
    /// The server cannot be used at all: it did not start, or its connection broke.
    #[error("server `{server}` is not usable: {reason}")]
    Unreachable {
        /// The server asked.
        server: ServerName,
        /// What is known about why.
        reason: String,
    },
    /// A rule about addresses keeps us from connecting to the server.
    #[error("server `{server}` is blocked: {reason}")]
    AddressBlocked {
        /// The server asked.
        server: ServerName,
        /// The address, and the line of configuration that would allow it.
        reason: String,
    },
    /// The server answered, and leads to another one, where we do not go.
    #[error("server `{server}` is blocked: {reason}")]
    LedElsewhere {
        /// The server asked.
        server: ServerName,
        /// Where it leads, and what was sent.
        reason: String,
    },
    /// The server went away while a call that may write was in flight.
    #[error("server `{server}` went away during the call; whether it took effect is not known")]
    OutcomeUnknown {
        /// The server asked.
        server: ServerName,
        /// What is known about why it went away.
        reason: String,
    },
    /// It had no answer yet when we were told to end.
    #[error("capstan was stopped before the answer came")]
    Stopped,
    /// The server took longer than its limit.
    #[error("server `{server}` did not answer within {limit:?}")]
    TimedOut {
        /// The server asked.
        server: ServerName,
        /// How long was waited.
        limit: Duration,
        /// Whether trying again could run a write twice.
        may_have_run: bool,
    },
    /// The server wants a login, or refuses the one that it got.
    #[error("server `{server}` refuses us: {reason}")]
    Unauthorized {
        /// The server asked.
        server: ServerName,
        /// Its words.
        reason: String,
    },
    /// The server takes no more calls for a while.
    #[error("server `{server}` takes no more calls for now")]
    RateLimited {
        /// The server asked.
        server: ServerName,
        /// When it may take some again, where it says so.
        retry_after: Option<Duration>,
    },
    /// The server answered with an HTTP status and nothing that MCP knows.
    #[error("server `{server}` answered with HTTP status {status}: {reason}")]
    Status {
        /// The server asked.
        server: ServerName,
        /// The status.
        status: u16,
        /// Its words, or ours for the status.
        reason: String,
    },
    /// The server answered with a JSON-RPC error.
    #[error("server `{server}` answered with error {code}: {message}")]
    Server {
        /// The server asked.
        server: ServerName,
        /// Its JSON-RPC code.
        code: i64,
        /// Its words.
        message: String,
        /// The whole error as it wrote it, in JSON; `None` when it never wrote one.
        whole: Option<String>,
    },
    /// The answer is larger than the limit.
    #[error("the answer of `{item}` has at least {size} bytes; the limit is {limit}")]
    AnswerTooLarge {
        /// The item asked for.
        item: String,
        /// Its size, as far as it came.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// What the server sent is not what the protocol says.
    #[error("server `{server}` sent something that is not MCP: {problem}")]
    Protocol {
        /// The server asked.
        server: ServerName,
        /// What is wrong with it.
        problem: String,
    },
}

/// The stable, machine-readable class of a [`CallError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Worth trying again.
    Transient,
    /// Too many calls in too little time.
    RateLimited,
    /// The server failed.
    ServerError,
    /// The arguments are wrong.
    InvalidInput,
    /// A login is missing or no longer good.
    AuthFailure,
    /// No such thing.
    NotFound,
    /// A rule or a person refused.
    PolicyBlocked,
    /// The quota is spent.
    QuotaBlocked,
    /// The server died with a write in flight.
    OutcomeUnknown,
}

// === impl CallError ===

impl CallError {
    /// The class of this error. Exhaustive on purpose: a new error must choose its class.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } | Self::Hidden { .. } => ErrorCode::NotFound,
            Self::InvalidArguments { .. } => ErrorCode::InvalidInput,
            Self::Denied { .. }
            | Self::Refused { .. }
            | Self::NotApproved { .. }
            | Self::AddressBlocked { .. }
            | Self::LedElsewhere { .. } => ErrorCode::PolicyBlocked,
            Self::QuotaExceeded { .. } | Self::RateExceeded { .. } => ErrorCode::QuotaBlocked,
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Unrecordable { .. } => {
                ErrorCode::Transient
            }
            // To the caller it is the same: it ran, and what came of it is not told.
            Self::OutcomeUnknown { .. } | Self::Unrecorded { .. } | Self::Stopped => {
                ErrorCode::OutcomeUnknown
            }
            Self::Unauthorized { .. } => ErrorCode::AuthFailure,
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::Status { status, .. } => code_of_status(*status),
            Self::Server { code, .. } => code_of_json_rpc(*code),
            Self::AnswerTooLarge { .. } | Self::Protocol { .. } => ErrorCode::ServerError,
        }
    }

    /// Whether the same call may succeed later without running anything twice.
    pub fn retryable(&self) -> bool {
        match self {
            Self::TimedOut { may_have_run, .. } => !may_have_run,
            // Unlike a quota, a rate frees itself.
            Self::RateExceeded { .. } => true,
            // Only this status says that the call was not even looked at.
            Self::Status { status, .. } => *status == 503,
            // What a server says failed inside it may have happened in part.
            Self::Server { .. } | Self::AnswerTooLarge { .. } | Self::Protocol { .. } => false,
            Self::Unknown { .. }
            | Self::Hidden { .. }
            | Self::InvalidArguments { .. }
            | Self::Denied { .. }
            | Self::Refused { .. }
            | Self::NotApproved { .. }
            | Self::QuotaExceeded { .. }
            | Self::Unreachable { .. }
            | Self::AddressBlocked { .. }
            | Self::LedElsewhere { .. }
            | Self::Unauthorized { .. }
            | Self::RateLimited { .. }
            | Self::Unrecordable { .. }
            | Self::Unrecorded { .. }
            | Self::Stopped
            | Self::OutcomeUnknown { .. } => self.code().retryable(),
        }
    }
}

/// The class of a server's JSON-RPC error code.
fn code_of_json_rpc(code: i64) -> ErrorCode {
    match code {
        -32602 | -32600 => ErrorCode::InvalidInput,
        -32601 | -32002 => ErrorCode::NotFound,
        _ => ErrorCode::ServerError,
    }
}

/// The class of an HTTP status that came instead of an answer.
fn code_of_status(status: u16) -> ErrorCode {
    match status {
        401 | 403 | 407 => ErrorCode::AuthFailure,
        404 | 410 => ErrorCode::NotFound,
        429 => ErrorCode::RateLimited,
        408 | 425 | 502..=504 => ErrorCode::Transient,
        400..=499 => ErrorCode::InvalidInput,
        _ => ErrorCode::ServerError,
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

// === impl ErrorCode ===

impl ErrorCode {
    /// The code's word on the wire, in output and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::InvalidInput => "invalid_input",
            Self::AuthFailure => "auth_failure",
            Self::NotFound => "not_found",
            Self::PolicyBlocked => "policy_blocked",
            Self::QuotaBlocked => "quota_blocked",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }

    /// Whether an error of this class may go away by itself.
    pub fn retryable(self) -> bool {
        match self {
            Self::Transient | Self::RateLimited | Self::ServerError => true,
            Self::InvalidInput
            | Self::AuthFailure
            | Self::NotFound
            | Self::PolicyBlocked
            | Self::QuotaBlocked
            | Self::OutcomeUnknown => false,
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
