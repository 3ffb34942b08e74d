//! Files of configuration, and places in them.

use std::ops::Range;

use serde::Serialize;

/// Where a file comes from. The order is precedence: of two that disagree, the first wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Set by whoever runs the machine.
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
    /// Where it comes from.
    pub scope: Scope,
    /// What it says.
    pub text: String,
    /// Whether the user has approved this content. The servers of a file that is not approved
    /// load, and wait for the approval.
    pub approved: bool,
}

/// What the text of a file may refer to.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The root of the workspace.
    pub project_dir: &'a str,
}

/// A place in a file. Lines and columns count from one, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file's path.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The first byte.
    pub start: usize,
    /// How many bytes.
    pub len: usize,
}

/// Where a server or a rule was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The file's path.
    pub file: String,
    /// Where that file comes from.
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
    /// The place of some bytes of this file.
    pub fn place(&self, span: &Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.floor_char_boundary(span.end).max(start);
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            start,
            len: end - start,
        }
    }

    pub(crate) fn origin(&self, span: &Range<usize>) -> Origin {
        Origin { file: self.path.clone(), scope: self.scope, line: self.place(span).line }
    }
}

// === impl Origin ===

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
        let file = SourceFile {
            path: "f".to_owned(),
            scope: Scope::User,
            text: "a\nüb = 1\n".to_owned(),
            approved: true,
        };
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
