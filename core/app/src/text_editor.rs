//! The user's text editor.

use std::path::PathBuf;

use capstan_hub::ports::BoxFuture;

use crate::AppError;

/// Lets the user change texts in an editor of their choice.
pub trait TextEditor: Send + Sync {
    /// Writes a text to a private file, runs an editor on it and returns what the file says then.
    ///
    /// # Errors
    /// If the editor cannot be started or fails, or if the file cannot be used.
    fn edit<'a>(&'a self, draft: Draft<'a>) -> BoxFuture<'a, Result<String, AppError>>;

    /// Keeps a text that could not be used; replaces an earlier one of that name.
    ///
    /// # Errors
    /// If it cannot be written.
    fn keep(&self, name: &str, text: &str) -> Result<PathBuf, AppError>;
}

/// A text to be edited.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// The program and its arguments; the path of the file is added.
    pub editor: &'a [String],
    /// The beginning of the file's name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}
