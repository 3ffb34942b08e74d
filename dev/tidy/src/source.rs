//! Looks into Rust code: what it names, outside comments and tests.

/// A word that stands in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, counted from 1.
    pub line: usize,
    /// The word.
    pub word: String,
}

/// The code without comment lines and without items under `#[cfg(test)]`.
///
/// Lines keep their numbers: what is left out becomes an empty line. This reads the shape that
/// rustfmt gives to code, and counts on tests standing last in a file, as clippy demands.
pub fn shipped(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut skipping: Option<Skip> = None;
    for line in text.lines() {
        let keep = match skipping.take() {
            Some(skip) => {
                skipping = skip.after(line);
                false
            }
            None if line.trim_start().starts_with("#[cfg(test)]") => {
                skipping = Some(Skip::Item { indent: indent(line) });
                false
            }
            None => !line.trim_start().starts_with("//"),
        };
        if keep {
            left.push_str(line);
        }
        left.push('\n');
    }
    left
}

/// Where any of the words stands in the code, imports in braces spelled out.
///
/// A word is a name or a path such as `std::fs`; it is found only whole.
pub fn mentions(code: &str, words: &[&str]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in code.lines().zip(1..).map(|(text, line)| (line, text.to_owned())) {
        note(line, &text, words, &mut found);
    }
    for (line, path) in imports(code) {
        note(line, &path, words, &mut found);
    }
    found.sort_by(|a, b| (a.line, &a.word).cmp(&(b.line, &b.word)));
    found.dedup();
    found
}

/// The part that is being left out.
enum Skip {
    /// One item, up to the line that ends it at this depth.
    Item { indent: usize },
    /// All that follows.
    Rest,
}

// === impl Skip ===

impl Skip {
    /// The part that is still to be left out after this line.
    fn after(self, line: &str) -> Option<Self> {
        let Self::Item { indent: depth } = self else { return Some(self) };
        let text = line.trim();
        if text.starts_with("mod ") && text.ends_with('{') {
            return Some(Self::Rest);
        }
        let ends = indent(line) == depth && text.ends_with([';', '}', ',']);
        (!ends).then_some(self)
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn note(line: usize, text: &str, words: &[&str], found: &mut Vec<Finding>) {
    for word in words {
        if whole(text, word) {
            found.push(Finding { line, word: (*word).to_owned() });
        }
    }
}

/// Whether the word stands in the text and is not a piece of a longer name.
fn whole(text: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

/// The full path of everything that `use` brings in, with the line on which the `use` begins.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut statement: Option<(usize, String)> = None;
    for (text, line) in code.lines().zip(1..) {
        let text = text.trim();
        let (begun, mut so_far) = match statement.take() {
            Some(statement) => statement,
            None => match import(text) {
                Some(_) => (line, String::new()),
                None => continue,
            },
        };
        so_far.push_str(text);
        if let Some((whole, _)) = so_far.split_once(';') {
            let tree: String = import(whole).unwrap_or_default().split_whitespace().collect();
            let mut paths = Vec::new();
            spell_out("", &tree, &mut paths);
            found.extend(paths.into_iter().map(|path| (begun, path)));
        } else {
            so_far.push(' ');
            statement = Some((begun, so_far));
        }
    }
    found
}

/// The path that a line imports, if it begins an import.
fn import(line: &str) -> Option<&str> {
    let visible = ["", "pub ", "pub(crate) ", "pub(super) "];
    visible.iter().find_map(|v| line.strip_prefix(v)?.strip_prefix("use "))
}

/// Turns `std::{fs, io::{self, Read}}` into the paths it stands for.
fn spell_out(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, inner)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    for branch in branches(inner) {
        spell_out(&format!("{prefix}{head}"), branch, paths);
    }
}

/// Splits at the commas that stand outside braces.
fn branches(inner: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    inner
        .split(|c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        })
        .filter(|branch| !branch.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &[&str] = &["std::fs", "std::env", "tokio::time", "Instant::now"];

    #[track_caller]
    fn check(code: &str, expected: &[(usize, &str)]) {
        let found = mentions(&shipped(code), WORDS);
        let found: Vec<_> = found.iter().map(|f| (f.line, f.word.as_str())).collect();
        assert_eq!(found, expected, "in\n{code}");
    }

    #[test]
    fn a_word_is_found_however_it_is_brought_in() {
        check("use std::fs;", &[(1, "std::fs")]);
        check("pub(crate) use std::fs::File as F;", &[(1, "std::fs")]);
        check("use std::{env, io};", &[(1, "std::env")]);
        check("use std::{\n    collections::{BTreeMap, HashMap},\n    fs,\n};", &[(1, "std::fs")]);
        check("use std::{io::{self, Read}, fs::{File, OpenOptions}};", &[(1, "std::fs")]);
        check("\n    use tokio::{sync, time::{self, sleep}};", &[(2, "tokio::time")]);
        check("fn f() {\n    ::std::fs::read(p);\n}", &[(2, "std::fs")]);
        check("let t = time::Instant::now();", &[(1, "Instant::now")]);
    }

    #[test]
    fn a_longer_name_a_comment_and_a_neighbour_are_not_found() {
        check("use std::fsync;", &[]);
        check("use tokio::timeouts;", &[]);
        check("// std::fs would block\n//! and std::env too\nlet x = 1;", &[]);
        check("use std::{io, path::Path};\nuse crate::{env, fs};", &[]);
        check("InstantBook::nowhere();", &[]);
    }

    #[test]
    fn what_only_tests_see_is_left_out_and_the_rest_is_not() {
        check("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]);
        check("#[cfg(test)]\nmod tests;\nuse std::fs;", &[(3, "std::fs")]);
        check("#[cfg(test)]\nuse std::{\n    env,\n};\nuse std::fs;", &[(5, "std::fs")]);
        let helper = "impl A {\n    #[cfg(test)]\n    fn a(\n        b: u8,\n    ) {\n        std::env::args();\n    }\n\n    fn b() {\n        std::fs::read(p);\n    }\n}";
        check(helper, &[(10, "std::fs")]);
    }
}
