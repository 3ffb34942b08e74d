//! Packages of servers: folders of plugins, and bundles.
//!
//! Both have a manifest with a name and with settings for the user to supply. A setting comes from
//! an environment variable that is named after the package and the setting; the user is not
//! prompted.

pub(crate) mod settings;

use capstan_config::source::syntax::Syntax;
use capstan_config::source::tree::{Node, Table, Value};
use capstan_config::source::{Plugin, PluginPart, SettingKind, UserSetting};

use crate::registry::Need;

/// The keys under which manifests declare settings: bundles, then plugins.
pub(crate) const SETTINGS: [&str; 2] = ["user_config", "userConfig"];

/// Reads a plugin's manifest; returns the plugin and the files with servers that it names.
///
/// Errors in the manifest are reported when it is loaded.
pub fn plugin(root: &str, text: &str) -> (Plugin, Vec<String>) {
    let table = Syntax::Json.read("", text).map(|document| document.table).unwrap_or_default();
    let files = table.get("mcpServers").map(|entry| server_files(&entry.node));
    (package(root, &table, PluginPart::Manifest), files.unwrap_or_default())
}

/// Reads the manifest of a bundle that was unpacked into a folder.
pub fn bundle(root: &str, text: &str) -> Plugin {
    let table = Syntax::Json.read("", text).map(|document| document.table).unwrap_or_default();
    package(root, &table, PluginPart::Bundle)
}

/// Returns the secret settings of a package, with their variables.
pub fn secrets(plugin: &Plugin) -> Vec<Need> {
    let secret = plugin.settings.iter().filter(|setting| setting.sensitive);
    let need = |setting: &UserSetting| Need {
        variable: plugin.variable(&setting.key),
        description: format!("its setting `{}`", setting.key),
        required: setting.required,
    };
    secret.map(need).collect()
}

fn package(root: &str, table: &Table, part: PluginPart) -> Plugin {
    let name = table.get("name").and_then(|entry| entry.node.as_text()).map(str::trim);
    let folder = root.trim_end_matches('/').rsplit('/').next().unwrap_or(root);
    let name = name.filter(|name| !name.is_empty()).unwrap_or(folder).to_owned();
    let declared = SETTINGS.iter().find_map(|key| table.table(key));
    let settings = declared.into_iter().flat_map(|table| &table.entries);
    let settings = settings.filter_map(|(key, entry)| setting(key, &entry.node));
    Plugin { name, root: root.to_owned(), part, settings: settings.collect() }
}

/// Reads the declaration of a setting; `None` if it is not valid.
pub(crate) fn setting(key: &str, node: &Node) -> Option<UserSetting> {
    let table = node.as_table()?;
    let get = |key: &str| table.get(key).map(|entry| &entry.node);
    let flag = |key: &str| get(key).and_then(Node::as_bool).unwrap_or(false);
    let kind = match get("type").and_then(Node::as_text)? {
        "string" | "directory" | "file" => SettingKind::Text,
        "number" => SettingKind::Number,
        "boolean" => SettingKind::Bool,
        _ => return None,
    };
    let bound = |key| get(key).and_then(Node::as_number).map(str::to_owned);
    Some(UserSetting {
        key: key.to_owned(),
        kind,
        required: flag("required"),
        multiple: flag("multiple"),
        sensitive: flag("sensitive"),
        default: get("default").and_then(values),
        range: [bound("min"), bound("max")],
    })
}

/// Returns the error in a value of a setting, if any.
pub(crate) fn complaint(setting: &UserSetting, value: &str) -> Option<String> {
    match setting.kind {
        SettingKind::Text => None,
        SettingKind::Bool => {
            (!["true", "false"].contains(&value)).then(|| "is not true or false".to_owned())
        }
        SettingKind::Number => {
            let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite());
            let Some(value) = number(value) else {
                return Some("is not a number".to_owned());
            };
            let [min, max] = &setting.range;
            let beyond = |bound: &Option<String>, wrong: fn(f64, f64) -> bool| {
                let bound = bound.as_ref()?;
                number(bound).filter(|bound| wrong(value, *bound)).map(|_| bound.clone())
            };
            let below = beyond(min, |value, min| value < min);
            let above = beyond(max, |value, max| value > max);
            let below = below.map(|min| format!("is below {min}"));
            below.or(above.map(|max| format!("is above {max}")))
        }
    }
}

/// True if a path of a manifest stays in the manifest's folder, whatever that folder is.
pub(crate) fn stays_inside(path: &str) -> bool {
    let drive = path.as_bytes().get(1) == Some(&b':');
    let step = |part: &str| part == "..";
    !path.is_empty()
        && !path.starts_with(['/', '\\'])
        && !drive
        && !path.split(['/', '\\']).any(step)
        && !path.contains('\0')
}

/// True if a path names a bundle.
pub(crate) fn is_bundle(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| ["mcpb", "dxt"].contains(&extension))
}

/// The files that the value of `mcpServers` names, without those that must not be read.
fn server_files(node: &Node) -> Vec<String> {
    let nodes = node.as_list().unwrap_or(std::slice::from_ref(node));
    let paths = nodes.iter().filter_map(Node::as_text);
    paths.filter(|path| stays_inside(path) && !is_bundle(path)).map(str::to_owned).collect()
}

/// The values of a default.
fn values(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::Text(text) => Some(vec![text.value.clone()]),
        Value::Number(number) => Some(vec![number.clone()]),
        Value::Bool(value) => Some(vec![value.to_string()]),
        Value::List(nodes) => {
            Some(nodes.iter().filter_map(Node::as_text).map(str::to_owned).collect())
        }
        Value::Moment(_) | Value::Null | Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_package_is_given_the_settings_of_another() {
        let variable = |name: &str, key: &str| {
            bundle("/b", &format!("{{\"name\": \"{name}\"}}")).variable(key)
        };
        assert_eq!(variable("git-hub", "token"), "CAPSTAN_GIT_HUB__TOKEN");
        assert_eq!(variable("git", "hub_token"), "CAPSTAN_GIT__HUB_TOKEN");
        assert_eq!(variable("git__hub", "_token"), "CAPSTAN_GIT_HUB__TOKEN");
        assert_eq!(variable("mcp", "timeout"), "CAPSTAN_MCP__TIMEOUT", "which is not ours");
        assert_eq!(variable("", "k"), "CAPSTAN_B__K", "a package without a name is its folder");
    }

    #[test]
    fn a_manifest_names_only_files_of_its_own_folder() {
        for (value, expected) in [
            ("\"./a.json\"", &["./a.json"][..]),
            ("[\"a.json\", \"b/c.json\"]", &["a.json", "b/c.json"]),
            ("\"../a.json\"", &[]),
            ("\"a/../../b.json\"", &[]),
            ("\"/etc/a.json\"", &[]),
            ("\"C:/a.json\"", &[]),
            ("\"\\\\\\\\host\\\\a.json\"", &[]),
            ("\"a.mcpb\"", &[]),
            ("\"\"", &[]),
            ("{\"a\": {}}", &[]),
            ("1", &[]),
        ] {
            let text = format!("{{\"name\": \"p\", \"mcpServers\": {value}}}");
            assert_eq!(plugin("/p", &text).1, expected, "{value}");
        }
        assert_eq!(plugin("/p/q/", "{").0.name, "q");
    }

    #[test]
    fn values_are_held_against_what_the_manifest_says_of_them() {
        let text = r#"{"user_config": {
            "n": {"type": "number", "min": 1, "max": 2.5},
            "b": {"type": "boolean"}, "s": {"type": "string"}, "d": {"type": "directory"}
        }}"#;
        let package = bundle("/b", text);
        let check = |key: &str, value: &str, expected: Option<&str>| {
            let setting = package.settings.iter().find(|setting| setting.key == key).unwrap();
            assert_eq!(complaint(setting, value).as_deref(), expected, "{key}: {value}");
        };
        check("n", "1", None);
        check("n", "2.5", None);
        check("n", "0.9", Some("is below 1"));
        check("n", "3", Some("is above 2.5"));
        check("n", "NaN", Some("is not a number"));
        check("n", "", Some("is not a number"));
        check("b", "true", None);
        check("b", "yes", Some("is not true or false"));
        check("s", "anything", None);
        check("d", "/x", None);
    }
}
