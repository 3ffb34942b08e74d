//! What is wrong with a configuration, and what to do about it.

use std::fmt;
use std::ops::Range;

use capstan_model::ServerName;
use serde::{Deserialize, Serialize};

use crate::source::syntax::Syntax;
use crate::source::{Place, SourceFile};

/// Something wrong, with its place and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as one clause.
    pub message: String,
    /// Where; `None` when it is in no file, as for an environment variable.
    pub place: Option<Place>,
    /// The dotted key.
    pub key: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// The server that cannot be used because of it. An error without a server concerns
    /// everything that was loaded.
    pub server: Option<ServerName>,
    /// Whether nothing is wrong but that a value is not there yet: a variable, or what is asked for.
    #[serde(skip)]
    pub is_unset: bool,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The server, or the whole configuration, cannot be used.
    Error,
    /// It works, but perhaps not as meant.
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
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning without a place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    /// Adds a remedy.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Marks it as a missing value.
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
            Some(Place { file, line, column, .. }) => {
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
    /// An empty report about a file.
    pub fn new(file: &'a SourceFile) -> Self {
        Self { file, server: None, problems: Vec::new() }
    }

    /// A key with a value, as this file would have it.
    pub fn line(&self, key: &str, value: &str) -> String {
        Syntax::of(&self.file.path, &self.file.text).line(key, value)
    }

    /// An empty report about one server of a file.
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

    /// The error that makes the server unusable: the first one in the file.
    pub fn first_error(&self) -> Option<&Problem> {
        let errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        errors.min_by_key(|problem| problem.place.as_ref().map(|place| place.start))
    }
}
