//! How the program ends: one place that turns failures into exit codes.

use capstan_config::{Problem, SourceFile};
use capstan_model::{CallError, ErrorCode};
use serde::Serialize;

/// The exit codes; documented in `docs/errors.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All well.
    Ok,
    /// A tool says that it failed, or a check found something.
    ToolError,
    /// The command was not understood.
    Usage,
    /// The configuration is broken.
    Config,
    /// No such server or tool.
    NotFound,
    /// A login is missing.
    Auth,
    /// A rule or a person said no.
    Denied,
    /// A server could not be reached.
    Unreachable,
    /// A server took too long.
    TimedOut,
    /// Too many calls.
    Quota,
    /// Our own fault.
    Internal,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// The stable word for scripts.
    pub code: &'static str,
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether trying again can help.
    pub retryable: bool,
    /// What is wrong with the configuration, with the files it is in.
    pub problems: Vec<Problem>,
    /// The files that the problems are in.
    pub files: Vec<SourceFile>,
}

/// A failure as `--json` prints it.
#[derive(Serialize)]
pub(crate) struct FailureJson<'a> {
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
    /// The number.
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

    /// The end with this number.
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

    fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Transient | ErrorCode::OutcomeUnknown => Self::Unreachable,
            ErrorCode::RateLimited | ErrorCode::QuotaBlocked => Self::Quota,
            ErrorCode::ServerError => Self::ToolError,
            ErrorCode::InvalidInput => Self::Usage,
            ErrorCode::AuthFailure => Self::Auth,
            ErrorCode::NotFound => Self::NotFound,
            ErrorCode::PolicyBlocked => Self::Denied,
        }
    }
}

// === impl Failure ===

impl Failure {
    /// A failure with this exit code and word.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            hint: None,
            retryable: false,
            problems: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Something the user typed cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, ErrorCode::InvalidInput.as_str(), message)
    }

    /// Something named does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, ErrorCode::NotFound.as_str(), message)
    }

    /// Something that is nobody's fault but ours or the machine's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, "internal", message)
    }

    /// The configuration is broken.
    pub fn config(problems: Vec<Problem>, files: Vec<SourceFile>) -> Self {
        let message = match problems.len() {
            1 => "the configuration has an error".to_owned(),
            count => format!("the configuration has {count} errors"),
        };
        Self { problems, files, ..Self::new(Exit::Config, "invalid_config", message) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn json(&self) -> FailureJson<'_> {
        FailureJson {
            error: Shown {
                code: self.code,
                message: &self.message,
                hint: self.hint.as_deref(),
                retryable: self.retryable,
                problems: &self.problems,
            },
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let code = error.code();
        let late = matches!(error, CallError::TimedOut { .. });
        let exit = if late { Exit::TimedOut } else { Exit::of(code) };
        Self {
            hint: error.hint(),
            retryable: error.retryable(),
            ..Self::new(exit, code.as_str(), error.to_string())
        }
    }
}
