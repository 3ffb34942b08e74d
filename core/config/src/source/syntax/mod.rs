//! Parses text into a tree, without interpreting it: TOML, JSON with comments, YAML.

mod json;
mod toml;
mod yaml;

use std::borrow::Cow;
use std::ops::Range;

use crate::redact::scrub;
use crate::source::FilePosition;
use crate::source::problem::{Problem, Report};
use crate::source::tree::Table;

pub use json::options as json_options;

/// The syntax of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML.
    Toml,
    /// JSON with comments and trailing commas.
    Json,
    /// YAML.
    Yaml,
}

/// A parsed text.
#[derive(Debug, Default)]
pub struct Document {
    /// The values.
    pub table: Table,
    /// Duplicate keys of an object; the last one counts, as in most programs.
    pub doubles: Vec<Double>,
}

/// A duplicate key.
#[derive(Debug)]
pub struct Double {
    /// The key.
    pub key: String,
    /// The position of the later one.
    pub span: Range<usize>,
}

/// A syntax error.
#[derive(Debug)]
pub struct Fault {
    message: String,
    span: Range<usize>,
}

// === impl Syntax ===

impl Syntax {
    /// Detects the syntax: by the first character, else by the extension, else by parsing.
    pub fn of(path: &str, text: &str) -> Self {
        if first(text) == Some('{') {
            return Self::Json;
        }
        let extension = path.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.'));
        match extension.map(|(_, extension)| extension) {
            Some("json" | "jsonc") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            Some("toml") => Self::Toml,
            Some(_) | None => {
                let text = plain(text);
                let is_yaml = || yaml::read(&text).is_ok_and(|yaml| !yaml.table.entries.is_empty());
                if toml::read(&text).is_err() && is_yaml() { Self::Yaml } else { Self::Toml }
            }
        }
    }

    /// Parses a text, and turns a syntax error into a problem without secrets.
    pub fn read(self, path: &str, text: &str) -> Result<Document, Box<Problem>> {
        self.parse(text).map_err(|Fault { message, span }| {
            let mut problem = Problem::error(format!("not valid {}: {message}", self.as_str()))
                .help("the file is not used until this is fixed");
            problem.place = Some(FilePosition::of(path, text, &span));
            // The message may repeat a key, and a key may be a token.
            scrub(path, text, [&mut problem]);
            Box::new(problem)
        })
    }

    /// Parses a text.
    pub fn parse(self, text: &str) -> Result<Document, Fault> {
        let plain = plain(text);
        match self {
            Self::Toml => toml::read(&plain),
            Self::Json => json::read(&plain),
            Self::Yaml => yaml::read(&plain),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        }
    }

    /// Formats a key with a value in this syntax.
    pub fn line(self, key: &str, value: &str) -> String {
        match self {
            Self::Toml => format!("{key} = {value}"),
            Self::Json => format!("\"{key}\": {value}"),
            Self::Yaml => format!("{key}: {value}"),
        }
    }
}

// === impl Document ===

impl Document {
    /// Warns about duplicate keys.
    pub fn report_doubles(&self, report: &mut Report<'_>) {
        for double in &self.doubles {
            let problem = Problem::warning(format!("`{}` is defined twice", double.key))
                .help("the last one applies; remove the others");
            report.add(problem, double.key.clone(), &double.span);
        }
    }
}

/// Replaces a leading byte order mark with spaces, so that positions stay valid.
fn plain(text: &str) -> Cow<'_, str> {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Cow::Owned(format!("   {rest}")),
        None => Cow::Borrowed(text),
    }
}

/// The first character of a text after whitespace and JSON comments.
fn first(text: &str) -> Option<char> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let after = if let Some(comment) = rest.strip_prefix("//") {
            comment.split_once('\n').map(|(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map(|(_, after)| after)
        } else {
            return rest.chars().next();
        };
        rest = after?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tree::Value;

    #[test]
    fn the_syntax_is_known_by_the_first_sign_then_by_the_name_then_by_trying() {
        for (path, text, expected) in [
            ("x", "{}", Syntax::Json),
            ("x.toml", "\u{feff} // note\n/* and */ { \"a\": 1 }", Syntax::Json),
            ("x", "[a]\nb = 1", Syntax::Toml),
            ("x", "a:\n  b: 1\n", Syntax::Yaml),
            ("x", "", Syntax::Toml),
            ("x", "neither = \nnor", Syntax::Toml),
            ("dir.json/x", "a = 1", Syntax::Toml),
            ("x.json", "", Syntax::Json),
            ("x.yaml", "", Syntax::Yaml),
        ] {
            assert_eq!(Syntax::of(path, text), expected, "{path}: {text:?}");
        }
    }

    #[test]
    fn the_three_give_the_same_tree() {
        for (syntax, text) in [
            (Syntax::Toml, "a = \"x\"\nb = [1, true]\n[c]\nd = 2.5"),
            (
                Syntax::Json,
                "\u{feff}{\"a\": \"x\", // n\n \"b\": [1, true,], \"c\": {\"d\": 2.5}, \"e\": null}",
            ),
            (Syntax::Yaml, "a: x\nb: [1, true]\nc:\n  d: 2.5\ne: ~\n"),
        ] {
            let table = syntax.read("f", text).unwrap().table;
            assert_eq!(table.entries.len(), 3, "{text}");
            assert_eq!(table.get("a").unwrap().node.as_text(), Some("x"));
            assert_eq!(table.table("c").unwrap().get("d").unwrap().node.as_number(), Some("2.5"));
            let list = table.get("b").unwrap().node.as_list().unwrap();
            assert!(matches!(list[0].value, Value::Number(_)) && list[1].as_bool() == Some(true));
            let entry = table.get("c").unwrap();
            assert!(text.get(entry.key.clone()).unwrap().contains('c'), "{text}");
        }
    }

    #[test]
    fn a_mistake_has_its_place_and_a_text_that_is_no_table_is_one() {
        for (syntax, text, line) in [
            (Syntax::Json, "{\n  \"a\": 1\n  \"b\": 2\n}", 2),
            (Syntax::Json, "[1]", 1),
            (Syntax::Json, "{\"a\": 1} x", 1),
            (Syntax::Json, "{'a': 1}", 1),
            (Syntax::Yaml, "a: 1\nb: [\n", 2),
            (Syntax::Yaml, "- 1\n", 1),
            (Syntax::Yaml, "a: 1\na: 2\n", 2),
            (Syntax::Yaml, "a: 1\n---\nb: 2\n", 2),
            (Syntax::Toml, "a = \n", 1),
        ] {
            let problem = syntax.read("f", text).unwrap_err();
            assert_eq!(problem.place.unwrap().line, line, "{text}: {}", problem.message);
        }
    }

    #[test]
    fn a_key_that_stands_twice_is_reported_and_the_last_one_counts() {
        let document = Syntax::Json.read("f", "{\"a\": 1, \"a\": 2}").unwrap();
        assert_eq!(document.table.get("a").unwrap().node.as_number(), Some("2"));
        assert_eq!(document.doubles.len(), 1);
    }

    #[test]
    fn aliases_are_followed_up_to_a_bound() {
        let document = Syntax::Yaml.read("f", "a: &x {k: v}\nb: *x\n").unwrap();
        assert_eq!(document.table.table("b").unwrap().get("k").unwrap().node.as_text(), Some("v"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb = format!("{bomb}a{n}: &a{n} [{list}]\n");
        }
        assert!(Syntax::Yaml.read("f", &bomb).is_err());
    }
}
