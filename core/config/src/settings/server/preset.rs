//! Reads the tools that a file defines for a command-line program.

use serde_json::{Map, Value as JsonValue};

use super::Preset;
use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::Form;
use crate::source::problem::Problem;
use crate::source::tree::{Node, Value};

keys! {
    /// A tool of a command-line program.
    pub(crate) table PresetKeys
    keys {
        /// The name of the tool.
        name: String;
        /// Arguments of the program, after the server's `args`.
        args: Vec<String> = Vec::new();
        /// The description that models and users see.
        description: String;
        /// The JSON schema of its arguments, an object. Each property becomes a flag; the property `args` holds the words after the flags.
        input_schema: JsonValue as ObjectSchema;
    }
}

/// The form of a JSON schema of an object.
struct ObjectSchema;

/// The deepest nesting of a schema; deeper values become null.
const MAX_DEPTH: usize = 16;

/// Reads the list of tools, if there is one.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Vec<Preset> {
    let key = fields.key("tools");
    // A table under this key has another meaning.
    let Some(nodes) = fields.peek("tools").and_then(|entry| entry.node.as_list()) else {
        return Vec::new();
    };
    fields.entry("tools");
    let mut presets: Vec<Preset> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let path = format!("{key}[{index}]");
        let Some(table) = node.as_table() else {
            let message = format!("`{path}` must be a table, not {}", node.value.what());
            let help = "write `{ name = \"…\", args = [\"…\"] }`";
            fields.report().add(Problem::error(message).help(help), key.clone(), &node.span);
            continue;
        };
        let preset = one(Fields::new(table, path, &node.span, fields.report()));
        let Some(preset) = preset else { continue };
        if presets.iter().any(|known| known.name == preset.name) {
            let message = format!("`{key}` has two tools called `{}`", preset.name);
            let problem = Problem::error(message).help("give each tool its own name");
            fields.report().add(problem, key.clone(), &node.span);
        }
        presets.push(preset);
    }
    presets
}

fn one(mut fields: Fields<'_, '_>) -> Option<Preset> {
    let PresetKeys { name, args, description, input_schema } = PresetKeys::read(&mut fields);
    if args.iter().any(|arg| arg.contains('\0')) {
        let message = format!("`{}` contains a NUL character", fields.key("args"));
        let help = "arguments of programs cannot contain it; remove it";
        fields.problem("args", Problem::error(message).help(help));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let name = name.filter(|name| !name.is_empty() && name.chars().all(fits));
    if name.is_none() {
        let message = format!("`{}` has no valid `name`", fields.path());
        let help = "use letters, digits and `_`, as in `name = \"list_pods\"`";
        fields.problem("name", Problem::error(message).help(help));
    }
    fields.finish();
    Some(Preset { name: name?, args, description, input_schema })
}

/// Converts a value of a file to JSON.
pub(crate) fn json(node: &Node, depth: usize) -> JsonValue {
    if depth > MAX_DEPTH {
        return JsonValue::Null;
    }
    match &node.value {
        Value::Text(text) => JsonValue::from(text.value.as_str()),
        Value::Number(number) => {
            serde_json::from_str(number).unwrap_or_else(|_| JsonValue::from(number.as_str()))
        }
        Value::Bool(value) => JsonValue::Bool(*value),
        Value::Moment(moment) => JsonValue::from(moment.as_str()),
        Value::Null => JsonValue::Null,
        Value::List(nodes) => nodes.iter().map(|node| json(node, depth + 1)).collect(),
        Value::Table(table) => {
            let members = table.entries.iter();
            let members = members.map(|(key, entry)| (key.clone(), json(&entry.node, depth + 1)));
            JsonValue::Object(members.collect::<Map<_, _>>())
        }
    }
}

// === impl ObjectSchema ===

impl Form for ObjectSchema {
    type Value = JsonValue;
    type Schema = Map<String, JsonValue>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<JsonValue> {
        let entry = fields.entry(key)?;
        if entry.node.as_table().is_none() {
            let message = format!("`{}` is not the schema of an object", fields.key(key));
            let help = "write `{ properties = { … } }`";
            fields.problem(key, Problem::error(message).help(help));
            return None;
        }
        Some(json(&entry.node, 0))
    }

    fn write(value: &JsonValue) -> JsonValue {
        value.clone()
    }
}
