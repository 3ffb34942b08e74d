//! Masks the secrets of a configuration file before lines, keys or values of it are shown.
//!
//! `tree` finds secrets by their position in a file that can be parsed: secret values and secret
//! keys. `lines` and `colons` guess them in a text that cannot be parsed, and in the comments of a
//! file that a person approves. In an excerpt, `comments` hides every comment as a whole. `names`
//! lists the keys whose values may be shown.
//!
//! **Invariant:** a hidden byte becomes a `*`, so that positions in the text stay valid.

mod colons;
mod comments;
mod lines;
pub(crate) mod names;
mod tree;

use std::borrow::Cow;
use std::ops::Range;

use capstan_model::secret::MASK;

use crate::source::problem::Problem;
use crate::source::syntax::Syntax;

/// The shortest secret that is hidden wherever it occurs, not only in its own position.
const MIN_REPEATED: usize = 6;

/// Selects which values of environment variables and headers are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hide {
    /// Hides all values, for an excerpt that may be copied into a report.
    EveryValue,
    /// Hides values whose name or format indicates a secret, for a person who reads the file.
    Secrets,
}

/// The secrets of one text.
pub(crate) struct Secrets {
    /// For each byte, true if it belongs to a secret.
    hidden: Vec<bool>,
    /// Secrets that are hidden in messages too, longest first.
    words: Vec<String>,
    /// Secrets that are hidden in messages only where they are a whole key, longest first.
    keys: Vec<String>,
}

/// Returns the text of a configuration file with a `*` for every byte of a secret.
pub fn redact_file(path: &str, text: &str, hide: Hide) -> String {
    Secrets::find(path, text, hide).cover(text)
}

// === impl Secrets ===

impl Secrets {
    /// Finds the secrets in the text of the file at `path`.
    pub(crate) fn find(path: &str, text: &str, hide: Hide) -> Self {
        let guessed = guess(text);
        let mut is_read = true;
        let mut secrets = if let Ok(document) = Syntax::of(path, text).parse(text) {
            let found = tree::find(&document.table, text, hide);
            let mut hidden = guessed;
            let mut content = vec![false; text.len()];
            for span in &found.known {
                bytes_at(&mut hidden, span).fill(false);
                bytes_at(&mut content, span).fill(true);
            }
            found.secret.iter().for_each(|span| bytes_at(&mut hidden, span).fill(true));
            if hide == Hide::EveryValue {
                hide_comments(text, Some(&content), &mut hidden);
            }
            Self { hidden, words: found.words, keys: found.keys }
        } else {
            // No server of such a file is started.
            is_read = false;
            let words = runs(text, &guessed);
            let mut hidden = guessed;
            hide_comments(text, None, &mut hidden);
            Self { keys: words.clone(), words, hidden }
        };
        secrets.keys.sort_by_key(|word| std::cmp::Reverse(word.len()));
        secrets.keys.retain(|word| !word.is_empty());
        secrets.keys.dedup();
        // The author of a file must not be able to choose which words are hidden from its approver.
        if hide == Hide::Secrets && is_read {
            return secrets;
        }
        secrets.words.retain(|word| word.len() >= MIN_REPEATED);
        secrets.words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        secrets.words.dedup();
        for word in &secrets.words {
            for (at, _) in text.match_indices(word.as_str()) {
                bytes_at(&mut secrets.hidden, &(at..at + word.len())).fill(true);
            }
        }
        secrets
    }

    /// Returns the text with its secrets masked.
    fn cover(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            if c.is_whitespace() || self.hidden.get(at) != Some(&true) {
                shown.push(c);
            } else {
                shown.extend(std::iter::repeat_n('*', c.len_utf8()));
            }
        }
        shown
    }

    /// Masks the secrets in a problem about the file.
    pub(crate) fn scrub(&self, problem: &mut Problem) {
        let texts = [Some(&mut problem.message), problem.key.as_mut(), problem.help.as_mut()];
        for text in texts.into_iter().flatten() {
            for word in &self.words {
                if text.contains(word.as_str()) {
                    *text = text.replace(word.as_str(), MASK);
                }
            }
            for key in &self.keys {
                if let Cow::Owned(shown) = without_key(text, key) {
                    *text = shown;
                }
            }
        }
    }
}

/// Masks `key` in a message wherever it is a whole key, or a whole part of a dotted path.
fn without_key<'a>(text: &'a str, key: &str) -> Cow<'a, str> {
    let ends = |c: char| "`.\"'[]:".contains(c);
    let mut shown = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(key) {
        let end = at + key.len();
        let (before, behind) = (text.get(..at), text.get(end..));
        let is_whole = before.is_some_and(|before| before.is_empty() || before.ends_with(ends))
            && behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(ends));
        if is_whole {
            shown.push_str(text.get(from..at).unwrap_or_default());
            shown.push_str(MASK);
            from = end;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(shown)
}

/// Guesses line by line which bytes belong to a secret.
///
/// Blocks that are commented out are also scanned without their comment marks.
fn guess(text: &str) -> Vec<bool> {
    let mut hidden = lines::find(text);
    let mut bare = String::with_capacity(text.len());
    let mut comments = Vec::new();
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        let mark = ["//", "#"].into_iter().find(|mark| body.starts_with(mark));
        let width = mark.map_or(0, str::len);
        if width > 0 {
            comments.push(bare.len()..bare.len() + line.len());
        }
        let (indent, rest) = line.split_at_checked(line.len() - body.len()).unwrap_or(("", line));
        bare.push_str(indent);
        bare.extend(std::iter::repeat_n(' ', width));
        bare.push_str(rest.get(width..).unwrap_or_default());
    }
    if !comments.is_empty() {
        let uncommented = lines::find(&bare);
        for at in comments.into_iter().flatten() {
            if let (Some(hidden), Some(true)) = (hidden.get_mut(at), uncommented.get(at)) {
                *hidden = true;
            }
        }
    }
    hidden
}

/// Masks the secrets of a file in problems about it.
pub fn scrub<'p>(path: &str, text: &str, problems: impl IntoIterator<Item = &'p mut Problem>) {
    let mut problems = problems.into_iter().peekable();
    if problems.peek().is_some() {
        let secrets = Secrets::find(path, text, Hide::EveryValue);
        problems.for_each(|problem| secrets.scrub(problem));
    }
}

fn hide_comments(text: &str, content: Option<&[bool]>, hidden: &mut [bool]) {
    for comment in comments::find(text, content) {
        bytes_at(hidden, &comment).fill(true);
    }
}

fn bytes_at<'a>(hidden: &'a mut [bool], span: &Range<usize>) -> &'a mut [bool] {
    hidden.get_mut(span.clone()).unwrap_or_default()
}

/// The runs of hidden characters in a text, with and without the punctuation around them.
fn runs(text: &str, hidden: &[bool]) -> Vec<String> {
    let mut runs = vec![String::new()];
    for (at, c) in text.char_indices() {
        let is_hidden = hidden.get(at) == Some(&true) && !c.is_whitespace();
        match runs.last_mut() {
            Some(run) if is_hidden => run.push(c),
            Some(run) if run.is_empty() => {}
            Some(_) | None => runs.push(String::new()),
        }
    }
    let signs = |c: char| ":=,\"'{}[]".contains(c);
    let bare: Vec<String> = runs.iter().map(|run| run.trim_matches(signs).to_owned()).collect();
    runs.extend(bare);
    runs
}

#[cfg(test)]
mod tests;
