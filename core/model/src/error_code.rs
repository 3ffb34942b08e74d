//! The stable classes of failed calls, and the codes of others that they stand for.

use serde::Serialize;

use crate::rpc_code::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND};

/// The stable, machine-readable class of a [`CallError`](crate::CallError).
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
    /// A login is missing or no longer valid.
    AuthFailure,
    /// The item does not exist.
    NotFound,
    /// A rule or a person refused.
    PolicyBlocked,
    /// The quota is used up.
    QuotaBlocked,
    /// The connection was lost with a write in flight, or the outcome is unknown for another
    /// reason.
    OutcomeUnknown,
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

    /// True if an error of this class may go away by itself.
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

/// The class of a server's JSON-RPC error code.
pub(crate) fn code_of_json_rpc(code: i64) -> ErrorCode {
    match code {
        INVALID_PARAMS | INVALID_REQUEST => ErrorCode::InvalidInput,
        METHOD_NOT_FOUND | RESOURCE_NOT_FOUND => ErrorCode::NotFound,
        _ => ErrorCode::ServerError,
    }
}

/// The class of an HTTP status that came instead of an answer.
pub(crate) fn code_of_status(status: u16) -> ErrorCode {
    match status {
        401 | 403 | 407 => ErrorCode::AuthFailure,
        404 | 410 => ErrorCode::NotFound,
        429 => ErrorCode::RateLimited,
        408 | 425 | 502..=504 => ErrorCode::Transient,
        400..=499 => ErrorCode::InvalidInput,
        _ => ErrorCode::ServerError,
    }
}
