//! How a call can fail.

use std::time::Duration;

use crate::error_code::{code_of_json_rpc, code_of_status};
use crate::{By, ErrorCode, ItemId, Kind, ServerName};

/// A failed call.
///
/// `Display` names the failure without its cause; print the cause chain where it is shown.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// No server offers an item of that name.
    #[error("no {kind} named `{name}`", kind = kind.as_str())]
    Unknown {
        /// Tool, resource or prompt.
        kind: Kind,
        /// The name as the caller wrote it.
        name: String,
        /// Similar names, nearest first.
        nearest: Vec<String>,
    },
    /// The item exists, but its definition cannot be used.
    #[error("`{item}` is hidden: {reason}")]
    Hidden {
        /// The item asked for.
        item: String,
        /// The problem with its definition.
        reason: String,
    },
    /// The arguments cannot be sent as they are.
    #[error("invalid arguments for `{item}`: {problem}")]
    InvalidArguments {
        /// The item asked for.
        item: String,
        /// The problem with them.
        problem: String,
    },
    /// A header of the request does not repeat the argument that the tool requires it to repeat.
    #[error("the header `{header}` is missing or does not match the body")]
    HeaderMismatch {
        /// The item asked for.
        item: String,
        /// The header.
        header: String,
    },
    /// A rule forbids the call.
    #[error("`{item}` is denied by rule `{rule}`")]
    Denied {
        /// The item asked for.
        item: String,
        /// The rule that forbade it.
        rule: String,
    },
    /// A rule about flows forbids the call in this conversation. In another one it may be allowed.
    #[error("`{item}` is not allowed in this conversation: {rule}")]
    FlowBlocked {
        /// The item asked for.
        item: String,
        /// The rule, with the item whose answer the conversation has received.
        rule: String,
    },
    /// The operator said no.
    #[error("`{item}` was refused by the operator, who was asked because of rule `{rule}`")]
    Refused {
        /// The item asked for.
        item: String,
        /// The rule that asked.
        rule: String,
    },
    /// No operator could be asked, or none answered.
    #[error("`{item}` needs an approval by rule `{rule}`, {why}")]
    NotApproved {
        /// The item asked for.
        item: ItemId,
        /// The rule that asked.
        rule: String,
        /// The origin of the rule, which decides how to allow the call.
        by: By,
        /// The reason why there is no approval.
        why: Unapproved,
        /// The id of the question that the operator can still answer, so that the same call passes
        /// later.
        open: Option<String>,
    },
    /// The session has used up its calls.
    #[error("the quota of {limit} calls for this session is used up")]
    QuotaExceeded {
        /// Calls allowed.
        limit: u32,
    },
    /// Too many calls in too little time, by a rate that the operator has set.
    #[error("the rate of {rate} is used up{}", because(reason.as_deref()))]
    RateExceeded {
        /// The rate, in words.
        rate: String,
        /// The operator's reason for the rate.
        reason: Option<String>,
        /// The time until there is room for the next call.
        free_in: Duration,
    },
    /// The answer was not delivered: it looks like an attempt to steer the model. The call was made.
    #[error("the answer of `{item}` was blocked: {reason}")]
    AnswerBlocked {
        /// The item asked for.
        item: String,
        /// The findings.
        reason: String,
    },
    /// The call was not sent: the definition of its item is no longer the one that was decided on.
    #[error("the definition of `{item}` changed after the decision; nothing was sent")]
    DefinitionChanged {
        /// The item asked for.
        item: String,
    },
    /// The call was not made: it cannot be recorded, and the operator requires a record.
    #[error("the call was refused, because the audit log cannot be written: {reason}")]
    Unrecordable {
        /// The cause.
        reason: String,
    },
    /// The call was made but could not be recorded; its answer is withheld.
    #[error("the call was made but could not be written to the audit log: {reason}")]
    Unrecorded {
        /// The cause.
        reason: String,
    },
    /// The server cannot be used at all: it did not start, or its connection broke.
    #[error("server `{server}` is not usable: {reason}")]
    Unreachable {
        /// The server asked.
        server: ServerName,
        /// The cause, as far as it is known.
        reason: String,
    },
    /// A rule about addresses forbids connecting to the server.
    #[error("server `{server}` is blocked: {reason}")]
    AddressBlocked {
        /// The server asked.
        server: ServerName,
        /// The address, and the line of configuration that would allow it.
        reason: String,
    },
    /// The server redirected the request to another server, which is not followed.
    #[error("server `{server}` is blocked: {reason}")]
    LedElsewhere {
        /// The server asked.
        server: ServerName,
        /// The target of the redirect, and what was sent.
        reason: String,
    },
    /// The connection to the server was lost while a call that may write was in flight.
    #[error("server `{server}` went away during the call; whether it took effect is not known")]
    OutcomeUnknown {
        /// The server asked.
        server: ServerName,
        /// The cause, as far as it is known.
        reason: String,
    },
    /// Capstan was stopped before the answer arrived.
    #[error("capstan was stopped before the answer came")]
    Stopped,
    /// The server took longer than its limit.
    #[error("server `{server}` did not answer within {limit:?}")]
    TimedOut {
        /// The server asked.
        server: ServerName,
        /// The time limit.
        limit: Duration,
        /// True if trying again could run a write twice.
        may_have_run: bool,
    },
    /// The server requires a login, or one with more scopes.
    #[error("server `{server}` needs a login: {reason}; run `capstan login {server}`")]
    NeedsLogin {
        /// The server asked.
        server: ServerName,
        /// The server's message, or the scopes that are missing.
        reason: String,
    },
    /// The server is used with accounts of callers, and this caller has not signed in.
    #[error("server `{server}` needs an account of your own: {next}")]
    NeedsSignIn {
        /// The server asked.
        server: ServerName,
        /// The next step: the page to open, or the reason why there is none.
        next: String,
    },
    /// The server refuses the credentials of the configuration, or access.
    #[error("server `{server}` refused access: {reason}")]
    Unauthorized {
        /// The server asked.
        server: ServerName,
        /// The server's message.
        reason: String,
    },
    /// The server accepts no more calls for a while.
    #[error("server `{server}` takes no more calls for now")]
    RateLimited {
        /// The server asked.
        server: ServerName,
        /// When to try again, if the server says so.
        retry_after: Option<Duration>,
    },
    /// The server answered with an HTTP status and no MCP message.
    #[error("server `{server}` answered with HTTP status {status}: {reason}")]
    Status {
        /// The server asked.
        server: ServerName,
        /// The status.
        status: u16,
        /// The server's message, or ours for the status.
        reason: String,
    },
    /// The server answered with a JSON-RPC error.
    #[error("server `{server}` answered with error {code}: {message}")]
    Server {
        /// The server asked.
        server: ServerName,
        /// Its JSON-RPC code.
        code: i64,
        /// The server's message.
        message: String,
        /// The whole error object as the server wrote it, in JSON; `None` if there is none.
        whole: Option<String>,
        /// True if the server answered in the modern protocol (2026-07-28).
        is_modern: bool,
    },
    /// The answer is larger than the limit.
    #[error("the answer of `{item}` has at least {size} bytes; the limit is {limit}")]
    AnswerTooLarge {
        /// The item asked for.
        item: String,
        /// The size so far.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The server sent something that violates the protocol.
    #[error("server `{server}` sent something that is not MCP: {problem}")]
    Protocol {
        /// The server asked.
        server: ServerName,
        /// The problem with it.
        problem: String,
    },
}

/// The reason why a call that needs an approval has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unapproved {
    /// No person could be asked.
    #[error("and no approver is available")]
    Nobody,
    /// The client answered the question with a no. It does not say if its user saw the question.
    #[error("and the client declined; a client that runs without a user declines by itself")]
    ClientDeclined,
    /// Everyone who could be asked was silent for this long.
    #[error("and no answer came within {}s", .0.as_secs())]
    Unanswered(Duration),
}

// === impl CallError ===

impl CallError {
    /// Returns the class of this error. Exhaustive on purpose: a new error must choose its class.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } | Self::Hidden { .. } => ErrorCode::NotFound,
            Self::InvalidArguments { .. } | Self::HeaderMismatch { .. } => ErrorCode::InvalidInput,
            Self::Denied { .. }
            | Self::FlowBlocked { .. }
            | Self::Refused { .. }
            | Self::NotApproved { .. }
            | Self::AnswerBlocked { .. }
            | Self::AddressBlocked { .. }
            | Self::LedElsewhere { .. } => ErrorCode::PolicyBlocked,
            Self::QuotaExceeded { .. } | Self::RateExceeded { .. } => ErrorCode::QuotaBlocked,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::DefinitionChanged { .. }
            | Self::Unrecordable { .. } => ErrorCode::Transient,
            // For the caller these are the same: the call may have run, and its outcome is not
            // known.
            Self::OutcomeUnknown { .. } | Self::Unrecorded { .. } | Self::Stopped => {
                ErrorCode::OutcomeUnknown
            }
            Self::NeedsLogin { .. } | Self::NeedsSignIn { .. } | Self::Unauthorized { .. } => {
                ErrorCode::AuthFailure
            }
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::Status { status, .. } => code_of_status(*status),
            Self::Server { code, .. } => code_of_json_rpc(*code),
            Self::AnswerTooLarge { .. } | Self::Protocol { .. } => ErrorCode::ServerError,
        }
    }

    /// True if the same call may succeed later without running anything twice.
    pub fn retryable(&self) -> bool {
        match self {
            Self::TimedOut { may_have_run, .. } => !may_have_run,
            // Unlike a quota, a rate recovers with time.
            Self::RateExceeded { .. } => true,
            // Only this status means that the server did not process the call.
            Self::Status { status, .. } => *status == 503,
            // A call that failed inside the server may have run in part.
            Self::Server { .. }
            | Self::AnswerTooLarge { .. }
            | Self::AnswerBlocked { .. }
            | Self::Protocol { .. } => false,
            Self::Unknown { .. }
            | Self::Hidden { .. }
            | Self::InvalidArguments { .. }
            | Self::HeaderMismatch { .. }
            | Self::Denied { .. }
            | Self::FlowBlocked { .. }
            | Self::Refused { .. }
            | Self::NotApproved { .. }
            | Self::QuotaExceeded { .. }
            | Self::Unreachable { .. }
            | Self::AddressBlocked { .. }
            | Self::LedElsewhere { .. }
            | Self::NeedsLogin { .. }
            | Self::NeedsSignIn { .. }
            | Self::Unauthorized { .. }
            | Self::RateLimited { .. }
            | Self::DefinitionChanged { .. }
            | Self::Unrecordable { .. }
            | Self::Unrecorded { .. }
            | Self::Stopped
            | Self::OutcomeUnknown { .. } => self.code().retryable(),
        }
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_json_rpc_get_their_class() {
        let classes = [
            (-32602, ErrorCode::InvalidInput),
            (-32601, ErrorCode::NotFound),
            (-32002, ErrorCode::NotFound),
            (-32603, ErrorCode::ServerError),
            (7, ErrorCode::ServerError),
        ];
        for (code, expected) in classes {
            assert_eq!(code_of_json_rpc(code), expected, "{code}");
        }
    }

    #[test]
    fn an_http_status_gets_its_class_and_only_one_is_worth_a_retry() {
        let classes = [
            (307, ErrorCode::ServerError, false),
            (400, ErrorCode::InvalidInput, false),
            (404, ErrorCode::NotFound, false),
            (410, ErrorCode::NotFound, false),
            (500, ErrorCode::ServerError, false),
            (502, ErrorCode::Transient, false),
            (503, ErrorCode::Transient, true),
        ];
        for (status, code, retryable) in classes {
            let server: ServerName = "s".parse().unwrap();
            let error = CallError::Status { server, status, reason: String::new() };
            assert_eq!((error.code(), error.retryable()), (code, retryable), "{status}");
        }
    }

    #[test]
    fn a_call_that_may_have_run_is_never_called_retryable() {
        let server: ServerName = "s".parse().unwrap();
        let limit = Duration::from_secs(1);
        let error =
            |may_have_run| CallError::TimedOut { server: server.clone(), limit, may_have_run };
        assert!(error(false).retryable());
        assert!(!error(true).retryable());
        let died = CallError::OutcomeUnknown { server: server.clone(), reason: String::new() };
        assert!(!died.retryable());
    }

    #[test]
    fn a_rate_frees_itself_and_a_call_that_cannot_be_written_down_says_whether_it_ran() {
        let reason = || "no space left".to_owned();
        let cases = [
            (
                CallError::RateExceeded {
                    rate: "2 calls in 60s for this caller".to_owned(),
                    reason: Some("be kind".to_owned()),
                    free_in: Duration::from_millis(2001),
                },
                "the rate of 2 calls in 60s for this caller is used up: be kind",
                (ErrorCode::QuotaBlocked, true),
            ),
            (
                CallError::DefinitionChanged { item: "files__read".to_owned() },
                "the definition of `files__read` changed after the decision; nothing was sent",
                (ErrorCode::Transient, true),
            ),
            (
                CallError::Unrecordable { reason: reason() },
                "the call was refused, because the audit log cannot be written: no space left",
                (ErrorCode::Transient, true),
            ),
            (
                CallError::Unrecorded { reason: reason() },
                "the call was made but could not be written to the audit log: no space left",
                (ErrorCode::OutcomeUnknown, false),
            ),
        ];
        for (error, text, class) in cases {
            assert_eq!(error.to_string(), text);
            assert_eq!((error.code(), error.retryable()), class, "{text}");
            assert!(error.hint().is_some(), "{text}");
        }
    }
}
