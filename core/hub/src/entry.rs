//! One line of the audit log: what became of one call.

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{Caller, Effect, ErrorCode, Kind, Verdict};
use jiff::Timestamp;

/// What is written down about a call, exactly once, whatever became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When the call came in.
    pub time: Timestamp,
    /// Who asked, and through which front.
    pub caller: Arc<Caller>,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The method, where it is another than the one that the kind is called by.
    pub method: Option<&'static str>,
    /// The server that was asked; `None` when no server fits the name.
    pub server: Option<String>,
    /// The item: its own name at the server, or the caller's words when nothing fits.
    pub item: String,
    /// What the item does, as far as that was found out.
    pub effect: Option<Effect>,
    /// What the rules said; `None` when the call did not get that far.
    pub verdict: Option<Verdict>,
    /// The rule that said it.
    pub rule: Option<String>,
    /// How an `ask` was answered.
    pub approval: Option<Ground>,
    /// Its arguments without what looks like a secret, where the operator wants them kept.
    pub arguments: Option<String>,
    /// How the call ended.
    pub outcome: Outcome,
    /// How long it took.
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
    /// An answer was delivered in which the tool says that it failed.
    ToolError,
    /// The call failed.
    Failed(ErrorCode),
    /// The caller went away first.
    Abandoned,
}

/// On what ground an `ask` was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The operator typed this very call.
    ByHand,
    /// The operator was asked and said yes.
    Asked,
    /// The operator has said yes before, for as long as this conversation or for ever.
    Remembered,
    /// The operator said yes in another shell, for this one call.
    OtherShell,
    /// The operator was asked and said no.
    Refused,
    /// Nobody was there to be asked.
    Nobody,
}

// === impl Outcome ===

impl Outcome {
    /// The outcome's word in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ToolError => "tool_error",
            Self::Failed(_) => "failed",
            Self::Abandoned => "abandoned",
        }
    }

    /// The error code, where the call failed.
    pub fn code(self) -> Option<ErrorCode> {
        match self {
            Self::Failed(code) => Some(code),
            Self::Answered | Self::ToolError | Self::Abandoned => None,
        }
    }
}

// === impl Ground ===

impl Ground {
    /// The ground's word in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByHand => "by_hand",
            Self::Asked => "asked",
            Self::Remembered => "remembered",
            Self::OtherShell => "other_shell",
            Self::Refused => "refused",
            Self::Nobody => "nobody",
        }
    }
}
