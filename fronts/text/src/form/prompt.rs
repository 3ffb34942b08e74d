//! The terminal that questions are asked on.

use std::io::Write;

use inquire::{Confirm, InquireError, MultiSelect, Password, PasswordDisplayMode, Select, Text};

use crate::screen::stderr_size;

/// Asks one thing at a time. Everything given to it is safe to show.
pub trait Prompter {
    /// The columns and the lines of the terminal, as far as they are known.
    fn size(&self) -> (usize, usize) {
        (80, 24)
    }

    /// Says something.
    fn say(&mut self, line: &str);

    /// Asks for a line; empty when nothing was typed.
    fn text(&mut self, question: &str) -> Result<String, Closed>;

    /// Asks for a line that is not shown.
    fn secret(&mut self, question: &str) -> Result<String, Closed>;

    /// Asks for yes or no.
    fn confirm(&mut self, question: &str, default: Option<bool>) -> Result<bool, Closed>;

    /// Asks for one of several, beginning at the place `start`; answers with a place.
    fn select(&mut self, question: &str, options: &[&str], start: usize) -> Result<usize, Closed>;

    /// Asks for some of several, beginning with these chosen; answers with places.
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
        // A closed stderr cannot be told of; the question itself will fail.
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
        // Who types `n` means `no`, and not the first option with an n in it.
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
