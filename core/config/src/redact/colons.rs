//! Finds the secrets in JSON, with or without comments, and YAML, whether valid or not.

use capstan_safety::mask::{mask_arguments, names_variable};

use super::lines::{Open, end_of_string, is_telling, is_word};
use super::names::{is_known, is_login};

/// The state of the scan.
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about the place")]
#[derive(Default)]
pub(super) struct Colons<'a> {
    /// For each byte, true if it is hidden.
    hidden: Vec<bool>,
    /// The end of the current line; `rest` is its unread part.
    end: usize,
    rest: &'a str,
    /// The open brackets; a bracket is a door if everything in it is secret.
    open: Vec<Open>,
    /// True if the name of the last key indicates a secret.
    hot: bool,
    /// True if the keys in the table of the last key are tokens.
    has_tokens: bool,
    /// True if the last key is in no program's schema.
    is_unknown: bool,
    /// True if a value comes next.
    due: bool,
    /// The column of a key whose deeper lines are secret.
    block: Option<usize>,
    /// The column of a key whose deeper lines have tokens as keys.
    tokens: Option<usize>,
    /// True if the lines below `block` are plain text, without keys.
    is_text: bool,
    /// True inside a comment, where brackets have no meaning.
    remark: bool,
    /// True if a comment that began in this line continues in the next.
    carried: bool,
    /// The column of the key whose value is a block of text: deeper lines are that text.
    scalar: Option<usize>,
    column: usize,
    before: Option<&'a str>,
}

// === impl Colons ===

impl<'a> Colons<'a> {
    /// For each byte, true if it is hidden.
    pub(super) fn read(text: &'a str) -> Vec<bool> {
        let mut colons = Self { hidden: vec![false; text.len()], ..Self::default() };
        for line in text.split_inclusive('\n') {
            colons.end += line.len();
            colons.line(line);
        }
        colons.hidden
    }

    fn line(&mut self, line: &'a str) {
        let mut body = line.trim_start();
        if body.is_empty() {
            return;
        }
        // YAML allows no tab here, so the depth of such a line is unknown.
        let indent = line.len() - body.len();
        let is_tabbed =
            self.open.is_empty() && line.get(..indent).is_some_and(|blank| blank.contains('\t'));
        let indent = if is_tabbed { usize::MAX } else { indent };
        let is_item = body.starts_with("- ");
        let inside = |&key: &usize| indent > key || (indent == key && is_item);
        self.block = self.block.filter(inside);
        self.tokens = self.tokens.filter(inside);
        self.is_text &= self.block.is_some();
        self.scalar = self.scalar.filter(|&key| indent > key);
        if self.scalar.is_some() && self.block.is_some() {
            self.rest = body;
            self.hide(body.len());
            return;
        }
        while let Some(item) = body.strip_prefix("- ") {
            body = item.trim_start();
        }
        self.column = if is_tabbed { usize::MAX } else { line.len() - body.len() };
        self.rest = body;
        if !is_item && self.open.is_empty() {
            self.before = None;
        }
        if self.is_text && self.open.is_empty() {
            self.hide(body.len());
            return;
        }
        self.due |= is_item;
        let was_remark = self.remark;
        self.carried = false;
        while let Some(c) = self.rest.chars().next() {
            self.step(c);
        }
        self.remark = (was_remark && !line.contains("*/")) || opens_remark(line) || self.carried;
        if self.open.is_empty() {
            (self.hot, self.due) = (false, false);
        }
    }

    fn step(&mut self, c: char) {
        match c {
            '"' | '\'' => self.string(c),
            '{' | '[' if !self.remark => {
                let is_door = self.hot || (c == '[' && self.due && self.is_unknown);
                let has_tokens = self.has_tokens;
                self.open.push(Open { is_list: c == '[', is_door, has_tokens });
                self.has_tokens = false;
                (self.hot, self.due, self.before) = (false, false, None);
                self.skip(1);
            }
            '}' | ']' if !self.remark => {
                self.open.pop();
                (self.hot, self.due, self.before) = (false, false, None);
                self.skip(1);
            }
            ',' | ':' | '=' => {
                self.due = c != ',';
                // Keys before a `=` are handled by `Lines`.
                self.is_unknown &= c != '=';
                self.skip(1);
            }
            '#' if !self.due => {
                (self.remark, self.hot) = (true, false);
                self.skip(1);
            }
            '/' if !self.due && self.rest.starts_with("//") => {
                self.remark = true;
                self.skip(2);
            }
            '/' if self.rest.starts_with("/*") => {
                self.remark = true;
                // Outside brackets it may be YAML, where `/*` is an ordinary word.
                self.carried = !self.open.is_empty() && !self.rest.contains("*/");
                self.skip(2);
            }
            '*' if self.rest.starts_with("*/") => {
                self.remark = false;
                self.skip(2);
            }
            c if c.is_whitespace() => self.skip(c.len_utf8()),
            _ => self.plain(),
        }
    }

    fn string(&mut self, quote: char) {
        self.skip(1);
        let end = end_of_string(self.rest, quote, 1);
        let content = self.rest.get(..end).unwrap_or_default();
        let behind = self.rest.get(end..).unwrap_or_default();
        let is_open = !behind.starts_with(quote);
        let is_key = behind.get(1..).unwrap_or_default().trim_start().starts_with(':');
        let in_list = self.open.last().is_some_and(|open| open.is_list);
        // After a missing quote, strings and the text between them are swapped.
        let spilt = |word: &str| content.contains(':') && is_telling(word);
        if is_open && content.split([' ', ':', '"', '\'', ',', '{']).any(spilt) {
            self.hide(content.len());
            self.open.push(Open { is_list: false, is_door: true, has_tokens: true });
        } else if is_key || (!self.due && !in_list && is_telling(content)) {
            self.key(content);
        } else {
            self.value(content);
        }
        if self.rest.starts_with(quote) {
            self.skip(1);
        }
    }

    fn plain(&mut self) {
        let stops = |c: char| "{}[],\"'#:=\n".contains(c);
        let end = self.rest.find(stops).unwrap_or(self.rest.len());
        let name = self.rest.get(..end).unwrap_or_default();
        let behind = self.rest.get(end..).unwrap_or_default();
        let parts = behind.strip_prefix(':').is_some_and(|value| {
            is_telling(name) || value.is_empty() || value.starts_with(char::is_whitespace)
        });
        // A missing colon after the name of a login table must not reveal its keys.
        let is_bare = behind.trim().is_empty() && is_login(name.trim());
        if (parts || is_bare) && !(self.due && self.hot) {
            return self.key(name);
        }
        let is_spilt = behind.strip_prefix(['"', '\'']).is_some_and(|rest| rest.starts_with(':'));
        if is_spilt && is_telling(name) {
            self.open.push(Open { is_list: false, is_door: true, has_tokens: true });
            return self.hide(self.rest.len());
        }
        let line = self.rest.trim_end();
        let end = if self.due && self.open.is_empty() {
            line.find(" #").unwrap_or(line.len())
        } else {
            let ends = |c: char| c.is_whitespace() || "{}[],\"'".contains(c);
            line.find(ends).unwrap_or(line.len())
        };
        // A bracket in a comment is a word of its own, so that every step makes progress.
        let first = line.chars().next().map_or(1, char::len_utf8);
        self.value(line.get(..end.max(first)).unwrap_or_default());
    }

    fn key(&mut self, name: &str) {
        let inside = self.tokens.is_some_and(|key| key < self.column)
            || self.open.iter().any(|open| open.has_tokens);
        if inside && !is_word(name.trim()) {
            self.hide(name.len());
        } else {
            self.skip(name.len());
        }
        let value = self.rest.trim_start_matches(['"', '\'', ':', ' ']).trim_end();
        let is_map = value.is_empty() || value.starts_with(['{', '[', '&', '!']);
        self.is_unknown = !is_known(name.trim());
        self.hot = is_telling(name.trim()) || (self.is_unknown && !is_map);
        self.due = true;
        self.has_tokens = is_login(name.trim());
        if self.has_tokens && self.open.is_empty() && self.tokens.is_none() {
            self.tokens = Some(self.column);
        }
        if self.open.is_empty() && value.starts_with(['|', '>']) {
            self.scalar = Some(self.column);
        }
        if self.hot && self.block.is_none() {
            self.block = Some(self.column);
            self.is_text = !is_map;
        }
    }

    fn value(&mut self, content: &'a str) {
        let words = self.before.into_iter().chain([content]);
        let masked = mask_arguments(words).pop().is_some_and(|shown| shown != content);
        let is_secret = self.hot
            || (self.due && self.is_unknown)
            || self.block.is_some_and(|key| key < self.column);
        let is_door = self.open.iter().any(|open| open.is_door);
        let is_hidden = (masked && self.due_or_list()) || is_secret || is_door;
        if is_hidden && !names_variable(content) {
            self.hide(content.len());
        } else {
            self.skip(content.len());
        }
        (self.before, self.due) = (Some(content), false);
    }

    fn due_or_list(&self) -> bool {
        self.due || self.open.last().is_some_and(|open| open.is_list)
    }

    fn hide(&mut self, length: usize) {
        let start = self.end - self.rest.len();
        self.hidden.iter_mut().skip(start).take(length).for_each(|byte| *byte = true);
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }
}

/// True if a block comment begins in this line and continues in the next.
fn opens_remark(line: &str) -> bool {
    line.trim_start().starts_with("/*") && !line.contains("*/")
}
