//! `config show`: every value of the merged configuration with its origin, secrets masked.

use capstan_model::secret::MASK;
use serde::Serialize;

use crate::merge::Loaded;
use crate::redact::names::{DOORS, has_chosen_names, is_known, is_plain_map};
use crate::settings::server::Server;
use crate::source::SourceFile;
use crate::source::expand::join;
use crate::source::tree::{Node, Table, Value};
use capstan_model::secret::is_secret_name;
use capstan_safety::mask::{is_ordinary, mask_arguments, mask_text, names_variable};

/// The origin of a value that no file and no variable sets.
pub(crate) const DEFAULT: &str = "default";

/// The origin of a value that an environment variable sets.
pub(crate) const ENVIRONMENT: &str = "environment";

/// One value of the merged configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Its dotted key.
    pub key: String,
    /// The value in the syntax of a file; secrets are masked.
    pub value: String,
    /// `file:line`, `environment`, `default`, or `default of DIALECT (file)`.
    pub origin: String,
}

/// Returns every value of a loaded configuration.
pub fn show(loaded: &Loaded) -> Vec<Shown> {
    loaded.shown.clone()
}

/// The values of a server: those of its entry, and the defaults if the entry is valid.
pub(crate) fn server(
    node: &Node,
    key: &str,
    file: &SourceFile,
    server: Option<&Server>,
) -> Vec<Shown> {
    let Some(table) = node.as_table() else { return Vec::new() };
    let mut shown = Vec::new();
    leaves(table, "", key, file, &mut shown);
    let Some(server) = server else { return shown };
    let defaults = [
        (["type", "transport"], text(server.kind.as_str())),
        (["enabled", "disabled"], server.enabled.to_string()),
        (["required"; 2], server.required.to_string()),
        (["always_load"; 2], server.always_load.to_string()),
        (["trust"; 2], text("untrusted")),
        (["protocol"; 2], text(server.protocol.as_str())),
    ];
    for (names, value) in defaults {
        if names.iter().all(|name| table.get(name).is_none()) {
            let [name, _] = names;
            shown.push(Shown { key: join(key, name), value, origin: DEFAULT.to_owned() });
        }
    }
    shown
}

/// A string in the syntax of a file.
pub(crate) fn text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// A value in the syntax of a file.
pub(crate) fn json(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), text)
}

/// A list of strings in the syntax of a file.
fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(text).collect();
    format!("[{}]", items.join(", "))
}

/// Adds the values of the table at `path`, which is under the key `owner`.
fn leaves(table: &Table, owner: &str, path: &str, file: &SourceFile, shown: &mut Vec<Shown>) {
    for (name, entry) in &table.entries {
        let key = join(path, name);
        let origin = file.origin(&entry.key).to_string();
        let is_door = DOORS.contains(&name.as_str());
        match entry.node.as_table() {
            Some(nested) if is_door => {
                shown.extend(nested.entries.iter().map(|(name, entry)| Shown {
                    key: join(&key, entry.written.as_ref().unwrap_or(name)),
                    value: door(name, &entry.node),
                    origin: file.origin(&entry.key).to_string(),
                }));
            }
            Some(nested) if has_chosen_names(owner) => leaves(nested, "", &key, file, shown),
            Some(nested) if is_known(name) => leaves(nested, name, &key, file, shown),
            None if is_plain_map(owner) => {
                shown.push(Shown { key, value: leaf(owner, &entry.node), origin });
            }
            // A key that is misspelt, or a value of the wrong type, may be a secret.
            Some(_) => shown.push(Shown { key, value: text(MASK), origin }),
            None if is_door => shown.push(Shown { key, value: text(MASK), origin }),
            None => shown.push(Shown { key, value: leaf(name, &entry.node), origin }),
        }
    }
}

/// The value of an environment variable or a header, which may be a secret whatever its name.
///
/// A value that is evidently none is shown, and so is one that only names a variable.
fn door(name: &str, node: &Node) -> String {
    match &node.value {
        Value::Text(value) => {
            let written = value.shown();
            let bare = written.strip_prefix("Bearer ").unwrap_or(written);
            let is_literal = value.written.is_none();
            let is_shown = names_variable(bare) || (is_literal && is_ordinary(name, written));
            text(if is_shown { written } else { MASK })
        }
        Value::Number(number) if is_ordinary(name, number) => number.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(_) | Value::Moment(_) | Value::Null | Value::List(_) | Value::Table(_) => {
            text(MASK)
        }
    }
}

/// The value of a key, masked unless the key is known to hold no secret.
pub(crate) fn leaf(name: &str, node: &Node) -> String {
    let is_shown = is_known(name) && !is_secret_name(name) || node.as_bool().is_some();
    if is_shown { value_of(name, node) } else { text(MASK) }
}

fn value_of(name: &str, node: &Node) -> String {
    match &node.value {
        Value::Text(value) => text(&mask_text(value.shown())),
        Value::Number(written) | Value::Moment(written) => written.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Null => "null".to_owned(),
        Value::List(nodes) if name == "args" => {
            let shown = |node: &'_ Node| match &node.value {
                Value::Text(text) => Some(text.shown().to_owned()),
                Value::Number(_)
                | Value::Bool(_)
                | Value::Moment(_)
                | Value::Null
                | Value::List(_)
                | Value::Table(_) => None,
            };
            let words: Vec<String> = nodes.iter().filter_map(shown).collect();
            let masked = mask_arguments(words.iter().map(String::as_str));
            list(masked.iter().map(String::as_str))
        }
        Value::List(nodes) => {
            let items: Vec<String> = nodes.iter().map(|node| value_of(name, node)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let entries = table.entries.iter();
            let items: Vec<String> = entries
                .map(|(name, entry)| format!("{} = {}", join("", name), leaf(name, &entry.node)))
                .collect();
            format!("{{ {} }}", items.join(", "))
        }
    }
}
