//! Hides the secrets of a configuration file of which some lines are shown.
//!
//! The file may be broken, so keys and values are read the way a person reads them, line by line:
//! once as TOML and once as JSON or YAML, and what either takes for a secret is hidden.
//! **Invariant:** every byte keeps its place, so that what points into the file still fits.

use capstan_config::{is_secret_name, mask_arguments};

/// Tables in which every value may open a door.
const DOORS: [&str; 6] =
    ["env", "envs", "environment", "headers", "http_headers", "env_http_headers"];

/// The text with a `*` for every byte of a secret.
pub(crate) fn veil(text: &str) -> String {
    let mut veil = Veil { rest: text, ..Veil::default() };
    while !veil.rest.is_empty() {
        veil.step();
    }
    let hidden = Colons::read(text);
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match veil.shown.get(at..at + c.len_utf8()) {
            Some(kept) if c.is_whitespace() || hidden.get(at) != Some(&true) => {
                shown.push_str(kept)
            }
            Some(_) | None => shown.push_str(&"*".repeat(c.len_utf8())),
        }
    }
    shown
}

/// How far a text was read, and what is known about the place.
#[derive(Default)]
struct Veil<'a> {
    rest: &'a str,
    shown: String,
    /// Whether the `[header]` above speaks of a door.
    header: bool,
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
struct Open {
    is_list: bool,
    is_door: bool,
}

/// A text of keys with colons behind them, read so far.
#[derive(Default)]
struct Colons<'a> {
    /// Which bytes are hidden.
    hidden: Vec<bool>,
    /// Where the line ends that is being read, and what of it is left.
    end: usize,
    rest: &'a str,
    /// The brackets that are open; one is a door when all in it is secret.
    open: Vec<Open>,
    /// Whether the last key tells of a secret.
    hot: bool,
    /// Whether a value is due.
    due: bool,
    /// Deeper lines than this one are secret; with the column of its key.
    block: Option<usize>,
    /// Whether those lines are text, without keys.
    is_text: bool,
    /// Whether a comment goes on, in which brackets mean nothing.
    remark: bool,
    column: usize,
    before: Option<&'a str>,
}

// === impl Veil ===

impl<'a> Veil<'a> {
    fn step(&mut self) {
        match self.rest.chars().next() {
            Some('#') => self.show(self.rest.find('\n').unwrap_or(self.rest.len())),
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some('[') if self.open.is_empty() && self.key.is_empty() => self.header(),
            Some(bracket @ ('[' | '{')) => {
                let is_door = self.key.iter().any(|word| DOORS.contains(word));
                self.open.push(Open { is_list: bracket == '[', is_door });
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

    /// A new line, which ends a statement; also one whose brackets were forgotten.
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
        self.show(end);
    }

    fn string(&mut self, quote: char) {
        let many = [quote; 3].iter().collect::<String>();
        let mark = if self.rest.starts_with(&many) { many.len() } else { 1 };
        self.show(mark);
        let end = end_of_string(self.rest, quote, mark);
        let content = self.rest.get(..end).unwrap_or_default();
        let after = self.rest.get(end + mark..).unwrap_or_default().trim_start_matches([' ', '\t']);
        if mark == 1 && after.starts_with(['=', '.']) && !self.in_list() {
            self.words.push(content);
            self.show(end);
        } else {
            self.value(content);
        }
        // One that was forgotten to be closed ends with its line.
        if self.rest.starts_with(quote) {
            self.show(mark);
        }
    }

    /// A word without quotes: part of a key, or a value.
    fn word(&mut self) {
        let ends = |c: char| c.is_whitespace() || "=,[]{}#\"'".contains(c);
        let is_value = !self.key.is_empty() || self.in_list();
        let end = self.rest.find(|c: char| ends(c) || (c == '.' && !is_value));
        let word = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
        if is_value {
            self.value(word);
        } else {
            self.words.push(word);
            self.show(word.len());
        }
    }

    fn value(&mut self, content: &'a str) {
        let words = self.before.into_iter().chain([content]);
        let masked = mask_arguments(words).pop().is_some_and(|shown| shown != content);
        let is_door = self.header || self.open.iter().any(|open| open.is_door);
        let telling = |word: &&str| DOORS.contains(word) || is_secret_name(word);
        if masked || is_door || self.key.iter().any(telling) {
            self.shown.push_str(&"*".repeat(content.len()));
            self.skip(content.len());
        } else {
            self.show(content.len());
        }
        self.before = self.in_list().then_some(content);
    }

    fn in_list(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_list)
    }

    fn forget(&mut self) {
        self.key.clear();
        self.words.clear();
    }

    fn show(&mut self, length: usize) {
        self.shown.push_str(self.rest.get(..length).unwrap_or_default());
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }
}

// === impl Colons ===

impl<'a> Colons<'a> {
    fn read(text: &'a str) -> Vec<bool> {
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
        let indent = line.len() - body.len();
        let is_item = body.starts_with("- ");
        let inside = |&key: &usize| indent > key || (indent == key && is_item);
        self.block = self.block.filter(inside);
        self.is_text &= self.block.is_some();
        while let Some(item) = body.strip_prefix("- ") {
            body = item.trim_start();
        }
        self.column = line.len() - body.len();
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
        while let Some(c) = self.rest.chars().next() {
            self.step(c);
        }
        self.remark = was_remark && !line.contains("*/") || opens_remark(line);
        if self.open.is_empty() {
            (self.hot, self.due) = (false, false);
        }
    }

    fn step(&mut self, c: char) {
        match c {
            '"' | '\'' => self.string(c),
            '{' | '[' if !self.remark => {
                self.open.push(Open { is_list: c == '[', is_door: self.hot });
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
        // A quote that is missing turns what follows inside out.
        let spilt = |word: &str| content.contains(':') && is_telling(word);
        if is_open && content.split([' ', ':', '"', '\'', ',', '{']).any(spilt) {
            self.hide(content.len());
            self.open.push(Open { is_list: false, is_door: true });
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
        if parts && !(self.due && self.hot) {
            return self.key(name);
        }
        let is_spilt = behind.strip_prefix(['"', '\'']).is_some_and(|rest| rest.starts_with(':'));
        if is_spilt && is_telling(name) {
            self.open.push(Open { is_list: false, is_door: true });
            return self.hide(self.rest.len());
        }
        let line = self.rest.trim_end();
        let end = if self.due && self.open.is_empty() {
            line.find(" #").unwrap_or(line.len())
        } else {
            let ends = |c: char| c.is_whitespace() || "{}[],\"'".contains(c);
            line.find(ends).unwrap_or(line.len())
        };
        // A bracket in a comment is a word of its own, so that every step gets on.
        let first = line.chars().next().map_or(1, char::len_utf8);
        self.value(line.get(..end.max(first)).unwrap_or_default());
    }

    fn key(&mut self, name: &str) {
        self.skip(name.len());
        (self.hot, self.due) = (is_telling(name.trim()), true);
        if self.hot && self.block.is_none() {
            self.block = Some(self.column);
            let value = self.rest.trim_start_matches(['"', '\'', ':', ' ']).trim_end();
            let is_map = value.is_empty() || value.starts_with(['{', '[', '&', '!']);
            self.is_text = !is_map;
        }
    }

    fn value(&mut self, content: &'a str) {
        let words = self.before.into_iter().chain([content]);
        let masked = mask_arguments(words).pop().is_some_and(|shown| shown != content);
        let is_secret = self.hot || self.block.is_some_and(|key| key < self.column);
        if masked && self.due_or_list() || is_secret || self.open.iter().any(|open| open.is_door) {
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

/// Whether a key of this name holds secrets; one in escapes may be any.
fn is_telling(name: &str) -> bool {
    let is_door = DOORS.iter().any(|door| name.eq_ignore_ascii_case(door));
    is_door || name.contains('\\') || is_secret_name(name)
}

/// Whether a comment begins in this line that goes on in the next.
fn opens_remark(line: &str) -> bool {
    line.trim_start().starts_with("/*") && !line.contains("*/")
}

/// Where a string ends that has just begun; one on a single line ends with the line.
fn end_of_string(text: &str, quote: char, mark: usize) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(veil(text), expected);
        assert_eq!(text.len(), expected.len());
    }

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        check("env = { A = \"x\\\"y\", B = 'z' }", "env = { A = \"****\", B = '*' }");
        check("[s.a.env]\nA = \"x\"\n[s.b]\nc = \"d\"", "[s.a.env]\nA = \"*\"\n[s.b]\nc = \"d\"");
        check("env.A = \"\"\"x\ny\"\"\"\nb = \"c\"", "env.A = \"\"\"***\"\"\"\nb = \"c\"");
        check("s = { a = { headers = { B = \"c\" } } }", "s = { a = { headers = { B = \"*\" } } }");
        check("client_secret = \"x\"", "client_secret = \"*\"");
        check("\"api key\" = \"x\" # c", "\"api key\" = \"*\" # c");
        check(
            "args = [\n \"--token\",\n \"x\", \"y\" ]",
            "args = [\n \"--token\",\n \"*\", \"y\" ]",
        );
        check("args = ['--api-key=x']", "args = ['***********']");
        check("url = \"https://me:pw@h\"", "url = \"***************\"");
    }

    #[test]
    fn secrets_of_a_broken_file_are_hidden_too() {
        check("env = { A = \"x }\nb = \"c\"", "env = { A = \"***\nb = \"c\"");
        check("env = { A = x-1.2 }", "env = { A = ***** }");
        check("a = [ \"b\"\nTOKEN = \"x\"", "a = [ \"b\"\nTOKEN = \"*\"");
        check("a = [ 1\n[s.env]\nB = \"x\"", "a = [ 1\n[s.env]\nB = \"*\"");
        check("env = {\n A = \"ü", "env = {\n A = \"**");
    }

    #[track_caller]
    fn hides(text: &str) {
        let shown = veil(text);
        assert!(!shown.contains("hunter"), "{shown}");
        assert_eq!((text.len(), text.lines().count()), (shown.len(), shown.lines().count()));
    }

    #[test]
    fn secrets_of_json_are_hidden() {
        check(r#"{"env":{"A":"ü"},"b":1}"#, r#"{"env":{"A":"**"},"b":1}"#);
        hides(r#"{"s":{"command":"/x","env":{"DB_PASSWORD":"hunter2"},"bogus":1}}"#);
        hides("{\n \"env\": {\n // }\n /* } */\n  \"A\": \"hunter2\",\n  \"B\": 1\n }\n}");
        hides(r#"{"headers": {"Authorization": "Bearer hunter2"}}"#);
        hides(r#"{"http_headers": {"X": "a\"hunter2"}, "apiKey" : ["hunter2"]}"#);
        hides(r#"{"args": ["-y", "--token", "hunter2"], "url": "https://me:hunter2@h"}"#);
        hides("{ // \"API_KEY\": \"hunter2\"\n}");
        hides(r#"{"\u0065nv": {"A": "hunter2"}}"#);
    }

    #[test]
    fn secrets_of_yaml_are_hidden() {
        check("envs:\n  A: x y # c\nb: c", "envs:\n  A: * * # *\nb: c");
        hides("extensions:\n  a:\n    envs:\n      A: hunter2\n      B: 'hunter2'\n    cmd: x");
        hides("- env:\n    A: {b: hunter2}\n- headers: {X: hunter2, Y: \"hunter2\"}");
        hides("password: |\n  hunter: 2\n  hunter2\nb: c");
        hides("tokens:\n- hunter2\n- b: hunter2\nargs:\n- --token\n- hunter2");
        hides("uri: https://me:hunter2@h\n# api_key: hunter2");
    }

    #[test]
    fn secrets_of_broken_json_and_yaml_are_hidden() {
        hides(r#"{"env": {"A": "hunter2"#);
        hides("{\"env\": {\n\"A\": \"b,\n\"C\": \"hunter2\"");
        hides("{\"a\": \"b\n\"env\": {\n\"A\": \"hunter2\"");
        hides(r#"{"DB_PASSWORD" "hunter2"}"#);
        hides(r#"{"DB_PASSWORD": hunter2"}"#);
        hides(r#"{"command": "/x, "env": {"A": "hunter2"}}"#);
        hides("env:\n  A: \"hunter2\n  B: [hunter2\nc: d");
        hides("DB_PASSWORD:hunter2\nenv: {A: hunter2");
    }

    #[test]
    fn everything_else_is_shown() {
        for text in [
            "[servers.a]\ncommand = \"npx\" # a \"comment\"\nargs = [\"-y\", 'p', 5]\n",
            "servers = { \"My Server\" = { command = \"x\" } }",
            "[permissions]\nallow = [\"a\", { pattern = \"b\", reason = \"c\" }]\ndefault = \"ask\"",
            "a = \"\"\nb = ''''''\n\n\r\n\u{feff}",
            "= = [[ }} ]] \"",
            "{\"s\": {\"command\": \"npx\", \"args\": [\"-y\"], \"bogus\": 1}} // don't",
            "a:\n  cmd: npx # don't\n  args: [-y, p]\n  list:\n  - b\n",
            "{\"a\": \"b",
            "",
        ] {
            check(text, text);
        }
    }
}
