//! The tables that change how single tools look and what they are called with.

use serde_json::{Map, Value};

use super::preset;
use crate::fields::Fields;
use crate::settings::overrides::{ToolOverride, ToolOverrides};
use crate::source::problem::Problem;

/// Reads `tools` where it is a table; a list describes the tools of a command-line program.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> ToolOverrides {
    let mut overrides = ToolOverrides::new();
    let Some(entry) = fields.entry("tools") else { return overrides };
    let key = fields.key("tools");
    if entry.node.as_list().is_some() {
        return overrides;
    }
    let Some(tables) = entry.node.as_table() else {
        let message = format!("`{key}` must be a table, not {}", entry.node.value.what());
        let help = "write `[servers.NAME.tools.TOOL]` and under it what is to change";
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
            let problem = Problem::warning(format!("`{key}` calls two tools `{name}`"))
                .help("the first one gets the name; choose another for the second");
            fields.report().add(problem, path, &entry.node.span);
        }
        overrides.insert(tool.clone(), read);
    }
    overrides
}

fn one(mut fields: Fields<'_, '_>) -> ToolOverride {
    let read = ToolOverride {
        name: name(&mut fields),
        title: fields.string("title"),
        description: fields.string("description"),
        default: arguments(&mut fields, "default"),
        pin: arguments(&mut fields, "pin"),
        hide_parameters: fields.strings("hide_parameters").unwrap_or_default(),
        hidden: fields.flag("hidden").unwrap_or(false),
    };
    if let Some(both) = read.default.keys().find(|name| read.pin.contains_key(*name)) {
        let message = format!("`{}` has `{both}` under both `default` and `pin`", fields.path());
        let help = "keep it under `pin` if nobody is to choose it";
        fields.problem("pin", Problem::error(message).help(help));
    }
    fields.finish();
    read
}

fn name(fields: &mut Fields<'_, '_>) -> Option<String> {
    let name = fields.string("name")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        let message = format!("`{}` is no name that a tool can have", fields.key("name"));
        let help = "use letters, digits, `_` and `-`, as in `name = \"list_issues\"`";
        fields.problem("name", Problem::error(message).help(help));
        return None;
    }
    Some(name)
}

fn arguments(fields: &mut Fields<'_, '_>, key: &'static str) -> Map<String, Value> {
    let Some(entry) = fields.entry(key) else { return Map::new() };
    match preset::json(&entry.node, 0) {
        Value::Object(arguments) => arguments,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let message = format!("`{}` must be a table of arguments", fields.key(key));
            let help = format!("write `{key} = {{ limit = 20 }}`");
            fields.problem(key, Problem::error(message).help(help));
            Map::new()
        }
    }
}
