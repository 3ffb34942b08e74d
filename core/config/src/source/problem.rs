//! Problems of a configuration, with their remedies.

use std::fmt;
use std::ops::Range;

use capstan_model::ServerName;
use serde::{Deserialize, Serialize};

use crate::source::syntax::Syntax;
use crate::source::{FilePosition, SourceFile};

/// A problem, with its position and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The severity.
    pub severity: Severity,
    /// The message, as one clause.
    pub message: String,
    /// The position; `None` if it is in no file, as for an environment variable.
    pub place: Option<FilePosition>,
    /// The dotted key.
    pub key: Option<String>,
    /// The remedy.
    pub help: Option<String>,
    /// The server that cannot be used because of it. An error without a server concerns
    /// everything that was loaded.
    pub server: Option<ServerName>,
    /// True if the only problem is a missing value: an unset variable, or an input without a value.
    #[serde(skip)]
    pub is_unset: bool,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The server, or the whole configuration, cannot be used.
    Error,
    /// The configuration works, but perhaps not as intended.
    Warning,
}

/// Collects the problems of one file, or of one server in it.
pub struct Report<'a> {
    /// The file.
    pub file: &'a SourceFile,
    /// The server that the problems concern; `None` for the whole file.
    pub server: Option<ServerName>,
    /// The problems, in the order of discovery.
    pub problems: Vec<Problem>,
}

// === impl Problem ===

impl Problem {
    /// Creates an error without a position.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// Creates a warning without a position.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    /// Adds a remedy.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Marks it as caused by a missing value.
    #[must_use]
    pub fn unset(self) -> Self {
        Self { is_unset: true, ..self }
    }

    fn new(severity: Severity, message: String) -> Self {
        let (place, key, help, server) = (None, None, None, None);
        Self { severity, message, place, key, help, server, is_unset: false }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(FilePosition { file, line, column, .. }) => {
                write!(f, "{} ({file}:{line}:{column})", self.message)
            }
            None => f.write_str(&self.message),
        }
    }
}

// === impl Severity ===

impl Severity {
    /// The severity's word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

// === impl Report ===

impl<'a> Report<'a> {
    /// Creates an empty report about a file.
    pub fn new(file: &'a SourceFile) -> Self {
        Self { file, server: None, problems: Vec::new() }
    }

    /// Formats a key with a value in the syntax of this file.
    pub fn line(&self, key: &str, value: &str) -> String {
        Syntax::of(&self.file.path, &self.file.text).line(key, value)
    }

    /// Creates an empty report about one server of a file.
    pub fn about_server(file: &'a SourceFile, server: ServerName) -> Self {
        Self { file, server: Some(server), problems: Vec::new() }
    }

    /// Adds a problem with a value, a key or a table of the file.
    pub fn add(&mut self, problem: Problem, key: impl Into<String>, span: &Range<usize>) {
        self.problems.push(Problem {
            place: Some(self.file.place(span)),
            key: Some(key.into()),
            server: self.server.clone(),
            ..problem
        });
    }

    /// Returns the error that makes the server unusable: the first one in the file.
    ///
    /// An error about one of its keys comes before one about the whole `entry`: a misspelt key
    /// explains why the entry has no command.
    pub fn first_error(&self, entry: &str) -> Option<&Problem> {
        let errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        errors.min_by_key(|problem| {
            let is_about_entry = problem.key.as_deref() == Some(entry);
            (is_about_entry, problem.place.as_ref().map(|place| place.start))
        })
    }
}
