//! Adds and removes our entry in a JSON file, and keeps its comments.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value as Json};

use capstan_config::source::syntax::json_options;
use capstan_config::source::tree::{Node, Value};

use super::{ClientError, OUR_NAME};

const BOM: char = '\u{feff}';

pub(super) fn put(
    text: &str,
    container: &[&str],
    entry: &Map<String, Json>,
) -> Result<String, ClientError> {
    insert(text, container, OUR_NAME, input(&Json::Object(entry.clone())))
}

/// Adds an entry of another file, with its values as they are written there.
pub(super) fn put_back(
    text: &str,
    container: &[&str],
    name: &str,
    entry: &Node,
) -> Result<String, ClientError> {
    insert(text, container, name, written(entry))
}

fn insert(
    text: &str,
    container: &[&str],
    name: &str,
    entry: CstInputValue,
) -> Result<String, ClientError> {
    let root = parse(text)?;
    if let Some(new) = in_one_line(text, &root, container, name, &entry) {
        return Ok(new);
    }
    let mut object = root.object_value_or_create().ok_or(ClientError::Unsafe)?;
    for key in container {
        object = inner(&object, key).ok_or_else(|| super::unexpected(container))?;
    }
    object.append(name, entry);
    let new = finish(text, &root);
    Ok(if text.trim().is_empty() { format!("{}\n", new.trim_end()) } else { new })
}

/// Adds an entry to an object that is written in one line, so that it stays one.
///
/// The parser's own insertion would give every member of the object a line.
fn in_one_line(
    text: &str,
    root: &CstRootNode,
    container: &[&str],
    name: &str,
    entry: &CstInputValue,
) -> Option<String> {
    let mut object = root.object_value()?;
    let mut missing = container;
    while let Some((key, rest)) = missing.split_first()
        && let Some(property) = object.get(key)
    {
        object = property.value()?.as_object()?;
        missing = rest;
    }
    let before = object.to_string();
    let is_one = !before.contains('\n') && !object.properties().is_empty();
    if !is_one || text.matches(&before).count() != 1 {
        return None;
    }
    let mut value = compact(entry);
    let mut member = String::new();
    for key in missing.iter().copied().chain([name]).rev() {
        member = format!("{}: {value}", Json::from(key));
        value = format!("{{{member}}}");
    }
    let body = before.strip_suffix('}')?;
    let members = body.trim_end();
    let end = body.strip_prefix(members)?;
    let comma = if members.ends_with(',') { "" } else { "," };
    Some(text.replacen(&before, &format!("{members}{comma} {member}{end}}}"), 1))
}

/// A value in one line.
fn compact(value: &CstInputValue) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        CstInputValue::Null => "null".to_owned(),
        CstInputValue::Bool(flag) => flag.to_string(),
        CstInputValue::Number(number) => number.clone(),
        CstInputValue::String(text) => Json::from(text.as_str()).to_string(),
        CstInputValue::Array(items) => format!("[{}]", list(items.iter().map(compact).collect())),
        CstInputValue::Object(members) => {
            let member = |(key, value): &(String, CstInputValue)| {
                format!("{}: {}", Json::from(key.as_str()), compact(value))
            };
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
    }
}

pub(super) fn take(text: &str, container: &[&str], name: &str) -> Result<String, ClientError> {
    let root = parse(text)?;
    let object = root.object_value().ok_or(ClientError::Unsafe)?;
    let servers = container.iter().try_fold(object, |object, key| object.object_value(key));
    let entry = servers.and_then(|servers| servers.get(name)).ok_or(ClientError::Unsafe)?;
    entry.remove();
    Ok(finish(text, &root))
}

fn parse(text: &str) -> Result<CstRootNode, ClientError> {
    let plain = text.trim_start_matches(BOM);
    CstRootNode::parse(plain, &json_options()).map_err(|_| ClientError::Unsafe)
}

fn finish(text: &str, root: &CstRootNode) -> String {
    let bom = if text.starts_with(BOM) { "\u{feff}" } else { "" };
    format!("{bom}{root}")
}

/// Returns the object under a key, created if the key is missing or null.
fn inner(object: &CstObject, key: &str) -> Option<CstObject> {
    let nothing = object
        .get(key)
        .and_then(|property| property.value())
        .is_some_and(|value| value.as_null_keyword().is_some());
    if nothing {
        return Some(object.object_value_or_set(key));
    }
    object.object_value_or_create(key)
}

fn input(json: &Json) -> CstInputValue {
    match json {
        Json::Null => CstInputValue::Null,
        Json::Bool(flag) => CstInputValue::Bool(*flag),
        Json::Number(number) => CstInputValue::Number(number.to_string()),
        Json::String(text) => CstInputValue::String(text.clone()),
        Json::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Json::Object(map) => CstInputValue::Object(
            map.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

/// A value as its file has it.
fn written(node: &Node) -> CstInputValue {
    match &node.value {
        Value::Text(text) => CstInputValue::String(text.value.clone()),
        Value::Moment(text) => CstInputValue::String(text.clone()),
        Value::Number(text) => CstInputValue::Number(text.clone()),
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Null => CstInputValue::Null,
        Value::List(nodes) => CstInputValue::Array(nodes.iter().map(written).collect()),
        Value::Table(table) => {
            let pairs = table.entries.iter();
            CstInputValue::Object(
                pairs.map(|(key, entry)| (key.clone(), written(&entry.node))).collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_in_one_line_stays_one_and_all_other_bytes_stay() {
        let entry = serde_json::json!({ "command": "c", "args": ["serve"] });
        let entry = entry.as_object().unwrap();
        let ours = r#""capstan": {"command": "c", "args": ["serve"]}"#;
        for (text, expected) in [
            (
                r#"{"a":1,  "mcpServers":{"x":{"command":"y"} }}"#,
                format!(r#"{{"a":1,  "mcpServers":{{"x":{{"command":"y"}}, {ours} }}}}"#),
            ),
            (r#"{"a":[1,2]}"#, format!(r#"{{"a":[1,2], "mcpServers": {{{ours}}}}}"#)),
            (
                "{\n\t\"mcpServers\": {\"x\": {},},\n}\n",
                format!("{{\n\t\"mcpServers\": {{\"x\": {{}}, {ours}}},\n}}\n"),
            ),
        ] {
            assert_eq!(put(text, &["mcpServers"], entry).unwrap(), expected, "{text}");
        }
    }
}
