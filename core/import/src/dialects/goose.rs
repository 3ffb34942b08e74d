//! goose: `extensions` of its `config.yaml`.

use capstan_config::source::expand::forms::Forms;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Text, Value};

use crate::translate::file::Work;
use crate::translate::server::{Keys, One, To, Unit};

const KEYS: Keys = &[
    ("type", To::ByHand),
    ("name", To::Nothing),
    ("display_name", To::ByHand),
    ("description", To::Key("description")),
    ("cmd", To::Key("command")),
    ("args", To::Key("args")),
    ("envs", To::Key("env")),
    ("env_keys", To::ByHand),
    ("cwd", To::Key("cwd")),
    ("uri", To::Key("url")),
    ("headers", To::Key("headers")),
    ("timeout", To::Time(Unit::Seconds, &["timeout", "startup_timeout"])),
    ("enabled", To::Key("enabled")),
    ("available_tools", To::ByHand),
    ("bundled", To::Nothing),
];

/// Extensions that are part of goose itself.
const INSIDE: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Spaced;
    work.slips(&["extensions"]);
    mode(work);
    let Some(extensions) = work.table("extensions") else { return };
    for (id, entry) in &extensions.entries {
        let path = join("extensions", id);
        let table = entry.node.as_table();
        let text = |key| table.and_then(|table| table.get(key)?.node.as_text());
        if let Some(kind) = text("type").filter(|kind| INSIDE.contains(kind)) {
            work.conventions.built_in.push((id.clone(), format!("`{kind}` runs inside goose")));
            inside(work, path, kind, entry);
            continue;
        }
        let name = text("name").filter(|name| !name.trim().is_empty()).unwrap_or(id);
        if let Some(mut one) = work.one(name, path, entry) {
            one.apply(KEYS);
            finish(&mut one);
            work.add(one);
        }
    }
}

/// Translates goose's mode, which decides when it asks.
fn mode(work: &mut Work<'_>) {
    let Some(entry) = work.raw.get("GOOSE_MODE") else { return };
    let ours = match entry.node.as_text() {
        Some("approve") => "ask",
        Some("smart_approve") => "ask-writes",
        Some("chat") => "deny",
        Some("auto") => "allow",
        Some(_) | None => {
            let problem = Problem::error("`GOOSE_MODE` is not a mode of goose")
                .help("use `approve`, `smart_approve`, `chat` or `auto`");
            work.report.add(problem, "GOOSE_MODE", &entry.node.span);
            return;
        }
    };
    let mut entry = entry.clone();
    entry.node = Node::text(ours, entry.node.span.clone());
    work.put("permissions", "default", "GOOSE_MODE".to_owned(), &entry);
}

/// Warns about an enabled extension that only goose can run.
fn inside(work: &mut Work<'_>, path: String, kind: &str, entry: &Entry) {
    let enabled = entry.node.as_table().and_then(|table| table.get("enabled"));
    if enabled.and_then(|entry| entry.node.as_bool()) == Some(true) {
        let problem = Problem::warning(format!("`{path}` is not used: `{kind}` runs inside goose"))
            .help("look for an MCP server that does the same");
        work.report.add(problem, path, &entry.key);
    }
}

fn finish(one: &mut One<'_>) {
    one.kind("type", &[("streamable_http", "http")]);
    if one.raw.get("description").is_none()
        && let Some(name) = one.raw.get("display_name")
    {
        one.put("description", "display_name", name.node.clone());
    }
    if let Some(entry) = one.raw.get("available_tools")
        && entry.node.as_list().is_none_or(|list| !list.is_empty())
    {
        one.tools("expose", "available_tools", entry);
    }
    if one.raw.get("uri").is_some() && one.raw.get("cmd").is_none() {
        // In goose these variables only fill in headers; here headers use the environment.
        if one.out.table("env").is_some_and(|env| env.entries.is_empty()) {
            one.out.entries.shift_remove("env");
        }
        one.drop_keys(&["env"], "uri");
    } else {
        keys(one);
    }
}

/// Translates variables whose values are in goose's keyring; here they come from the environment.
fn keys(one: &mut One<'_>) {
    let Some(entry) = one.raw.get("env_keys") else { return };
    let path = join(&one.path, "env_keys");
    for node in entry.node.as_list().unwrap_or_default() {
        let Some(name) = node.as_text() else {
            let problem = Problem::error(format!("`{path}` must be a list of strings"))
                .help("name variables of the environment");
            one.report.add(problem, path.clone(), &node.span);
            continue;
        };
        let text = Text { ours: true, ..Text::plain(format!("${{{name}}}")) };
        let value = Node { value: Value::Text(text), span: node.span.clone() };
        let entry = Entry { path: Some(path.clone()), ..Entry::new(node.span.clone(), value) };
        if one.out.table("env").is_none_or(|env| env.get(name).is_none()) {
            one.put_in("env", name, entry);
        }
    }
}
