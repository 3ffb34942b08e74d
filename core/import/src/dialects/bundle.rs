//! Bundles (`.mcpb`): a manifest with one server, unpacked into a folder.

use capstan_config::source::Plugin;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table, Value};

use crate::packages::{settings as package, stays_inside};
use crate::translate::file::Work;
use crate::translate::server::{Keys, One, To};

const KEYS: Keys = &[
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("platform_overrides", To::ByHand),
];

/// The supported versions of the manifest.
const VERSIONS: [&str; 4] = ["0.1", "0.2", "0.3", "0.4"];

const TYPES: [&str; 4] = ["node", "python", "binary", "uv"];

/// The name of the current operating system in manifests.
const PLATFORM: &str = if cfg!(target_os = "macos") {
    "darwin"
} else if cfg!(target_os = "windows") {
    "win32"
} else {
    "linux"
};

pub(super) fn read(work: &mut Work<'_>) {
    let Some(plugin) = &work.file.plugin else {
        let problem =
            Problem::error("the file is not a bundle").help("name the bundle: `FILE.mcpb`");
        work.report.add(problem, "", &(0..0));
        return;
    };
    package::settings(work);
    package::name(work);
    version(work);
    let Some(entry) = work.raw.get("server") else {
        let problem = Problem::error("the manifest has no `server`")
            .help("write `\"server\": { \"type\": \"node\", \"entry_point\": \"…\", … }`");
        work.report.add(problem, "server", &(0..0));
        return;
    };
    let Some(server) = work.table("server") else { return };
    let (path, raw) = match server.table("mcp_config") {
        Some(config) => ("server.mcp_config", config),
        None => ("server", server),
    };
    let mut one = work.begin(&plugin.name, path.to_owned(), &entry.key, raw);
    what(&mut one, server, entry);
    compatible(&mut one, work.raw);
    if server.table("mcp_config").is_some() {
        one.apply(KEYS);
        override_for_platform(&mut one);
    } else {
        without_config(&mut one, server, entry);
    }
    finish(&mut one, plugin, work);
    work.add(one);
}

fn version(work: &mut Work<'_>) {
    let entry = work.raw.get("manifest_version").or(work.raw.get("dxt_version"));
    let known = |node: &Node| node.as_text().is_some_and(|text| VERSIONS.contains(&text));
    if !entry.is_some_and(|entry| known(&entry.node)) {
        let span = entry.map_or(0..0, |entry| entry.node.span.clone());
        let problem = Problem::warning("`manifest_version` is not a known version")
            .help("this version reads 0.1 to 0.4; parts of the manifest may be left out");
        work.report.add(problem, "manifest_version", &span);
    }
}

/// Checks the type and the entry point of the server.
fn what(one: &mut One<'_>, server: &Table, entry: &Entry) {
    let kind = server.get("type");
    if !kind.and_then(|kind| kind.node.as_text()).is_some_and(|kind| TYPES.contains(&kind)) {
        let span = kind.map_or_else(|| entry.key.clone(), |kind| kind.node.span.clone());
        let problem = Problem::error("`server.type` is not a known kind of server")
            .help("write `node`, `python`, `binary` or `uv`");
        one.report.add(problem, "server.type", &span);
    }
    let start = server.get("entry_point");
    if !start.and_then(|start| start.node.as_text()).is_some_and(stays_inside) {
        let span = start.map_or_else(|| entry.key.clone(), |start| start.node.span.clone());
        let problem = Problem::error("`server.entry_point` is not a file of the bundle")
            .help("name the server's main file, as in `\"server/index.js\"`");
        one.report.add(problem, "server.entry_point", &span);
    }
}

/// Refuses a bundle that does not support this system.
fn compatible(one: &mut One<'_>, manifest: &Table) {
    let platforms = manifest.table("compatibility").and_then(|table| table.get("platforms"));
    let Some(entry) = platforms else { return };
    let named = entry.node.as_list().unwrap_or_default();
    if !named.iter().any(|node| node.as_text() == Some(PLATFORM)) {
        let message = format!("`compatibility.platforms` does not name `{PLATFORM}`");
        let problem = Problem::error(message).help("get the bundle for this system");
        one.report.add(problem, "compatibility.platforms", &entry.node.span);
    }
}

/// Applies the manifest's settings for this system over the general ones.
fn override_for_platform(one: &mut One<'_>) {
    let key = "platform_overrides";
    let Some(table) = one.raw.table(key).and_then(|all| all.table(PLATFORM)) else { return };
    let path = join(&join(&one.path, key), PLATFORM);
    for (key, entry) in &table.entries {
        let at = join(&path, key);
        match (key.as_str(), entry.node.as_table()) {
            ("command" | "args", _) => {
                one.out.put(key, Entry { path: Some(at), ..entry.clone() });
            }
            ("env", Some(variables)) => {
                for (name, entry) in &variables.entries {
                    let path = Some(join(&at, name));
                    one.put_in("env", name, Entry { path, ..entry.clone() });
                }
            }
            _ => {
                let problem = Problem::warning(format!("`{at}` is not used"))
                    .help("supported keys are `command`, `args` and `env`");
                one.report.add(problem, at, &entry.key);
            }
        }
    }
}

/// Derives the command of a server without `mcp_config`, which is possible only for type `uv`.
fn without_config(one: &mut One<'_>, server: &Table, entry: &Entry) {
    let text = |key: &str| server.get(key).and_then(|entry| entry.node.as_text());
    let (Some("uv"), Some(start)) = (text("type"), text("entry_point")) else {
        let problem = Problem::error("`server.mcp_config` has no `command`")
            .help("write `\"mcp_config\": { \"command\": \"…\", \"args\": [\"…\"] }`");
        one.report.add(problem, "server.mcp_config", &entry.key);
        return;
    };
    let span = one.span("entry_point");
    let words = ["run", "--directory", "${__dirname}", start];
    let words = words.map(|word| Node::text(word, span.clone())).to_vec();
    one.put_text("command", "entry_point", "uv");
    one.put("args", "entry_point", Node::list(words, span));
}

/// Adds the folder of the bundle, and expands arguments and variables that are only a setting.
fn finish(one: &mut One<'_>, plugin: &Plugin, work: &Work<'_>) {
    // A path of the bundle is relative to its folder, not to Capstan's working directory.
    if let Some(entry) = one.out.entries.get_mut("command")
        && let Value::Text(text) = &mut entry.node.value
        && text.value.contains('/')
        && !text.value.starts_with(['/', '$'])
    {
        text.value = format!("${{__dirname}}/{}", text.value);
    }
    let folder = Node::text("${__dirname}", one.at.clone());
    one.out.put("cwd", Entry::new(one.at.clone(), folder));
    if let Some(entry) = work.raw.get("description").filter(|e| e.node.as_text().is_some()) {
        let path = Some("description".to_owned());
        one.out.put("description", Entry { path, ..entry.clone() });
    }
    let alone = |node: &Node| -> Option<Vec<String>> {
        let key = node.as_text()?.strip_prefix("${user_config.")?.strip_suffix('}')?;
        let setting = plugin.settings.iter().find(|setting| setting.key == key)?;
        let values = package::given(plugin, setting, work.around).ok()?;
        let names = (0..values.len()).map(|at| package::nth(key, at));
        Some(names.map(|name| format!("${{user_config.{name}}}")).collect())
    };
    // Several values become several arguments; optional settings without a value are left out.
    if let Some(entry) = one.out.entries.get_mut("args")
        && let Value::List(nodes) = &mut entry.node.value
    {
        let spread = |node: Node| match alone(&node) {
            Some(values) => {
                values.into_iter().map(|value| Node::text(value, node.span.clone())).collect()
            }
            None => vec![node],
        };
        *nodes = std::mem::take(nodes).into_iter().flat_map(spread).collect();
    }
    if let Some(entry) = one.out.entries.get_mut("env")
        && let Value::Table(variables) = &mut entry.node.value
    {
        variables.entries.retain(|_, entry| alone(&entry.node).is_none_or(|v| !v.is_empty()));
    }
}
