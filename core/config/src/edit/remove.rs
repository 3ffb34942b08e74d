//! Removes a server line by line, so that the comments around it are kept.

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Key, Table};

use super::EditError;
use super::document::{Editing, syntax};

/// Removes a server's entry, with the comments between its lines.
///
/// Comments before and after the entry stay.
pub fn remove_server(text: &str, name: &str) -> Result<String, EditError> {
    let mut editing = Editing::open(text)?;
    let key = editing.name_of(name)?;
    if let Some(Item::Value(servers)) = editing.document.get_mut("servers") {
        if let Some(servers) = servers.as_inline_table_mut() {
            servers.remove(&key);
        }
        return Ok(editing.finish());
    }
    let document = Document::parse(text).map_err(|cause| syntax(text, cause))?;
    let entry = document
        .as_table()
        .get("servers")
        .and_then(Item::as_table)
        .and_then(|servers| servers.get_key_value(&key));
    let mut spans = Vec::new();
    if let Some((key, item)) = entry {
        collect(key, item, &mut spans);
    }
    Ok(without_lines(text, &spans))
}

/// Removes a key of a table for all servers, and the table if nothing else is in it.
///
/// This is the inverse of [`set_key`](super::set_key).
pub fn unset_key(text: &str, table: &str, key: &str) -> Result<String, EditError> {
    let document = Document::parse(text).map_err(|cause| syntax(text, cause))?;
    let mut spans = Vec::new();
    match document.as_table().get_key_value(table) {
        Some((_, Item::Table(inner))) if inner.len() > 1 => {
            if let Some((key, item)) = inner.get_key_value(key) {
                collect(key, item, &mut spans);
            }
        }
        Some((name, item @ Item::Table(inner))) if inner.contains_key(key) => {
            collect(name, item, &mut spans);
        }
        Some((_, Item::Value(_))) => {
            let mut editing = Editing::open(text)?;
            if let Some(inner) = editing.table(table)?.as_inline_table_mut() {
                remove_inline(inner, key);
            }
            return Ok(editing.finish());
        }
        Some((_, Item::Table(_) | Item::ArrayOfTables(_) | Item::None)) | None => {}
    }
    Ok(without_lines(text, &spans))
}

/// Removes a key from an inline table. The blank before the closing brace stays.
fn remove_inline(table: &mut InlineTable, key: &str) {
    let is_last = table.iter().last().is_some_and(|(last, _)| last == key);
    let removed = table.remove(key);
    let suffix = removed.and_then(|value| value.decor().suffix().cloned());
    if let Some(suffix) = suffix.filter(|_| is_last)
        && let Some((_, last)) = table.iter_mut().last()
    {
        last.decor_mut().set_suffix(suffix);
    }
}

/// Collects the spans of an item's keys, values and headers.
pub fn collect(key: &Key, item: &Item, spans: &mut Vec<Range<usize>>) {
    spans.extend(key.span());
    spans.extend(item.span());
    match item {
        Item::Table(table) => collect_table(table, spans),
        Item::ArrayOfTables(tables) => {
            for table in tables {
                spans.extend(table.span());
                collect_table(table, spans);
            }
        }
        Item::Value(_) | Item::None => {}
    }
}

/// Collects the spans of everything in a table.
pub fn collect_table(table: &Table, spans: &mut Vec<Range<usize>>) {
    for (name, _) in table {
        if let Some((key, item)) = table.get_key_value(name) {
            collect(key, item, spans);
        }
    }
}

/// Removes the lines of these spans, the comments between them, and the blank line before them.
///
/// This is the inverse of adding a server.
pub fn without_lines(text: &str, spans: &[Range<usize>]) -> String {
    let mut lines: Vec<(&str, bool)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let gone = spans.iter().any(|span| span.start < end && span.end > start);
        lines.push((line, gone));
        start = end;
    }
    let mut kept = String::new();
    let mut pending: Vec<&str> = Vec::new();
    let mut inside = false;
    for (line, gone) in lines {
        let comment = line.trim().is_empty() || line.trim_start().starts_with('#');
        match (gone, inside) {
            // Comments between two lines of the entry are removed with them.
            (true, true) => pending.clear(),
            (true, false) => {
                drop_blank_line(&mut kept);
                inside = true;
            }
            (false, true) if comment => pending.push(line),
            (false, _) => {
                flush(&mut pending, &mut kept);
                inside = false;
                kept.push_str(line);
            }
        }
    }
    flush(&mut pending, &mut kept);
    kept
}

/// Removes a blank line at the end, if other text precedes it.
fn drop_blank_line(kept: &mut String) {
    let mut ends = kept.rmatch_indices('\n').map(|(at, _)| at + 1).skip(1);
    if let Some(start) = ends.next()
        && kept.get(start..).is_some_and(|line| line.trim().is_empty())
        && !kept.trim().is_empty()
    {
        kept.truncate(start);
    }
}

/// Writes the pending lines after an entry, without leading blank lines at the start of the file.
fn flush(pending: &mut Vec<&str>, kept: &mut String) {
    let blank = pending.iter().take_while(|line| line.trim().is_empty()).count();
    let skipped = if kept.is_empty() { blank } else { 0 };
    for line in pending.drain(..).skip(skipped) {
        kept.push_str(line);
    }
}
