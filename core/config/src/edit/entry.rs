//! The entry of one server: its lines, as people edit them, and changes of single keys.

use std::ops::Range;

use toml_edit::{Array, Document, InlineTable, Item, Key, Value};

use super::EditError;
use super::document::{Editing, insert, syntax};
use super::remove::collect;
use super::{replace, value_of};
use crate::fields::nearest;
use crate::merge::load;
use crate::source::problem::{Problem, Severity};
use crate::source::reader::NativeFiles;
use crate::source::{Dialect, FilePosition, Scope, SourceFile, Surroundings};

/// A changed file, with the place of the entry in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedEntry {
    /// The text of the file.
    pub text: String,
    /// The bytes of the entry.
    place: Range<usize>,
}

/// New values of keys, and keys to remove.
#[derive(Clone, Debug, Default)]
pub struct KeyChanges {
    /// Dotted keys with their values. Several values of a key are the items of a list.
    pub set: Vec<(String, Vec<String>)>,
    /// Dotted keys.
    pub unset: Vec<String>,
}

/// Returns the lines of a server's entry, with the comments between and directly before them.
pub fn entry_text(text: &str, name: &str) -> Result<String, EditError> {
    let ranges = ranges(text, name)?;
    Ok(ranges.into_iter().filter_map(|range| text.get(range)).collect())
}

/// Replaces the lines of a server's entry. Nothing else changes.
///
/// # Errors
/// If the entry is no longer `before`.
pub fn replace_entry(
    text: &str,
    name: &str,
    before: &str,
    after: &str,
) -> Result<ReplacedEntry, EditError> {
    let ranges = ranges(text, name)?;
    let now: String = ranges.iter().filter_map(|range| text.get(range.clone())).collect();
    if now != before {
        return Err(EditError::Raced { name: name.to_owned() });
    }
    let start = ranges.first().map_or(text.len(), |range| range.start);
    let mut edited = text.get(..start).unwrap_or_default().to_owned();
    edited.push_str(after);
    let mut place = start..edited.len();
    if before.ends_with('\n') && !after.is_empty() && !after.ends_with('\n') {
        edited.push('\n');
        place.end += 1;
    }
    let ends = ranges.iter().map(|range| range.end);
    let starts = ranges.iter().skip(1).map(|range| range.start).chain([text.len()]);
    for (end, start) in ends.zip(starts) {
        edited.push_str(text.get(end..start).unwrap_or_default());
    }
    Ok(ReplacedEntry { text: edited, place })
}

/// Changes keys of a server's entry.
///
/// A value is read as TOML, as a text, or as the only item of a list: the first that the key
/// accepts.
///
/// # Errors
/// If a key is unknown, a value does not fit, or the server would be refused.
pub fn change_keys(
    text: &str,
    name: &str,
    scope: Scope,
    changes: &KeyChanges,
) -> Result<String, EditError> {
    let mut edited = text.to_owned();
    for key in &changes.unset {
        edited = without_key(&edited, name, key)?;
    }
    for (key, values) in &changes.set {
        edited = with_key(&edited, name, scope, (key, values))?;
    }
    let mut problems = new_problems("", scope, text, &edited).into_iter();
    match problems.find(|problem| problem.severity == Severity::Error) {
        Some(problem) => Err(EditError::Refused { reason: problem.message, help: problem.help }),
        None => Ok(edited),
    }
}

/// Returns the problems that a change of a file brings.
///
/// Values of variables are not known here, so texts with variables are not judged.
pub fn new_problems(path: &str, scope: Scope, before: &str, after: &str) -> Vec<Problem> {
    let known = problems(path, scope, before);
    let same =
        |new: &Problem| known.iter().any(|old| old.key == new.key && old.message == new.message);
    problems(path, scope, after).into_iter().filter(|problem| !same(problem)).collect()
}

fn problems(path: &str, scope: Scope, text: &str) -> Vec<Problem> {
    let dialect = Some(Dialect::Native);
    let file = SourceFile { dialect, ..SourceFile::new(path, scope, text) };
    let variable = |variable: &str| Some(variable.to_owned());
    let surroundings = Surroundings { variable: &variable, project_dir: "" };
    let mut problems = load(&[file], &surroundings, &NativeFiles).problems;
    problems.retain(|problem| {
        let value = problem.place.as_ref();
        let value = value.and_then(|at| text.get(at.start..at.start + at.len));
        !value.is_some_and(|value| value.contains("${"))
    });
    problems
}

fn with_key(
    text: &str,
    name: &str,
    scope: Scope,
    (key, values): (&str, &[String]),
) -> Result<String, EditError> {
    let mut refused = None;
    for value in readings(values) {
        let edited = with_value(text, name, key, value)?;
        let is_wrong =
            |problem: &Problem| problem.severity == Severity::Error && is_about(problem, key);
        match problems("", scope, &edited).into_iter().find(is_wrong) {
            None => return Ok(edited),
            Some(problem) => drop(refused.get_or_insert(problem)),
        }
    }
    let (reason, help) = refused.map_or_else(Default::default, |one| (one.message, one.help));
    Err(EditError::Value { key: key.to_owned(), reason, help })
}

/// True if a problem is about this key of the server, or about a part of it.
fn is_about(problem: &Problem, key: &str) -> bool {
    let Some(whole) = &problem.key else { return false };
    let part = format!(".{key}");
    let rests = whole.match_indices(&part).filter_map(|(at, part)| whole.get(at + part.len()..));
    rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The values that typed texts may mean, the likeliest first.
fn readings(texts: &[String]) -> Vec<Value> {
    let list = Value::Array(texts.iter().collect::<Array>());
    match texts {
        [only] => {
            let toml = only.parse::<Value>().ok();
            toml.into_iter().chain([Value::from(only), list]).collect()
        }
        _ => vec![list],
    }
}

fn with_value(text: &str, name: &str, key: &str, new: Value) -> Result<String, EditError> {
    let mut editing = Editing::open(text)?;
    let mut table = editing.server(name)?;
    let (parents, last) = path(key)?;
    let mut walked = Vec::new();
    for parent in &parents {
        walked.push(parent.get());
        if table.get(parent.get()).is_none() {
            insert(table, parent.get(), Item::Value(InlineTable::new().into()));
        }
        if parents.len() == 1
            && parent.get() == "openapi"
            && let Some(openapi) = table.get_mut(parent.get())
        {
            document_table(openapi);
        }
        let inner = table.get_mut(parent.get()).filter(|inner| inner.is_table_like());
        table = inner.ok_or_else(|| EditError::Unexpected {
            key: format!("servers.{name}.{}", walked.join(".")),
            expected: "a table",
        })?;
    }
    match value_of(table, last.get()) {
        Some(old) => replace(old, new),
        None => insert(table, last.get(), Item::Value(new)),
    }
    Ok(editing.finish())
}

/// Turns `openapi = "FILE"` into the table with the same meaning.
fn document_table(openapi: &mut Item) {
    if let Item::Value(value) = openapi
        && let Some(document) = value.as_str().map(str::to_owned)
    {
        let mut table = InlineTable::new();
        table.insert("document", document.into());
        replace(value, table.into());
    }
}

fn without_key(text: &str, name: &str, key: &str) -> Result<String, EditError> {
    let mut editing = Editing::open(text)?;
    let mut table = Some(editing.server(name)?);
    let (parents, last) = path(key)?;
    for parent in &parents {
        table = table.and_then(|table| table.get_mut(parent.get()));
    }
    let table = table.and_then(Item::as_table_like_mut);
    let removed = match table {
        Some(table) => {
            let known: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
            table.remove(last.get()).ok_or(known)
        }
        None => Err(Vec::new()),
    };
    if let Err(known) = removed {
        let nearest = nearest(last.get(), known.iter().map(String::as_str)).map(str::to_owned);
        return Err(EditError::NotSet { name: name.to_owned(), key: key.to_owned(), nearest });
    }
    Ok(editing.finish())
}

/// Splits a dotted key into the tables and the key in the last of them.
fn path(key: &str) -> Result<(Vec<Key>, Key), EditError> {
    let bad = || EditError::Key { key: key.to_owned() };
    let mut keys = Key::parse(key).map_err(|_| bad())?;
    let last = keys.pop().ok_or_else(bad)?;
    Ok((keys, last))
}

/// The bytes of the lines of a server's entry.
fn ranges(text: &str, name: &str) -> Result<Vec<Range<usize>>, EditError> {
    let key = Editing::open(text)?.name_of(name)?;
    let document = Document::parse(text).map_err(|cause| syntax(text, cause))?;
    let servers = document.as_table().get("servers").and_then(Item::as_table_like);
    let mut spans = Vec::new();
    if let Some((key, item)) = servers.and_then(|servers| servers.get_key_value(&key)) {
        collect(key, item, &mut spans);
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    // Comments and blank lines since the last line of the entry, or directly before the first one.
    let mut between: Option<Range<usize>> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let is_comment = line.trim_start().starts_with('#');
        let is_blank = line.trim().is_empty();
        if spans.iter().any(|span| span.start < end && span.end > start) {
            let from = between.take().map_or(start, |between| between.start);
            match ranges.last_mut().filter(|last| last.end == from) {
                Some(last) => last.end = end,
                None => ranges.push(from..end),
            }
        } else if is_comment || (is_blank && is_after(&ranges, between.as_ref(), start)) {
            between.get_or_insert(start..end).end = end;
        } else {
            between = None;
        }
        start = end;
    }
    Ok(ranges)
}

/// True if the gap, or the line at `start` without one, begins where the last range ends.
fn is_after(ranges: &[Range<usize>], gap: Option<&Range<usize>>, start: usize) -> bool {
    let from = gap.map_or(start, |gap| gap.start);
    ranges.last().is_some_and(|last| last.end == from)
}

// === impl ReplacedEntry ===

impl ReplacedEntry {
    /// Moves a problem's position from the file into the text of the entry, called `draft`, if it
    /// is there.
    pub fn in_entry(&self, problem: &Problem, draft: &str) -> Option<Problem> {
        let at = problem.place.as_ref()?;
        // A text that ends too early is reported at its end.
        let is_inside = at.start >= self.place.start && at.start <= self.place.end;
        let before = self.text.get(..self.place.start).filter(|_| is_inside)?;
        let lines = before.matches('\n').count();
        let place = FilePosition {
            file: draft.to_owned(),
            line: at.line.saturating_sub(lines),
            start: at.start - self.place.start,
            ..at.clone()
        };
        Some(Problem { place: Some(place), ..problem.clone() })
    }
}
