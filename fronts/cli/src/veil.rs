//! Hides the secrets of a configuration file of which some lines are shown.
//!
//! The file may be broken, so keys and values are read the way a person reads them, line by line:
//! once as TOML and once as JSON or YAML, and what either takes for a secret is hidden.
//! **Invariant:** every byte keeps its place, so that what points into the file still fits.

mod colons;

use capstan_config::{is_secret_name, mask_arguments};

use self::colons::Colons;

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
                shown.push_str(kept);
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

/// Whether a key of this name holds secrets; one in escapes may be any.
fn is_telling(name: &str) -> bool {
    let is_door = DOORS.iter().any(|door| name.eq_ignore_ascii_case(door));
    is_door || name.contains('\\') || is_secret_name(name)
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
        check("bearer_token_env_var = \"T\"", "bearer_token_env_var = \"T\"");
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
        hides("{\"env\": { /* }\n} */ \"A\": \"hunter2\"\n}}");
        hides("{\"args\": [\"src/*\"],\n\"env\": {\n\"A\": \"hunter2\"}}");
        hides("{\"env\": { \"A\": 1, /* { don't\n}} */ \"B\": \"hunter2\" }}");
        hides("glob: /*\nenv: {A: hunter2}\nenv:\n  A: hunter2");
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
        hides(
            "env:\n  A: |\n    hunter2: x\n    y\n\n    hunter: {\n  B: >-\n   hunter2: [\n  C: hunter2",
        );
        hides("a:\n  env:\n    A: >\n      hunter: 2\n    B: hunter2\n  cmd: x");
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
