//! `${VAR}` and `${VAR:-default}` in string values.
//!
//! Expansion happens after parsing, so that a variable's content can never change the structure
//! of a file, and it happens once: what a variable contains is not looked at again.

use crate::problem::{Problem, Report};
use crate::source::Surroundings;
use crate::tree::{Node, Table, Text, Value};

/// Names that stand for the root of the workspace without being set.
const PROJECT_DIR: [&str; 2] = ["CAPSTAN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// What a variable that is not set and has no default means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MissingEnv {
    /// The server that needs it cannot be used.
    #[default]
    Error,
    /// The empty string, with a warning.
    Empty,
}

/// Expands every string of a table in place.
pub(crate) struct Expander<'a> {
    pub(crate) around: Surroundings<'a>,
    pub(crate) missing: MissingEnv,
}

/// A text with its variables replaced.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expanded {
    text: String,
    /// Whether the value of a variable of the environment is in it.
    from_environment: bool,
    /// Variables that are not set and have no default.
    missing: Vec<String>,
    /// Forms of other programs, which stay as they are.
    foreign: Vec<String>,
    /// Whether a `${` has no end.
    unclosed: bool,
}

// === impl Expander ===

impl Expander<'_> {
    pub(crate) fn expand(&self, table: &mut Table, path: &str, report: &mut Report<'_>) {
        for (key, entry) in &mut table.entries {
            self.node(&mut entry.node, &join(path, key), report);
        }
    }

    pub(crate) fn node(&self, node: &mut Node, key: &str, report: &mut Report<'_>) {
        match &mut node.value {
            Value::Text(text) => {
                let expanded = expand(&text.value, &|name| self.lookup(name));
                self.report(&expanded, key, &node.span, report);
                // What lacks a variable stays as written: its server is not used, and its other
                // mistakes are still to be found without inventing new ones.
                if expanded.missing.is_empty() || self.missing == MissingEnv::Empty {
                    let written = expanded.from_environment.then(|| text.value.clone());
                    *text = Text { value: expanded.text, written };
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    self.node(node, key, report);
                }
            }
            Value::Table(table) => self.expand(table, key, report),
            Value::Number(_) | Value::Bool(_) | Value::Moment(_) => {}
        }
    }

    fn lookup(&self, name: &str) -> Option<Found> {
        if PROJECT_DIR.contains(&name) {
            return Some(Found::Fixed(self.around.project_dir.to_owned()));
        }
        (self.around.variable)(name).map(Found::Variable)
    }

    fn report(
        &self,
        expanded: &Expanded,
        key: &str,
        span: &std::ops::Range<usize>,
        report: &mut Report<'_>,
    ) {
        if expanded.unclosed {
            let problem = Problem::error(format!("`{key}` has a `${{` that is never closed"))
                .help("close it with `}`, as in `${HOME}`");
            report.add(problem, key, span);
        }
        for name in &expanded.missing {
            let problem = match self.missing {
                MissingEnv::Error => Problem::error(format!(
                    "`{key}` needs the environment variable `{name}`, which is not set"
                ))
                .help(format!("set `{name}`, or give a default: `${{{name}:-default}}`")),
                MissingEnv::Empty => Problem::warning(format!(
                    "`{key}` uses the environment variable `{name}`, which is not set; it is empty"
                ))
                .help(format!("set `{name}`, or give a default: `${{{name}:-default}}`")),
            };
            report.add(problem, key, span);
        }
        for form in &expanded.foreign {
            let problem = Problem::warning(format!("`{form}` in `{key}` is not replaced"))
                .help("this file knows `${VAR}` and `${VAR:-default}`");
            report.add(problem, key, span);
        }
    }
}

/// What a name stands for.
enum Found {
    /// The same for everybody who may read the file; nothing to hide.
    Fixed(String),
    /// The content of a variable.
    Variable(String),
}

/// A key below a path.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let key = if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        format!("\"{}\"", key.escape_debug())
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Replaces the variables of a text. What is not exactly one of the two forms stays as it is.
fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<Found>) -> Expanded {
    let mut out = Expanded::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.text.push_str(before);
        if before.ends_with('$') {
            out.text.push_str("${");
            rest = after;
            continue;
        }
        let Some((inside, behind)) = split_at_end(after) else {
            out.unclosed = true;
            out.text.push_str("${");
            rest = after;
            continue;
        };
        replace(inside, lookup, &mut out);
        rest = behind;
    }
    out.text.push_str(rest);
    out
}

/// Splits at the brace that closes a form; a form inside its default has a brace of its own.
fn split_at_end(after: &str) -> Option<(&str, &str)> {
    let mut open = 0_usize;
    let mut previous = ' ';
    for (at, c) in after.char_indices() {
        match c {
            '{' if previous == '$' => open += 1,
            '}' if open == 0 => return Some((after.get(..at)?, after.get(at + 1..)?)),
            '}' => open -= 1,
            _ => {}
        }
        previous = c;
    }
    None
}

fn replace(inside: &str, lookup: &dyn Fn(&str) -> Option<Found>, out: &mut Expanded) {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        let foreign = ["env:", "input:", "workspace"].iter().any(|form| inside.starts_with(form));
        if foreign {
            out.foreign.push(format!("${{{inside}}}"));
        }
        out.text.push_str("${");
        out.text.push_str(inside);
        out.text.push('}');
        return;
    }
    match (lookup(name), default) {
        (Some(Found::Fixed(value)), _) => out.text.push_str(&value),
        (Some(Found::Variable(value)), None) => {
            out.from_environment = true;
            out.text.push_str(&value);
        }
        (Some(Found::Variable(value)), Some(_)) if !value.is_empty() => {
            out.from_environment = true;
            out.text.push_str(&value);
        }
        (Some(Found::Variable(_)) | None, Some(default)) => out.text.push_str(default),
        (None, None) => out.missing.push(name.to_owned()),
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lookup(name: &str) -> Option<Found> {
        match name {
            "A" => Some(Found::Variable("alpha".to_owned())),
            "EMPTY" => Some(Found::Variable(String::new())),
            "LOOP" => Some(Found::Variable("${A}".to_owned())),
            "CAPSTAN_PROJECT_DIR" => Some(Found::Fixed("/project".to_owned())),
            _ => None,
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let expanded = expand(text, &lookup);
        assert_eq!(expanded.text, expected, "{text}");
        assert!(expanded.missing.is_empty() && !expanded.unclosed, "{text}: {expanded:?}");
    }

    #[test]
    fn a_variable_is_replaced_wherever_it_stands() {
        check("${A}", "alpha");
        check("x${A}y${A}", "xalphayalpha");
        check("${CAPSTAN_PROJECT_DIR}/bin/s", "/project/bin/s");
        check("${EMPTY}", "");
    }

    #[test]
    fn a_default_stands_in_for_a_variable_that_is_unset_or_empty() {
        check("${A:-d}", "alpha");
        check("${NONE:-d}", "d");
        check("${EMPTY:-d}", "d");
        check("${NONE:-}", "");
        check("${NONE:-a:-b}", "a:-b");
    }

    #[test]
    fn the_default_is_literal_text() {
        check("${NONE:-${A}}", "${A}");
        check("[${A:-${A}}]", "[alpha]");
    }

    #[test]
    fn what_a_variable_contains_is_not_expanded_again() {
        check("${LOOP}", "${A}");
    }

    #[test]
    fn every_other_dollar_stays_as_it_is() {
        for text in
            ["$A", "$${A}", "a$", "$", "${}", "${A%x}", "${1}", "${env:A}", "%A%", "{A}", "${A B}"]
        {
            check(text, text);
        }
    }

    #[test]
    fn what_is_missing_is_named_and_only_that() {
        let expanded = expand("${NONE} ${A} ${OTHER}", &lookup);
        assert_eq!(expanded.missing, ["NONE", "OTHER"]);
        assert!(expand("${A", &lookup).unclosed);
        assert!(expand("${NONE:-${A}", &lookup).unclosed);
        assert_eq!(expand("${env:A}", &lookup).foreign, ["${env:A}"]);
    }

    #[test]
    fn only_a_variable_of_the_environment_makes_a_text_worth_hiding() {
        assert!(expand("${A}", &lookup).from_environment);
        assert!(!expand("${NONE:-d}", &lookup).from_environment);
        assert!(!expand("${CAPSTAN_PROJECT_DIR}", &lookup).from_environment);
    }

    proptest! {
        #[test]
        fn expansion_never_panics_and_leaves_text_without_dollars_alone(text in ".{0,60}") {
            let expanded = expand(&text, &lookup);
            if !text.contains('$') {
                prop_assert_eq!(expanded.text, text);
            }
        }

        #[test]
        fn expansion_never_panics_on_almost_forms(text in "[${}:A_EN -]{0,40}") {
            expand(&text, &lookup);
        }
    }
}
