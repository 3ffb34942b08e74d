//! Manifests of plugins, and the settings that manifests of plugins and bundles request.

use std::collections::HashMap;

use capstan_model::Secret;

use capstan_config::source::Surroundings;
use capstan_config::source::expand::forms::Forms;
use capstan_config::source::expand::{Answer, Expander, MissingEnv, join};
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::Node;
use capstan_config::source::{Plugin, PluginPart, UserSetting};

use super::{SETTINGS, complaint, is_bundle, setting, stays_inside};
use crate::translate::file::Work;

/// The variable that holds a plugin's folder, for its servers.
pub(crate) const ROOT: &str = "CLAUDE_PLUGIN_ROOT";

/// The values of a setting; empty if it is optional and not set.
pub(crate) type Given = Vec<String>;

/// Supplies the settings that the package of a file requests, and reports invalid declarations.
pub(crate) fn settings(work: &mut Work<'_>) {
    let Some(plugin) = &work.file.plugin else { return };
    work.conventions.forms = match plugin.part {
        PluginPart::Manifest | PluginPart::Servers => Forms::Plugin,
        PluginPart::Bundle => Forms::Bundle,
    };
    for setting in &plugin.settings {
        let answer = match given(plugin, setting, work.around) {
            Ok(values) => {
                if setting.sensitive {
                    work.conventions.secrets.extend(values.iter().cloned().map(Secret::new));
                }
                for (at, value) in values.iter().enumerate() {
                    let key = nth(&setting.key, at);
                    work.conventions.inputs.insert(key, Answer::Given(value.clone()));
                }
                Answer::Given(values.join(","))
            }
            Err(missing) => missing,
        };
        work.conventions.inputs.insert(setting.key.clone(), answer);
    }
    if plugin.part != PluginPart::Servers {
        declarations(work);
    }
}

/// The name of one of several values of a setting.
pub(crate) fn nth(key: &str, at: usize) -> String {
    format!("{key}.{at}")
}

/// Returns the values of a setting: from the user's variable, else the manifest's default.
pub(crate) fn given(
    plugin: &Plugin,
    setting: &UserSetting,
    around: Surroundings<'_>,
) -> Result<Given, Answer> {
    let (variable, key) = (plugin.variable(&setting.key), &setting.key);
    let said = (around.variable)(&variable).filter(|value| !value.is_empty());
    let help = format!("set the environment variable `{variable}`");
    let missing = |why: &str| {
        let needs = format!("the setting `{key}` of `{}`, but {why}", plugin.name);
        Err(Answer::Missing { needs, help: help.clone() })
    };
    let values = match (said, &setting.default) {
        (Some(value), _) if setting.multiple => value.lines().map(str::to_owned).collect(),
        (Some(value), _) => vec![value],
        (None, Some(default)) => {
            let inputs = HashMap::new();
            let (forms, missing) = (Forms::Bundle, MissingEnv::Error);
            let plugin = Some(plugin);
            let expander = Expander { around, missing, forms, inputs: &inputs, plugin };
            default.iter().filter_map(|value| expander.text(value)).collect()
        }
        (None, None) => Vec::new(),
    };
    if values.is_empty() && setting.required {
        return missing(&format!("`{variable}` is not set"));
    }
    // The value may be a secret, so the message does not repeat it.
    match values.iter().find_map(|value| complaint(setting, value)) {
        Some(complaint) => missing(&format!("the value of `{variable}` {complaint}")),
        None => Ok(values),
    }
}

/// Reports settings with an invalid declaration.
fn declarations(work: &mut Work<'_>) {
    let Some(key) = SETTINGS.into_iter().find(|key| work.raw.get(key).is_some()) else { return };
    let Some(table) = work.table(key) else { return };
    for (name, entry) in &table.entries {
        let path = join(key, name);
        if setting(name, &entry.node).is_none() {
            let message = format!("`{path}` has no known type");
            let help = "write `\"type\"`: `string`, `number`, `boolean`, `directory` or `file`";
            work.report.add(Problem::error(message).help(help), path, &entry.key);
        }
    }
}

/// Checks the keys that only the manifest of a plugin has.
///
/// Its servers are read as in any other file.
pub(crate) fn manifest(work: &mut Work<'_>) {
    name(work);
    let Some(entry) = work.raw.get("mcpServers") else { return };
    if entry.node.as_table().is_some() {
        return;
    }
    for node in entry.node.as_list().unwrap_or(std::slice::from_ref(&entry.node)) {
        let problem = match node.as_text() {
            Some(path) => file_problem(path),
            None => Some(
                Problem::error(format!("`mcpServers` is {}", node.value.what()))
                    .help("write the servers themselves, or `\"./servers.json\"`"),
            ),
        };
        if let Some(problem) = problem {
            work.report.add(problem, "mcpServers", &node.span);
        }
    }
}

/// Reports a manifest without a name.
pub(crate) fn name(work: &mut Work<'_>) {
    let entry = work.raw.get("name");
    let named = |node: &Node| node.as_text().is_some_and(|name| !name.trim().is_empty());
    if !entry.is_some_and(|entry| named(&entry.node)) {
        let span = entry.map_or(0..0, |entry| entry.node.span.clone());
        let problem = Problem::error("the manifest has no `name`").help("write `\"name\": \"…\"`");
        work.report.add(problem, "name", &span);
    }
}

fn file_problem(path: &str) -> Option<Problem> {
    if !stays_inside(path) {
        let message = format!("`mcpServers` names `{path}`, which is not in the plugin's folder");
        return Some(
            Problem::error(message)
                .help("name a file in the plugin's folder, as in `./servers.json`"),
        );
    }
    let message = format!("`mcpServers` names the bundle `{path}`, which must be read by itself");
    is_bundle(path)
        .then(|| Problem::error(message).help("name the bundle itself: `--config FILE.mcpb`"))
}
