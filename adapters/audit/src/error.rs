//! Errors of writing and reading the audit log.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Failure to write or read the audit log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A file of the log cannot be opened or created.
    #[error("cannot open the audit log at `{}`", path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// A file of the log cannot be read.
    #[error("cannot read the audit log at `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// An entry cannot be written.
    #[error("cannot write the audit log at `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// Another process held the lock for too long.
    #[error("the audit log is locked at `{}`, waited {waited:?}", path.display())]
    Busy {
        /// The file that carries the lock.
        path: PathBuf,
        /// The time waited.
        waited: Duration,
    },
}

/// The kinds of failure that have different hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    Busy,
    Full,
    Forbidden,
    Other,
}

// === impl AuditError ===

impl AuditError {
    /// A hint how to fix it.
    pub fn hint(&self) -> Option<String> {
        let path = match self {
            Self::Open { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Busy { path, .. } => path.display(),
        };
        match self.kind() {
            FailureKind::Busy => {
                Some(format!("`fuser {path}` shows the process that holds the lock"))
            }
            FailureKind::Full => Some(format!("free some space where `{path}` is")),
            FailureKind::Forbidden => {
                Some(format!("check the permissions of `{path}` and of its folder"))
            }
            FailureKind::Other => None,
        }
    }

    /// The error with its cause.
    pub(crate) fn with_cause(&self) -> String {
        match self {
            Self::Open { cause, .. } | Self::Read { cause, .. } | Self::Write { cause, .. } => {
                format!("{self}: {cause}")
            }
            Self::Busy { .. } => self.to_string(),
        }
    }

    pub(crate) fn open(path: &Path) -> impl Fn(io::Error) -> Self {
        move |cause| Self::Open { path: path.to_owned(), cause }
    }

    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        move |cause| Self::Read { path: path.to_owned(), cause }
    }

    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        move |cause| Self::Write { path: path.to_owned(), cause }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the kinds of the standard library are many"
    )]
    fn kind(&self) -> FailureKind {
        let cause = match self {
            Self::Busy { .. } => return FailureKind::Busy,
            Self::Open { cause, .. } | Self::Read { cause, .. } | Self::Write { cause, .. } => {
                cause
            }
        };
        match cause.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => FailureKind::Full,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                FailureKind::Forbidden
            }
            _ => FailureKind::Other,
        }
    }
}
