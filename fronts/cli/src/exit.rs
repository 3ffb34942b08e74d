//! Exit codes: the only place that maps errors to them.

use capstan_app::{AppError, ErrorKind};
use capstan_config::Problem;
use serde::Serialize;

/// The exit codes; documented in `docs/errors.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Ok,
    /// A tool reported an error, a check found one, or the output could not be written.
    ToolError,
    /// The command line is invalid.
    Usage,
    /// The configuration has an error.
    Config,
    /// No server or tool has this name.
    NotFound,
    /// A login is missing.
    Auth,
    /// A rule or a person refused.
    Denied,
    /// A server cannot be reached.
    Unreachable,
    /// A server took too long.
    TimedOut,
    /// Too many calls.
    Quota,
    /// An internal error.
    Internal,
    /// Ctrl-C.
    Interrupted,
}

/// An error as `--json` prints it.
#[derive(Serialize)]
pub(crate) struct ErrorJson<'a> {
    error: Shown<'a>,
}

#[derive(Serialize)]
struct Shown<'a> {
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    retryable: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    problems: &'a [Problem],
}

// === impl Exit ===

impl Exit {
    /// The exit code as a number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::ToolError => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::NotFound => 4,
            Self::Auth => 5,
            Self::Denied => 6,
            Self::Unreachable => 7,
            Self::TimedOut => 8,
            Self::Quota => 9,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }

    /// The exit with this code.
    pub fn of_code(code: u8) -> Self {
        let all = [
            Self::Ok,
            Self::ToolError,
            Self::Usage,
            Self::Config,
            Self::NotFound,
            Self::Auth,
            Self::Denied,
            Self::Unreachable,
            Self::TimedOut,
            Self::Quota,
            Self::Interrupted,
        ];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Internal)
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Failed => Self::ToolError,
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Config => Self::Config,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Auth => Self::Auth,
            ErrorKind::Denied => Self::Denied,
            ErrorKind::Unreachable => Self::Unreachable,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::Quota => Self::Quota,
            ErrorKind::Internal => Self::Internal,
        }
    }
}

// === impl ErrorJson ===

impl<'a> From<&'a AppError> for ErrorJson<'a> {
    fn from(error: &'a AppError) -> Self {
        Self {
            error: Shown {
                code: &error.code,
                message: &error.message,
                hint: error.hint.as_deref(),
                retryable: error.retryable,
                problems: &error.problems,
            },
        }
    }
}
