//! Configuration files, and positions in them.

pub mod dialect;
pub(crate) mod references;
pub mod expand;
pub(crate) mod native;
mod plugin;
pub mod problem;
pub mod reader;
pub mod syntax;
pub mod tree;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::settings::rule::Reach;

pub use dialect::Dialect;
pub use plugin::{Plugin, PluginPart, SettingKind, UserSetting};

/// Prefix of the path of a source that is not a file: a server that was added to a gateway.
pub const DYNAMIC: &str = "(dynamic)";

/// The source of a file. The order is precedence: on a conflict, the first wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Set by the administrator of the machine.
    Managed,
    /// Named on the command line or in `CAPSTAN_CONFIG`.
    Flag,
    /// Found in the project.
    Project,
    /// The user's own.
    User,
}

/// The text of one file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path, as messages show it.
    pub path: String,
    /// Its scope.
    pub scope: Scope,
    /// Its text.
    pub text: String,
    /// True if the user has approved this content. The servers of a file that is not approved load,
    /// but cannot be used until it is.
    pub approved: bool,
    /// The dialect that it is written in; `None` to detect it.
    pub dialect: Option<Dialect>,
    /// The plugin or bundle that it belongs to.
    pub plugin: Option<Plugin>,
}

/// The environment that the text of a file may refer to.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The root of the workspace.
    pub project_dir: &'a str,
}

/// A position in a file. Lines and columns count from one, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePosition {
    /// The file's path.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The first byte.
    pub start: usize,
    /// The length in bytes.
    pub len: usize,
}

/// The file and line of a server or a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The file's path.
    pub file: String,
    /// The scope of that file.
    pub scope: Scope,
    /// The line.
    pub line: usize,
}

// === impl Scope ===

impl Scope {
    /// The scope's word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Flag => "flag",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

// === impl SourceFile ===

impl SourceFile {
    /// Creates an approved file whose dialect is to be detected.
    pub fn new(path: impl Into<String>, scope: Scope, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        Self { path, scope, text, approved: true, dialect: None, plugin: None }
    }

    /// Returns the position of a span in this file.
    pub fn place(&self, span: &Range<usize>) -> FilePosition {
        FilePosition::of(&self.path, &self.text, span)
    }

    /// The reach of rules in this file that loosen something.
    ///
    /// Such rules of a project file, or of a file that was written for another program, apply only
    /// to the servers of that file.
    pub(crate) fn reach(&self) -> Reach {
        match (self.scope, self.dialect) {
            (Scope::Managed | Scope::Flag | Scope::User, Some(Dialect::Native) | None) => {
                Reach::All
            }
            (Scope::Managed | Scope::Flag | Scope::User | Scope::Project, _) => {
                Reach::ServersOf(self.path.clone())
            }
        }
    }

    /// Returns the origin of a span in this file.
    pub fn origin(&self, span: &Range<usize>) -> Origin {
        Origin { file: self.path.clone(), scope: self.scope, line: self.place(span).line }
    }
}

// === impl FilePosition ===

impl FilePosition {
    /// Returns the position of a span in a text.
    pub(crate) fn of(path: &str, text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end).max(start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            file: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            start,
            len: end - start,
        }
    }
}

// === impl Origin ===

impl Origin {
    /// True if it is in no file because it was added to a running gateway.
    pub fn is_dynamic(&self) -> bool {
        self.file.starts_with(DYNAMIC)
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let file = SourceFile::new("f", Scope::User, "a\nüb = 1\n");
        let position = |span: Range<usize>| {
            let place = file.place(&span);
            (place.line, place.column, place.start, place.len)
        };
        assert_eq!(position(0..1), (1, 1, 0, 1));
        assert_eq!(position(4..5), (2, 2, 4, 1));
        assert_eq!(position(3..5), (2, 1, 2, 3), "a span inside a character starts before it");
        assert_eq!(position(90..95), (3, 1, 10, 0), "a span beyond the text ends with it");
    }

    #[test]
    fn managed_comes_before_flag_before_project_before_user() {
        let mut scopes = [Scope::User, Scope::Project, Scope::Managed, Scope::Flag];
        scopes.sort();
        assert_eq!(scopes.map(Scope::as_str), ["managed", "flag", "project", "user"]);
    }
}
