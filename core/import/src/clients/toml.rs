//! Adds our entry to a TOML file as lines at its end, and removes it line by line.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Map, Value as Json};
use toml_edit::{Document, Item};

use capstan_config::edit::remove::{collect, collect_table, without_lines};

use super::{ClientError, OUR_NAME};

pub(super) fn put(
    text: &str,
    container: &[&str],
    entry: &Map<String, Json>,
) -> Result<String, ClientError> {
    let (mut new, end) = with_gap(text);
    let key = container.join(".");
    let listed = entry.contains_key("id");
    let header = if listed { format!("[[{key}]]") } else { format!("[{key}.{OUR_NAME}]") };
    new.extend([header.as_str(), end]);
    for (key, json) in entry {
        let value = value(json).ok_or(ClientError::Unsafe)?;
        let _ = write!(new, "{key} = {value}{end}");
    }
    Ok(new)
}

pub(super) fn take(text: &str, container: &[&str], name: &str) -> Result<String, ClientError> {
    Ok(without_lines(text, &spans(text, container, name)?))
}

/// Adds the lines that an entry has in another file.
pub(super) fn put_back(
    text: &str,
    container: &[&str],
    name: &str,
    original: &str,
) -> Result<String, ClientError> {
    let spans = spans(original, container, name)?;
    let (mut new, _) = with_gap(text);
    let mut start = 0;
    for line in original.split_inclusive('\n') {
        let end = start + line.len();
        if spans.iter().any(|span| span.start < end && span.end > start) {
            new.push_str(line);
        }
        start = end;
    }
    Ok(new)
}

/// A text with a blank line at its end, and its line ending.
fn with_gap(text: &str) -> (String, &'static str) {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut new = text.to_owned();
    if !new.is_empty() && !new.ends_with('\n') {
        new.push_str(end);
    }
    if !new.trim().is_empty() {
        new.push_str(end);
    }
    (new, end)
}

/// The spans of an entry.
fn spans(text: &str, container: &[&str], name: &str) -> Result<Vec<Range<usize>>, ClientError> {
    let document = Document::parse(text).map_err(|_| ClientError::Unsafe)?;
    let (last, above) = container.split_last().ok_or(ClientError::Unsafe)?;
    let around =
        above.iter().try_fold(document.as_table(), |table, key| table.get(key)?.as_table());
    let mut spans = Vec::new();
    match around.and_then(|around| around.get(last)) {
        Some(Item::Table(servers)) => {
            if let Some((key, item)) = servers.get_key_value(name) {
                collect(key, item, &mut spans);
            }
        }
        Some(Item::ArrayOfTables(servers)) => {
            let is_it = |id: &Item| id.as_str() == Some(name);
            for server in servers.iter().filter(|server| server.get("id").is_some_and(is_it)) {
                spans.extend(server.span());
                collect_table(server, &mut spans);
            }
        }
        Some(Item::Value(_) | Item::None) | None => {}
    }
    if spans.is_empty() {
        return Err(super::unexpected(container));
    }
    Ok(spans)
}

fn value(json: &Json) -> Option<toml_edit::Value> {
    match json {
        Json::String(text) => Some(text.into()),
        Json::Bool(flag) => Some((*flag).into()),
        Json::Array(items) => {
            Some(items.iter().map(value).collect::<Option<toml_edit::Array>>()?.into())
        }
        Json::Number(number) => number.as_i64().map(Into::into),
        Json::Null | Json::Object(_) => None,
    }
}
