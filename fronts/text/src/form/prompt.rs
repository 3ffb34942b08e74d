//! The terminal on which questions are asked.

use std::io::Write;

use inquire::{Confirm, InquireError, MultiSelect, Password, PasswordDisplayMode, Select, Text};

use crate::screen::stderr_size;

/// Asks one question at a time. All texts passed to it must be safe to show.
pub trait Prompter {
    /// The columns and lines of the terminal, or a default if they are unknown.
    fn size(&self) -> (usize, usize) {
        (80, 24)
    }

    /// Prints a line.
    fn say(&mut self, line: &str);

    /// Asks for a line; empty if nothing was typed.
    fn text(&mut self, question: &str) -> Result<String, Closed>;

    /// Asks for a line without showing it.
    fn secret(&mut self, question: &str) -> Result<String, Closed>;

    /// Asks for yes or no.
    fn confirm(&mut self, question: &str, default: Option<bool>) -> Result<bool, Closed>;

    /// Asks for one option, with the option at index `start` preselected; returns its index.
    fn select(&mut self, question: &str, options: &[&str], start: usize) -> Result<usize, Closed>;

    /// Asks for any number of options, with these preselected; returns their indices.
    fn multi_select(
        &mut self,
        question: &str,
        options: &[&str],
        chosen: &[usize],
    ) -> Result<Vec<usize>, Closed>;
}

/// The person closed the question, or there is no terminal to ask on.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed;

/// The terminal of the process: asks on stderr, reads the keyboard.
pub struct Terminal;

// === impl Terminal ===

impl Prompter for Terminal {
    fn size(&self) -> (usize, usize) {
        stderr_size().unwrap_or((80, 24))
    }

    fn say(&mut self, line: &str) {
        let mut err = anstream::stderr().lock();
        // If stderr is closed, the question itself will fail.
        drop(writeln!(err, "{line}"));
    }

    fn text(&mut self, question: &str) -> Result<String, Closed> {
        Ok(Text::new(question).prompt()?)
    }

    fn secret(&mut self, question: &str) -> Result<String, Closed> {
        let prompt = Password::new(question).without_confirmation();
        Ok(prompt.with_display_mode(PasswordDisplayMode::Masked).prompt()?)
    }

    fn confirm(&mut self, question: &str, default: Option<bool>) -> Result<bool, Closed> {
        let prompt = Confirm::new(question);
        Ok(match default {
            Some(default) => prompt.with_default(default).prompt()?,
            None => prompt.prompt()?,
        })
    }

    fn select(&mut self, question: &str, options: &[&str], start: usize) -> Result<usize, Closed> {
        // Typing `n` selects `no`, not the first option that contains an n.
        let begins = |typed: &str, _: &&str, option: &str, _: usize| {
            option.to_lowercase().starts_with(&typed.to_lowercase()).then_some(0)
        };
        let prompt = Select::new(question, options.to_vec())
            .with_starting_cursor(start)
            .with_scorer(&begins);
        Ok(prompt.raw_prompt()?.index)
    }

    fn multi_select(
        &mut self,
        question: &str,
        options: &[&str],
        chosen: &[usize],
    ) -> Result<Vec<usize>, Closed> {
        let prompt = MultiSelect::new(question, options.to_vec()).with_default(chosen);
        Ok(prompt.raw_prompt()?.into_iter().map(|option| option.index).collect())
    }
}

// === impl Closed ===

impl From<InquireError> for Closed {
    fn from(error: InquireError) -> Self {
        let closed =
            matches!(error, InquireError::OperationCanceled | InquireError::OperationInterrupted);
        if !closed {
            tracing::warn!(%error, "the question could not be asked");
        }
        Self
    }
}
