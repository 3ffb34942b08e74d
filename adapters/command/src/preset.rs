//! Tools that the configuration describes, in place of discovered ones.

use serde_json::{Map, Value as JsonValue, json};

use crate::allowed::Allowed;
use crate::argv::{Argv, Slot, SlotKind, Times};
use crate::help::{Kind, Value, ValueType};
use crate::settings::{CommandSettings, Preset};
use crate::tool::{Hint, Tool, define};

/// The property for the values after the flags.
const REST: &str = "args";

/// Creates a tool from the configuration.
///
/// Its properties become flags, `args` the positional arguments.
///
/// # Errors
/// If it runs a subcommand that may not be used.
pub(crate) fn preset(settings: &CommandSettings, entry: &Preset) -> Result<Tool, String> {
    let path: Vec<String> =
        entry.args.iter().take_while(|word| !word.starts_with('-')).cloned().collect();
    if !Allowed::new(settings.only.as_deref()).runs(&path) {
        let words = entry.args.join(" ");
        return Err(format!(
            "the preset `{}` runs `{words}`, which `cli_only` does not list",
            entry.name
        ));
    }
    let empty = Map::new();
    let schema = entry.input_schema.as_ref().and_then(JsonValue::as_object).unwrap_or(&empty);
    let properties = schema.get("properties").and_then(JsonValue::as_object).unwrap_or(&empty);
    let required = |key: &str| {
        let listed = schema.get("required").and_then(JsonValue::as_array);
        listed.is_some_and(|listed| listed.iter().any(|name| name == key))
    };
    // The positional arguments come last.
    let (rest, flags): (Vec<_>, Vec<_>) = properties.iter().partition(|(key, _)| *key == REST);
    let slots = flags.into_iter().chain(rest).map(|(key, property)| {
        let required = required(key);
        Slot { key: key.clone(), required, place: place(key, property) }
    });
    let argv = Argv {
        fixed: settings.args.iter().chain(&entry.args).cloned().collect(),
        slots: slots.collect(),
        separator: None,
        response_files: true,
    };
    let mut input = JsonValue::Object(schema.clone());
    if let JsonValue::Object(members) = &mut input {
        members.insert("type".to_owned(), json!("object"));
        members.insert("additionalProperties".to_owned(), json!(false));
    }
    let runs = format!("{} {}", settings.binary(), entry.args.join(" "));
    let description =
        entry.description.clone().unwrap_or_else(|| format!("Runs `{}`.", runs.trim()));
    let definition = define(&entry.name, &description, &input, Hint::None);
    Ok(Tool { name: entry.name.clone(), definition, argv })
}

fn place(key: &str, property: &JsonValue) -> SlotKind {
    let word = |property: &JsonValue| {
        property.get("type").and_then(JsonValue::as_str).unwrap_or("string").to_owned()
    };
    let repeated = word(property) == "array";
    if key == REST {
        let times = if repeated { Times::Many } else { Times::One };
        return SlotKind::Positional { index: 0, times };
    }
    let item = property.get("items").filter(|_| repeated).unwrap_or(property);
    let value_type = match word(item).as_str() {
        "boolean" => None,
        "integer" => Some(ValueType::Integer),
        "number" => Some(ValueType::Number),
        _ => Some(ValueType::Text),
    };
    let choices = item.get("enum").and_then(JsonValue::as_array).into_iter().flatten();
    let choices = choices.filter_map(|choice| choice.as_str().map(str::to_owned)).collect();
    let kind = |value_type| Kind { value_type, choices, joined: true, ..Kind::default() };
    let value = value_type.map_or(Value::None, |value_type| Value::Required(kind(value_type)));
    let name = match key.chars().count() {
        1 => format!("-{key}"),
        _ => format!("--{}", key.replace('_', "-")),
    };
    let joined = name.starts_with("--");
    SlotKind::Flag { name, negation: None, value, repeatable: repeated, joined }
}
