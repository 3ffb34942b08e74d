//! The tools that a file describes for a command-line program.

use serde_json::{Map, Value as JsonValue};

use crate::fields::Fields;
use crate::settings::server::Preset;
use crate::source::problem::Problem;
use crate::source::tree::{Node, Value};

/// How deep a schema may nest.
const MAX_DEPTH: usize = 16;

/// Reads the list of tools, where there is one.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Vec<Preset> {
    let key = fields.key("tools");
    // A table under this key means something else.
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
            let problem = Problem::error(message).help("give each a name of its own");
            fields.report().add(problem, key.clone(), &node.span);
        }
        presets.push(preset);
    }
    presets
}

fn one(mut fields: Fields<'_, '_>) -> Option<Preset> {
    let name = fields.string("name");
    let args = fields.strings("args").unwrap_or_default();
    let description = fields.string("description");
    let schema = fields.entry("input_schema");
    let input_schema = schema.and_then(|entry| entry.node.as_table().map(|_| json(&entry.node, 0)));
    if schema.is_some() && input_schema.is_none() {
        let message = format!("`{}` is no schema of an object", fields.key("input_schema"));
        let help = "write `{ properties = { … } }`";
        fields.problem("input_schema", Problem::error(message).help(help));
    }
    if args.iter().any(|arg| arg.contains('\0')) {
        let message = format!("`{}` contains a NUL character", fields.key("args"));
        let help = "no program can be given one; remove it";
        fields.problem("args", Problem::error(message).help(help));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let name = name.filter(|name| !name.is_empty() && name.chars().all(fits));
    if name.is_none() {
        let message = format!("`{}` has no `name` that a tool can have", fields.path());
        let help = "use letters, digits and `_`, as in `name = \"list_pods\"`";
        fields.problem("name", Problem::error(message).help(help));
    }
    fields.finish();
    Some(Preset { name: name?, args, description, input_schema })
}

/// A value of a file as JSON.
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
