//! Adds and removes our entry in a YAML file, as lines of a block.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use capstan_config::source::tree::{Entry, Node, Table, Value};

use super::{ClientError, OUR_NAME};

/// The indentation of an entry if the file has no other entry to copy it from.
const INDENT: usize = 2;

pub(super) fn put(
    text: &str,
    file: &Table,
    container: &[&str],
    entry: &Map<String, Json>,
) -> Result<String, ClientError> {
    let [key] = container else { return Err(ClientError::Unsafe) };
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let first = file.get(key).and_then(|servers| servers.node.as_table()?.entries.values().next());
    let indent = first.map_or(INDENT, |first| column(text, first.key.start));
    insert(text, file, key, &block(entry, indent, end))
}

/// Adds the lines that an entry has in another file.
pub(super) fn put_back(
    text: &str,
    file: &Table,
    container: &[&str],
    name: &str,
    original: (&str, &Table),
) -> Result<String, ClientError> {
    let [key] = container else { return Err(ClientError::Unsafe) };
    let (from, table) = original;
    let entry = table.table(key).and_then(|servers| servers.get(name));
    let lines = lines_of(from, entry.ok_or(ClientError::Unsafe)?);
    insert(text, file, key, from.get(lines).ok_or(ClientError::Unsafe)?)
}

/// Adds the lines of an entry before the other entries.
fn insert(text: &str, file: &Table, key: &str, block: &str) -> Result<String, ClientError> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let servers = file.get(key);
    let first = servers.and_then(|servers| servers.node.as_table()?.entries.values().next());
    // A key without a value is missing from the tree.
    let at = servers.map(|servers| servers.key.start).or_else(|| line_with(text, key));
    let Some(at) = at else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        return Ok(format!("{text}{gap}{key}:{end}{block}"));
    };
    let line = line_around(text, at);
    let (head, rest) = text.split_at_checked(line.end).ok_or(ClientError::Unsafe)?;
    let head = match head.strip_suffix('\n') {
        Some(_) => head.to_owned(),
        None => format!("{head}{end}"),
    };
    let head = match servers.filter(|_| first.is_none()) {
        Some(servers) => without_braces(&head, servers.node.span.clone()),
        None => head,
    };
    Ok(format!("{head}{block}{rest}"))
}

pub(super) fn take(
    text: &str,
    file: &Table,
    container: &[&str],
    name: &str,
) -> Result<String, ClientError> {
    let [key] = container else { return Err(ClientError::Unsafe) };
    let servers = file.get(key).ok_or(ClientError::Unsafe)?;
    let table = servers.node.as_table().ok_or(ClientError::Unsafe)?;
    let Range { start, end } = lines_of(text, table.get(name).ok_or(ClientError::Unsafe)?);
    let (head, rest) = text.split_at_checked(start).ok_or(ClientError::Unsafe)?;
    let rest = rest.get(end - start..).ok_or(ClientError::Unsafe)?;
    if table.entries.len() > 1 {
        return Ok(format!("{head}{rest}"));
    }
    // An empty table must be written as `{}`, or its value would be null.
    let line = line_around(text, servers.key.start);
    let (before, written) = head.split_at_checked(line.start).ok_or(ClientError::Unsafe)?;
    let written = written.replacen(&format!("{key}:"), &format!("{key}: {{}}"), 1);
    Ok(format!("{before}{written}{rest}"))
}

/// Removes the braces of an empty table, so that lines can follow.
fn without_braces(head: &str, braces: Range<usize>) -> String {
    match (head.get(..braces.start), head.get(braces.end..)) {
        (Some(before), Some(after)) => format!("{}{after}", before.trim_end()),
        (_, _) => head.to_owned(),
    }
}

fn block(entry: &Map<String, Json>, indent: usize, end: &str) -> String {
    let (outer, inner) = (" ".repeat(indent), " ".repeat(indent * 2));
    let mut lines = format!("{outer}{OUR_NAME}:{end}");
    for (key, value) in entry {
        // JSON on one line is valid YAML with the same meaning.
        let _ = write!(lines, "{inner}{key}: {value}{end}");
    }
    lines
}

/// The range of an entry's lines.
fn lines_of(text: &str, entry: &Entry) -> Range<usize> {
    line_around(text, entry.key.start).start..line_around(text, last_byte(entry)).end
}

/// A byte in the last line of an entry.
fn last_byte(entry: &Entry) -> usize {
    fn last(node: &Node) -> usize {
        match &node.value {
            Value::Table(table) => {
                let inner = table.entries.values().map(last_byte).max();
                inner.unwrap_or(node.span.start)
            }
            Value::List(nodes) => nodes.iter().map(last).max().unwrap_or(node.span.start),
            Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Moment(_) | Value::Null => {
                node.span.end.saturating_sub(1).max(node.span.start)
            }
        }
    }
    last(&entry.node).max(entry.key.start)
}

/// The range of the line around a byte, with its line ending.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let at = text.floor_char_boundary(at);
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = after.find('\n').map_or(text.len(), |newline| at + newline + 1);
    start..end
}

/// The position of an unindented key without a value.
fn line_with(text: &str, key: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn column(text: &str, at: usize) -> usize {
    at.saturating_sub(line_around(text, at).start)
}
