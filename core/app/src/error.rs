//! The error type at the edge of the application layer; each front renders it in its own format.

use std::borrow::Cow;

use capstan_config::edit::EditError;
use capstan_config::{Problem, SourceFile};
use capstan_model::{CallError, ErrorCode, ServerName};
use serde::{Deserialize, Serialize};

/// The error of an operation.
#[derive(Clone, Debug)]
pub struct AppError {
    /// The kind of failure; fronts map it to an exit code or a status.
    pub kind: ErrorKind,
    /// The stable word for scripts.
    pub code: Cow<'static, str>,
    /// The failure, in one clause.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// True if another attempt can succeed.
    pub retryable: bool,
    /// The server that a login would help with.
    pub login: Option<Box<ServerName>>,
    /// Errors in configuration files.
    pub problems: Box<[Problem]>,
    /// The files that contain the problems.
    pub files: Box<[SourceFile]>,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A tool reported an error, or a check found one.
    Failed,
    /// The request cannot be used as written.
    Usage,
    /// The configuration has an error.
    Config,
    /// No server, tool or file has this name.
    NotFound,
    /// A login is missing.
    Auth,
    /// A rule or a person refused.
    Denied,
    /// A server or gateway cannot be reached.
    Unreachable,
    /// A server took too long.
    TimedOut,
    /// A limit on calls or servers is reached.
    Quota,
    /// An internal error, or an error of this machine.
    Internal,
}

// === impl AppError ===

impl AppError {
    /// An error of this kind, with the usual code of the kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: Cow::Borrowed(kind.code()),
            message: message.into(),
            hint: None,
            retryable: false,
            login: None,
            problems: Box::default(),
            files: Box::default(),
        }
    }

    /// The request cannot be used as written.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Nothing has this name.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// A rule or a person refused.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// An internal error, or an error of this machine.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The configuration has an error that has no line in a file.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// These files have these errors.
    pub fn problems(
        problems: impl Into<Box<[Problem]>>,
        files: impl Into<Box<[SourceFile]>>,
    ) -> Self {
        let problems = problems.into();
        if let [Problem { place: None, message, help, .. }] = &*problems {
            return Self { hint: help.clone(), ..Self::config(message) };
        }
        let message = match problems.len() {
            1 => "the configuration has an error".to_owned(),
            count => format!("the configuration has {count} errors"),
        };
        Self { problems, files: files.into(), ..Self::config(message) }
    }

    /// An error with its causes joined into one message.
    pub fn caused(kind: ErrorKind, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        Self::new(kind, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Replaces the code.
    #[must_use]
    pub fn code(self, code: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), ..self }
    }
}

impl From<CallError> for AppError {
    fn from(error: CallError) -> Self {
        let code = error.code();
        let late = matches!(error, CallError::TimedOut { .. });
        let kind = if late { ErrorKind::TimedOut } else { ErrorKind::of(code) };
        let (hint, retryable) = (error.hint(), error.retryable());
        let told = Self::new(kind, error.to_string()).code(code.as_str());
        let login = if let CallError::NeedsLogin { server, .. } = error {
            Some(Box::new(server))
        } else {
            None
        };
        Self { hint, retryable, login, ..told }
    }
}

impl From<EditError> for AppError {
    fn from(error: EditError) -> Self {
        let kind = if matches!(error, EditError::UnknownServer { .. } | EditError::NotSet { .. }) {
            ErrorKind::NotFound
        } else if matches!(error, EditError::Syntax { .. } | EditError::Unexpected { .. }) {
            ErrorKind::Config
        } else {
            ErrorKind::Usage
        };
        Self { hint: error.hint(), ..Self::caused(kind, &error) }
    }
}

// === impl ErrorKind ===

impl ErrorKind {
    fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Transient | ErrorCode::OutcomeUnknown => Self::Unreachable,
            ErrorCode::RateLimited | ErrorCode::QuotaBlocked => Self::Quota,
            ErrorCode::ServerError => Self::Failed,
            ErrorCode::InvalidInput => Self::Usage,
            ErrorCode::AuthFailure => Self::Auth,
            ErrorCode::NotFound => Self::NotFound,
            ErrorCode::PolicyBlocked => Self::Denied,
        }
    }

    /// The usual code of the kind.
    fn code(self) -> &'static str {
        match self {
            Self::Failed => ErrorCode::ServerError.as_str(),
            Self::Usage => ErrorCode::InvalidInput.as_str(),
            Self::Config => "invalid_config",
            Self::NotFound => ErrorCode::NotFound.as_str(),
            Self::Auth => ErrorCode::AuthFailure.as_str(),
            Self::Denied => ErrorCode::PolicyBlocked.as_str(),
            Self::Unreachable | Self::TimedOut => ErrorCode::Transient.as_str(),
            Self::Quota => ErrorCode::QuotaBlocked.as_str(),
            Self::Internal => "internal",
        }
    }
}
