//! The keys of `[servers.NAME.tools.TOOL]`: names, texts and fixed arguments of single tools.

use capstan_model::ToolOverride;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::define::keys;
use super::form::{Form, Table};
use super::server::preset::{self, PresetKeys};
use crate::fields::Fields;
use crate::source::problem::Problem;

keys! {
    /// How one tool is shown and called.
    pub(crate) table OverrideKeys
    keys {
        /// A new name. Rules still match the tool by the name that its server gives it; `deny` and `ask` rules also match the new name.
        name: String as ToolName;
        /// A new title.
        title: String;
        /// A new description.
        description: String;
        /// Values of arguments that the caller leaves out: `{ limit = 20 }`.
        default: Map<String, Value> as Arguments = Map::new();
        /// Fixed values of arguments: `{ team = "core" }`. Callers do not see these parameters and are refused if they set them.
        pin: Map<String, Value> as Arguments = Map::new();
        /// Parameters that callers do not see; callers are refused if they set them.
        hide_parameters: Vec<String> = Vec::new();
        /// Do not offer the tool.
        hidden: bool = false;
    }
}

/// Overrides by tool, or the tools of a command-line program.
#[derive(JsonSchema)]
#[schemars(untagged, title = "table or list")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ServerTools {
    /// Overrides, by the name that the server gives a tool.
    Overrides(IndexMap<String, <OverrideKeys as Table>::Keys>),
    /// The tools of a command-line program.
    Presets(Vec<<PresetKeys as Table>::Keys>),
}

/// The form of a tool's name.
struct ToolName;

/// The form of a table of arguments.
struct Arguments;

/// The form of a server's key `tools` if it is a table.
pub(super) struct Overrides;

/// The overrides of a server, by the tools' own names.
pub type ToolOverrides = IndexMap<String, ToolOverride>;

/// Adds the restrictions of other overrides for the same server.
pub(crate) fn keep_restrictions_of(own: &mut ToolOverrides, others: &ToolOverrides) {
    for (tool, other) in others {
        let settles = other.hidden || !other.pin.is_empty() || !other.hide_parameters.is_empty();
        if !settles && other.name.is_none() {
            continue;
        }
        let own = own.entry(tool.clone()).or_default();
        // A deny rule may refer to the tool by that name.
        own.name = other.name.clone().or_else(|| own.name.take());
        own.hidden |= other.hidden;
        // Only the other overrides may supply the parameters that they hide.
        for name in &other.hide_parameters {
            own.pin.shift_remove(name);
            own.default.shift_remove(name);
            if let Some(value) = other.default.get(name) {
                own.default.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in &other.pin {
            own.default.shift_remove(name);
            own.pin.insert(name.clone(), value.clone());
        }
        own.hide_parameters.extend(other.hide_parameters.iter().cloned());
    }
}

/// Reads `tools` if it is a table; a list describes the tools of a command-line program.
fn read(fields: &mut Fields<'_, '_>) -> ToolOverrides {
    let mut overrides = ToolOverrides::new();
    let Some(entry) = fields.entry("tools") else { return overrides };
    let key = fields.key("tools");
    if entry.node.as_list().is_some() {
        return overrides;
    }
    let Some(tables) = entry.node.as_table() else {
        let message = format!("`{key}` must be a table, not {}", entry.node.value.what());
        let help = "write `[servers.NAME.tools.TOOL]` with the changed keys below it";
        fields.problem("tools", Problem::error(message).help(help));
        return overrides;
    };
    for (tool, entry) in &tables.entries {
        let path = fields.key_in("tools", tool);
        let Some(table) = entry.node.as_table() else {
            let message = format!("`{path}` must be a table, not {}", entry.node.value.what());
            let help = "write `{ name = \"…\" }`, or another of its keys";
            fields.report().add(Problem::error(message).help(help), path, &entry.node.span);
            continue;
        };
        let read = one(Fields::new(table, path.clone(), &entry.node.span, fields.report()));
        let taken = |(_, other): (&String, &ToolOverride)| other.name == read.name;
        if read.name.is_some() && overrides.iter().any(taken) {
            let name = read.name.as_deref().unwrap_or_default();
            let problem = Problem::warning(format!("`{key}` gives two tools the name `{name}`"))
                .help("the first one gets the name; choose another for the second");
            fields.report().add(problem, path, &entry.node.span);
        }
        overrides.insert(tool.clone(), read);
    }
    overrides
}

fn one(mut fields: Fields<'_, '_>) -> ToolOverride {
    let OverrideKeys { name, title, description, default, pin, hide_parameters, hidden } =
        OverrideKeys::read(&mut fields);
    if let Some(both) = default.keys().find(|name| pin.contains_key(*name)) {
        let message = format!("`{}` has `{both}` under both `default` and `pin`", fields.path());
        let help = "keep it under `pin` if callers must not set it";
        fields.problem("pin", Problem::error(message).help(help));
    }
    fields.finish();
    ToolOverride { name, title, description, default, pin, hide_parameters, hidden }
}

// === impl Overrides ===

impl Form for Overrides {
    type Value = ToolOverrides;
    type Schema = ServerTools;

    fn read(fields: &mut Fields<'_, '_>, _: &'static str) -> Option<ToolOverrides> {
        Some(read(fields))
    }

    fn write(_: &ToolOverrides) -> Value {
        Value::Null
    }
}

// === impl ToolName ===

impl Form for ToolName {
    type Value = String;
    type Schema = String;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
        let name = fields.string(key)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            let message = format!("`{}` is not a valid name of a tool", fields.key(key));
            let help = "use letters, digits, `_` and `-`, as in `name = \"list_issues\"`";
            fields.problem(key, Problem::error(message).help(help));
            return None;
        }
        Some(name)
    }

    fn write(value: &String) -> Value {
        Value::from(value.as_str())
    }
}

// === impl Arguments ===

impl Form for Arguments {
    type Value = Map<String, Value>;
    type Schema = Map<String, Value>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Map<String, Value>> {
        let entry = fields.entry(key)?;
        if let Value::Object(arguments) = preset::json(&entry.node, 0) {
            return Some(arguments);
        }
        let message = format!("`{}` must be a table of arguments", fields.key(key));
        let help = format!("write `{key} = {{ limit = 20 }}`");
        fields.problem(key, Problem::error(message).help(help));
        None
    }

    fn write(_: &Map<String, Value>) -> Value {
        Value::Null
    }
}
