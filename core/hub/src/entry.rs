//! An entry of the audit log: one call and its outcome.

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{Caller, Effect, ErrorCode, Kind, Verdict};
use jiff::Timestamp;

/// The audit entry of a call. Every call has exactly one, whatever its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The time at which the call arrived.
    pub time: Timestamp,
    /// The caller, with the front.
    pub caller: Arc<Caller>,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The method, if it differs from the usual one of this kind.
    pub method: Option<&'static str>,
    /// The server that was called; `None` if the name matches no server.
    pub server: Option<String>,
    /// The item by its own name at the server, or as the caller spelled it if nothing matches.
    pub item: String,
    /// The effect of the item, if it was determined.
    pub effect: Option<Effect>,
    /// The verdict of the rules; `None` if the call did not get that far.
    pub verdict: Option<Verdict>,
    /// The rule that led to the verdict.
    pub rule: Option<String>,
    /// The ground on which an `ask` was answered.
    pub approval: Option<Ground>,
    /// The arguments, if the operator wants them stored; values that look like secrets are masked.
    pub arguments: Option<String>,
    /// How the call ended.
    pub outcome: Outcome,
    /// The duration of the call.
    pub duration: Duration,
    /// Size of the request's params, in bytes.
    pub request_bytes: usize,
    /// Size of the answer, in bytes; 0 when none was delivered.
    pub answer_bytes: usize,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer was delivered.
    Answered,
    /// An answer was delivered in which the tool reports a failure.
    ToolError,
    /// The call failed.
    Failed(ErrorCode),
    /// The caller disconnected before the call ended.
    Abandoned,
}

/// The ground on which an `ask` was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The operator typed this call.
    ByHand,
    /// The operator was asked and said yes.
    Asked,
    /// The operator approved it earlier, for the session or permanently.
    Remembered,
    /// The operator approved this one call in another shell.
    OtherShell,
    /// The client's own dialog asks its user, so Capstan did not.
    ClientConfirms,
    /// The operator was asked and said no.
    Refused,
    /// The client was asked and said no, for its user or by itself.
    ClientDeclined,
    /// There was no operator to ask.
    Nobody,
}

// === impl Outcome ===

impl Outcome {
    /// The name of the outcome in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ToolError => "tool_error",
            Self::Failed(_) => "failed",
            Self::Abandoned => "abandoned",
        }
    }

    /// The error code, if the call failed.
    pub fn code(self) -> Option<ErrorCode> {
        match self {
            Self::Failed(code) => Some(code),
            Self::Answered | Self::ToolError | Self::Abandoned => None,
        }
    }
}

// === impl Ground ===

impl Ground {
    /// The name of the ground in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByHand => "by_hand",
            Self::Asked => "asked",
            Self::Remembered => "remembered",
            Self::OtherShell => "other_shell",
            Self::ClientConfirms => "client_confirms",
            Self::Refused => "refused",
            Self::ClientDeclined => "client_declined",
            Self::Nobody => "nobody",
        }
    }
}
