//! The value of a flag: its type, its choices and its default.

use serde::{Deserialize, Serialize};

/// Maximum number of choices.
const MAX_CHOICES: usize = 64;

/// The value of a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// No value: a switch.
    #[default]
    None,
    /// A required value.
    Required(Kind),
    /// An optional value.
    Optional(Kind),
}

/// The format of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// Its name in the help text.
    pub name: String,
    /// Its type.
    pub value_type: ValueType,
    /// The allowed values; empty for any.
    pub choices: Vec<String>,
    /// The default without the flag.
    pub default: Option<String>,
    /// True if it is written after `=`, even after a single dash.
    pub joined: bool,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueType {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

// === impl Value ===

impl Value {
    /// The format of the value, if there is one.
    pub fn kind(&self) -> Option<&Kind> {
        match self {
            Self::None => None,
            Self::Required(kind) | Self::Optional(kind) => Some(kind),
        }
    }

    /// Adds the facts of the flag's description.
    pub(super) fn learn(&mut self, summary: &str) {
        let (Self::Required(kind) | Self::Optional(kind)) = self else { return };
        if kind.choices.is_empty() {
            kind.choices = choices_in(summary);
        }
        if kind.default.is_none() {
            kind.default = default_in(summary).filter(|default| kind.may_be(default));
        }
    }
}

// === impl Kind ===

impl Kind {
    /// Parses a value as written after a flag: `FILE`, `<n>`, `{a,b}`, `a|b`.
    pub(super) fn of(written: &str) -> Self {
        let name = written.trim_matches(|c: char| c.is_whitespace() || "<>()=".contains(c));
        let name = name.trim_end_matches("...").trim_matches(['<', '>', ' ']);
        let name = if name.is_empty() { "value" } else { name };
        let choices = written_choices(written);
        let value_type = if choices.is_empty() { type_of(name) } else { ValueType::Text };
        Self { name: name.to_owned(), value_type, choices, default: None, joined: false }
    }

    /// A value of which only the default is written, as in `--flag=false:`.
    pub(super) fn by_default(default: &str) -> Self {
        let plain = default.trim_matches(['\'', '"']);
        let value_type = match plain {
            "true" | "false" => ValueType::Boolean,
            number if number.parse::<i64>().is_ok() => ValueType::Integer,
            _ => ValueType::Text,
        };
        let default = (!plain.is_empty() && plain != "[]").then(|| plain.to_owned());
        Self { name: "value".to_owned(), value_type, default, ..Self::default() }
    }

    /// True if the text is a valid value.
    fn may_be(&self, text: &str) -> bool {
        let fits = match self.value_type {
            ValueType::Text => true,
            ValueType::Integer => text.parse::<i64>().is_ok(),
            ValueType::Number => text.parse::<f64>().is_ok_and(f64::is_finite),
            ValueType::Boolean => matches!(text, "true" | "false"),
        };
        fits && (self.choices.is_empty() || self.choices.iter().any(|choice| choice == text))
    }
}

fn type_of(name: &str) -> ValueType {
    match name.to_ascii_lowercase().as_str() {
        "int" | "int32" | "int64" | "integer" | "number" | "uint" | "uint16" | "uint32"
        | "uint64" | "count" | "n" | "num" => ValueType::Integer,
        "float" | "float32" | "float64" | "double" | "decimal" => ValueType::Number,
        "bool" | "boolean" => ValueType::Boolean,
        _ => ValueType::Text,
    }
}

/// Parses the choices in `{a,b}`, `<a|b>`, `(a|b)` or `a|b`.
fn written_choices(written: &str) -> Vec<String> {
    let inner = written.trim().trim_end_matches("...").trim();
    let braces = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
    let angles = inner.strip_prefix('<').and_then(|inner| inner.strip_suffix('>'));
    let rounds = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let (inner, mark) = match (braces, angles.or(rounds)) {
        (Some(inner), _) if inner.contains(',') => (inner, ','),
        (Some(inner), _) | (None, Some(inner)) => (inner, '|'),
        (None, None) => (inner, '|'),
    };
    let words: Vec<&str> = inner.split(mark).map(str::trim).collect();
    // `<pkg|glob>` names two kinds of values. Only `a|b|c`, or lower-case words in braces, differ
    // enough from placeholders to count as choices.
    let plain = words.iter().all(|word| is_choice(word));
    let believed = mark == ',' || words.len() > 2 || braces.is_some();
    if words.len() > 1 && plain && believed { listed(words) } else { Vec::new() }
}

/// Parses the choices that a description enumerates completely.
fn choices_in(summary: &str) -> Vec<String> {
    for (begin, end) in [("[possible values:", ']'), ("(choices:", ')'), ("[choices:", ']')] {
        if let Some(list) = after(summary, begin).and_then(|rest| rest.split(end).next()) {
            let words: Vec<&str> =
                list.split(',').map(|word| word.trim().trim_matches(['"', '\'', '`'])).collect();
            return if words.iter().all(|word| is_choice(word)) { listed(words) } else { vec![] };
        }
    }
    quoted_list(summary)
}

/// Parses the choices in `("always", "missing", "never")`.
fn quoted_list(summary: &str) -> Vec<String> {
    for piece in summary.split('(').skip(1) {
        let inner = piece.split(')').next().unwrap_or_default();
        let words: Vec<&str> = inner.split([',', '|']).map(str::trim).collect();
        let bare = |word: &&str| -> Option<String> {
            let word = word.strip_prefix('"')?.strip_suffix('"')?;
            is_choice(word).then(|| word.to_owned())
        };
        let bare: Vec<String> = words.iter().filter_map(bare).collect();
        if bare.len() > 1 && bare.len() == words.len() && bare.len() <= MAX_CHOICES {
            return bare;
        }
    }
    Vec::new()
}

/// Parses the default in a description.
fn default_in(summary: &str) -> Option<String> {
    let found = [("[default:", ']'), ("(default:", ')'), ("(default is ", ')'), ("(default ", ')')];
    let (begin, end) = found.iter().find(|(begin, _)| summary.contains(begin))?;
    let default = after(summary, begin)?.split(*end).next()?.trim();
    let default = default.trim_matches(['"', '\'', '`']);
    let fits = !default.is_empty() && default.len() < 80 && !default.contains(['(', '[']);
    fits.then(|| default.to_owned())
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn is_choice(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+/:".contains(c);
    let lower = word.chars().all(|c| !c.is_ascii_uppercase());
    !word.is_empty() && word.len() < 60 && word.chars().all(fits) && lower && !word.starts_with('-')
}

fn listed(words: Vec<&str>) -> Vec<String> {
    if words.len() > MAX_CHOICES {
        return Vec::new();
    }
    words.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn choices(written: &str, summary: &str) -> Vec<String> {
        let mut value = Value::Required(Kind::of(written));
        value.learn(summary);
        value.kind().unwrap().choices.clone()
    }

    #[test]
    fn choices_are_taken_where_all_of_them_are_named() {
        assert_eq!(choices("{a,b}", ""), ["a", "b"]);
        assert_eq!(choices("<hoisted|nested|shallow>", ""), ["hoisted", "nested", "shallow"]);
        assert_eq!(choices("<WHEN>", "Colour [possible values: auto, never]"), ["auto", "never"]);
        assert_eq!(choices("string", r#"Pull ("always"|"never") (default "never")"#).len(), 2);
    }

    #[test]
    fn no_choices_are_taken_where_others_may_exist() {
        for (written, summary) in [
            ("<pkg|glob>", ""),
            ("<KEY=VALUE|PATH>", ""),
            ("string", "One of: (json, yaml, name, go-template, jsonpath)"),
            ("FILE", "a file (or - for stdin)"),
            ("{+|-}x", ""),
        ] {
            assert!(choices(written, summary).is_empty(), "{written} {summary}");
        }
    }

    #[test]
    fn types_and_defaults_are_taken_where_they_fit() {
        let kind = |written: &str, summary: &str| {
            let mut value = Value::Required(Kind::of(written));
            value.learn(summary);
            let kind = value.kind().unwrap().clone();
            (kind.value_type, kind.default)
        };
        assert_eq!(kind("int", "(default 5)"), (ValueType::Integer, Some("5".to_owned())));
        assert_eq!(kind("int", "(default all of them)"), (ValueType::Integer, None));
        assert_eq!(kind("<N>", "[default: 3]"), (ValueType::Integer, Some("3".to_owned())));
        assert_eq!(kind("float", ""), (ValueType::Number, None));
        assert_eq!(kind("[-]NUM", ""), (ValueType::Text, None));
        assert_eq!(kind("x", r#"(default "a b")"#), (ValueType::Text, Some("a b".to_owned())));
    }
}
