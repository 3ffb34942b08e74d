//! Finds the secrets of a text that cannot be parsed.
//!
//! Keys and values are guessed line by line: once as TOML and once as JSON or YAML. A byte that
//! either reading considers part of a secret is hidden.

use capstan_model::secret::is_secret_name;
use capstan_safety::mask::{mask_arguments, names_variable};

use super::colons::Colons;
use super::names::{DOORS, is_known, is_login, is_member};

/// Marks the bytes of a text that belong to a secret.
pub(super) fn find(text: &str) -> Vec<bool> {
    let mut lines = Lines { rest: text, ..Lines::default() };
    while !lines.rest.is_empty() {
        lines.step();
    }
    let colons = Colons::read(text);
    let shown = lines.shown.as_bytes().iter().zip(text.as_bytes());
    shown.zip(colons).map(|((shown, byte), hidden)| hidden || shown != byte).collect()
}

/// The state of the scan.
#[derive(Default)]
struct Lines<'a> {
    rest: &'a str,
    shown: String,
    /// True if the `[header]` above names a table of `DOORS`.
    header: bool,
    /// True if the keys below the `[header]` above are tokens.
    tokens: bool,
    /// The brackets that are open, outermost first.
    open: Vec<Open>,
    /// The words read since the last value; before a `=` they are a key.
    words: Vec<&'a str>,
    /// The key whose value is being read.
    key: Vec<&'a str>,
    /// The value before this one in the same list.
    before: Option<&'a str>,
}

/// A bracket that is not closed yet.
pub(super) struct Open {
    pub(super) is_list: bool,
    pub(super) is_door: bool,
    /// True if the keys in it are tokens.
    pub(super) has_tokens: bool,
}

// === impl Lines ===

impl<'a> Lines<'a> {
    fn step(&mut self) {
        match self.rest.chars().next() {
            Some('#') => self.comment(),
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some('[') if self.open.is_empty() && self.key.is_empty() => self.header(),
            Some(bracket @ ('[' | '{')) => {
                let is_door = self.key.iter().any(|word| DOORS.contains(word));
                let has_tokens = self.key.iter().any(|word| is_login(word));
                self.open.push(Open { is_list: bracket == '[', is_door, has_tokens });
                self.before = None;
                if bracket == '{' {
                    self.forget();
                }
                self.show(1);
            }
            Some(']' | '}') => {
                self.open.pop();
                self.before = None;
                self.show(1);
            }
            Some('=') => {
                self.key = std::mem::take(&mut self.words);
                self.show(1);
            }
            Some(',') => {
                if !self.in_list() {
                    self.forget();
                }
                self.show(1);
            }
            Some('\n') => self.line(),
            Some(c) if c == '.' || c.is_whitespace() => self.show(c.len_utf8()),
            Some(_) | None => self.word(),
        }
    }

    /// Reads a comment to the end of its line; hides words that would be masked as arguments.
    fn comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let comment = self.rest.get(..end).unwrap_or_default();
        let words: Vec<&str> = comment.split_whitespace().collect();
        for (word, masked) in words.iter().zip(mask_arguments(words.iter().copied())) {
            self.show(self.rest.find(word).unwrap_or_default());
            if masked == *word { self.show(word.len()) } else { self.hide(word.len()) }
        }
        self.show(self.rest.find('\n').unwrap_or(self.rest.len()));
    }

    /// Reads a line break, which ends a statement, even one with unclosed brackets.
    fn line(&mut self) {
        self.show(1);
        let next = self.rest.lines().next().unwrap_or_default();
        let word = next.trim_start_matches(|c: char| c.is_alphanumeric() || "_-.".contains(c));
        let is_statement = word.len() < next.len() && word.trim_start().starts_with('=');
        let is_header = next.starts_with('[') && next.trim_end().ends_with(']');
        if is_statement || is_header {
            self.open.clear();
        }
        if self.open.is_empty() {
            self.forget();
        }
    }

    fn header(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = self.rest.get(..end).unwrap_or_default();
        let part = |c: char| !(c.is_alphanumeric() || c == '_' || c == '-');
        self.header = line.split(part).any(|word| DOORS.contains(&word));
        self.tokens = false;
        for word in line.split_inclusive(part) {
            let name = word.trim_end_matches(part);
            if self.tokens && !is_word(name) {
                self.hide(name.len());
                self.show(word.len() - name.len());
            } else {
                self.show(word.len());
            }
            self.tokens |= is_login(name);
        }
    }

    /// Reads a part of a key, which may be a token.
    fn key_part(&mut self, name: &'a str) {
        let inside = self.in_tokens() || self.words.iter().any(|word| is_login(word));
        self.words.push(name);
        if inside && !is_word(name) {
            self.hide(name.len());
        } else {
            self.show(name.len());
        }
    }

    fn string(&mut self, quote: char) {
        let many = [quote; 3].iter().collect::<String>();
        let mark = if self.rest.starts_with(&many) { many.len() } else { 1 };
        self.show(mark);
        let end = end_of_string(self.rest, quote, mark);
        let content = self.rest.get(..end).unwrap_or_default();
        let after = self.rest.get(end + mark..).unwrap_or_default().trim_start_matches([' ', '\t']);
        if mark == 1 && after.starts_with(['=', '.']) && !self.in_list() {
            self.key_part(content);
        } else {
            self.value(content);
        }
        // An unclosed string ends with its line.
        if self.rest.starts_with(quote) {
            self.show(mark);
        }
    }

    /// Reads a word without quotes: part of a key, or a value.
    fn word(&mut self) {
        let ends = |c: char| c.is_whitespace() || "=,[]{}#\"'".contains(c);
        let is_value = !self.key.is_empty() || self.in_list();
        let end = self.rest.find(|c: char| ends(c) || (c == '.' && !is_value));
        let word = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
        if is_value {
            self.value(word);
        } else {
            self.key_part(word);
        }
    }

    fn value(&mut self, content: &'a str) {
        let words = self.before.into_iter().chain([content]);
        let masked = mask_arguments(words).pop().is_some_and(|shown| shown != content);
        let is_door = self.header || self.open.iter().any(|open| open.is_door);
        let telling = |word: &&str| DOORS.contains(word) || is_secret_name(word);
        let is_unknown = self.key.last().is_some_and(|name| !is_known(name));
        let is_named = self.key.iter().any(telling);
        let is_secret = masked || is_door || is_unknown || is_named || self.in_tokens();
        if is_secret && !names_variable(content) {
            self.hide(content.len());
        } else {
            self.show(content.len());
        }
        self.before = self.in_list().then_some(content);
    }

    /// True if the keys of this table are tokens.
    fn in_tokens(&self) -> bool {
        self.tokens || self.open.iter().any(|open| open.has_tokens)
    }

    fn in_list(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_list)
    }

    fn forget(&mut self) {
        self.key.clear();
        self.words.clear();
    }

    fn hide(&mut self, length: usize) {
        let content = self.rest.get(..length).unwrap_or_default();
        let masked = content.bytes().map(|byte| if byte == b'\n' { '\n' } else { '\0' });
        self.shown.extend(masked);
        self.skip(length);
    }

    fn show(&mut self, length: usize) {
        self.shown.push_str(self.rest.get(..length).unwrap_or_default());
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }
}

/// True if a key is a word of some program's schema, and not a token.
pub(super) fn is_word(name: &str) -> bool {
    is_member(name) || is_known(name) || DOORS.contains(&name)
}

/// True if a key of this name holds secrets; one written with escapes may be any key.
pub(super) fn is_telling(name: &str) -> bool {
    let is_door = DOORS.iter().any(|door| name.eq_ignore_ascii_case(door));
    is_door || name.contains('\\') || is_secret_name(name)
}

/// The end of the string that `text` is in; a single-line string ends with its line.
pub(super) fn end_of_string(text: &str, quote: char, mark: usize) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' && quote == '"' {
            escaped = true;
        } else if c == '\n' && mark == 1 {
            return at;
        } else if c == quote {
            let marks = text.get(at..at + mark).is_some_and(|end| end.chars().all(|c| c == quote));
            if marks {
                return at;
            }
        }
    }
    text.len()
}
