//! Splits words into keys and values, without a schema.

use super::ArgumentError;
use crate::clean::one_line;

/// Maximum length of a word that a message repeats.
const MAX_SHOWN: usize = 60;

/// The right side of a pair, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right<'a> {
    /// `key=value`, `key=@@value` for a value that begins with `@`.
    Text(&'a str),
    /// `key:=json`
    Json(&'a str),
    /// `key=@path`
    File(&'a str),
    /// `key:=@path`
    JsonFile(&'a str),
}

/// Splits words into pairs.
///
/// `--key=value` and `--key value` are other spellings of `key=value`. `is_switch` returns true for
/// a `--key` that takes no value; it gets the next word. After `--` such spellings are refused.
pub(super) fn split(
    words: &[String],
    is_switch: impl Fn(&str, Option<&str>) -> bool,
) -> Result<Vec<(&str, Right<'_>)>, ArgumentError> {
    let mut pairs = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    let mut has_options = true;
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").filter(|_| has_options);
        match option {
            Some("") => has_options = false,
            Some(key) if !key.contains('=') => {
                let next = words.peek().copied().filter(|next| !next.starts_with("--"));
                if is_switch(key, next) {
                    pairs.push((key, Right::Text("true")));
                    continue;
                }
                let value = next.ok_or_else(|| ArgumentError::NoValue { key: shown(key) })?;
                words.next();
                pairs.push((key, Right::of_text(value)));
            }
            Some(pair) => pairs.push(parse(pair, word)?),
            None => pairs.push(parse(word, word)?),
        }
    }
    Ok(pairs)
}

/// The files that words refer to, whichever of their `--key` are switches.
pub(super) fn possible_paths(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().filter_map(|word| {
        let pair = word.strip_prefix("--").unwrap_or(word);
        let right = match parse(pair, word) {
            Ok((_, right)) if !word.starts_with('@') => right,
            Ok(_) | Err(_) => Right::of_text(word),
        };
        right.path()
    })
}

/// Parses `key=value` or `key:=json`; `word` is the word as typed.
fn parse<'a>(pair: &'a str, word: &str) -> Result<(&'a str, Right<'a>), ArgumentError> {
    match pair.split_once('=') {
        Some((key, text)) if !key.is_empty() && key != ":" => Ok(match key.strip_suffix(':') {
            Some(key) => (key, text.strip_prefix('@').map_or(Right::Json(text), Right::JsonFile)),
            None => (key, Right::of_text(text)),
        }),
        Some(_) | None => Err(ArgumentError::NotAPair { word: shown(word) }),
    }
}

fn shown(text: &str) -> String {
    one_line(text, MAX_SHOWN)
}

// === impl Right ===

impl<'a> Right<'a> {
    fn of_text(text: &'a str) -> Self {
        match text.strip_prefix('@') {
            Some(literal) if literal.starts_with('@') => Self::Text(literal),
            Some(path) => Self::File(path),
            None => Self::Text(text),
        }
    }

    /// The file that it refers to.
    pub(super) fn path(self) -> Option<&'a str> {
        match self {
            Self::Text(_) | Self::Json(_) => None,
            Self::File(path) | Self::JsonFile(path) => Some(path),
        }
    }
}
