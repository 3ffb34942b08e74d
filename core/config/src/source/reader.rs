//! The port through which files become trees of native keys.
//!
//! [`NativeFiles`] reads our own files. `capstan-import` implements the port for the files of other
//! programs, so that this crate does not depend on their formats.

use std::ops::Range;

use capstan_model::{Secret, ServerName};
use capstan_policy::DefaultRule;

use super::expand::forms::Forms;
use super::expand::{Inputs, MissingEnv};
use super::problem::{Problem, Report};
use super::syntax::{Document, Syntax};
use super::tree::Table;
use super::{Dialect, Origin, SourceFile, Surroundings, native};
use crate::redact::scrub;

/// Reads files into trees of native keys.
pub trait FileReader {
    /// Reads one file.
    ///
    /// # Errors
    /// The problem that makes the whole file unusable.
    fn open(&self, file: &SourceFile, around: Surroundings<'_>) -> Result<Opened, Box<Problem>>;
}

/// Reads every file as a native one.
#[derive(Clone, Copy, Debug)]
pub struct NativeFiles;

/// A file as a tree of native keys.
#[derive(Debug)]
pub struct Opened {
    /// The file, with its dialect known.
    pub file: SourceFile,
    /// The values under native keys.
    pub tree: Table,
    /// Problems of the translation.
    pub problems: Vec<Problem>,
    /// The conventions of the file's program.
    pub conventions: Conventions,
}

/// Conventions of a file's program that the file does not state.
#[derive(Debug, Default)]
pub struct Conventions {
    /// The notations of variables.
    pub forms: Forms,
    /// The meaning of unset variables.
    pub missing: MissingEnv,
    /// Values of the file's inputs, by name.
    pub inputs: Inputs,
    /// Values that must not be shown.
    pub secrets: Vec<Secret<String>>,
    /// The verdict on calls to its servers that no rule matches.
    pub default: Option<DefaultRule>,
    /// Tools that run without asking.
    pub auto_allows: Vec<AutoAllow>,
    /// Servers that are part of the program itself, with a description.
    pub built_in: Vec<(String, String)>,
    /// The relation of the file to other files of its program.
    pub role: FileRole,
    /// Demands on the gateway that this version cannot meet.
    pub gateway: Vec<Problem>,
    /// Servers of the project's own Claude file that the user has disabled.
    pub switched_off: Vec<SwitchedOff>,
    /// Names that more than one server of the file has.
    pub repeated: Vec<String>,
}

/// A tool that its file lets run without asking, unless a rule matches it.
///
/// It replaces the default verdict but no rule, so it belongs to the rules for all servers.
#[derive(Debug)]
pub struct AutoAllow {
    /// The server.
    pub server: ServerName,
    /// The pattern of the tool.
    pub pattern: String,
    /// The dotted path of the key.
    pub path: String,
    /// The position of the value.
    pub span: Range<usize>,
}

/// A server that another file disables.
#[derive(Debug)]
pub struct SwitchedOff {
    /// The server's name as written.
    pub name: String,
    /// The position that disables it.
    pub origin: Origin,
}

/// The relation of a file to other files of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileRole {
    /// Independent of other files.
    #[default]
    Alone,
    /// Caliban's settings.
    Settings,
    /// Caliban's older file, which counts only if no settings name a server.
    Legacy,
}

// === impl NativeFiles ===

impl FileReader for NativeFiles {
    fn open(&self, file: &SourceFile, _: Surroundings<'_>) -> Result<Opened, Box<Problem>> {
        let document = Syntax::of(&file.path, &file.text).read(&file.path, &file.text)?;
        let file = SourceFile { dialect: Some(Dialect::Native), ..file.clone() };
        Ok(Opened::native(file, &document))
    }
}

// === impl Opened ===

impl Opened {
    /// Converts a parsed file as a native one.
    pub fn native(file: SourceFile, document: &Document) -> Self {
        let mut report = Report::new(&file);
        document.report_doubles(&mut report);
        let tree = native::read(&document.table, &mut report);
        let mut problems = report.problems;
        scrub(&file.path, &file.text, &mut problems);
        Self { file, tree, problems, conventions: Conventions::default() }
    }
}
