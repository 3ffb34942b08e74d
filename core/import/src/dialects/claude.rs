//! Claude Code and Claude Desktop: `mcpServers`, also those of the project in `.claude.json`.

use capstan_config::source::PluginPart;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table};

use crate::packages::settings as package;
use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::server::{Keys, One, To, Unit, number};
use capstan_config::source::reader::SwitchedOff;

const KEYS: Keys = &[
    ("type", To::ByHand),
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("headersHelper", To::Key("headers_helper")),
    ("timeout", To::ByHand),
    ("request_timeout_ms", To::Time(Unit::Milliseconds, &["timeout"])),
    ("alwaysLoad", To::Key("always_load")),
    ("oauth", To::ByHand),
    ("description", To::Key("description")),
    ("disabled", To::Key("disabled")),
    ("enabled", To::Key("enabled")),
    // These are keys of other programs that share the file.
    ("tools", To::ByHand),
    ("disabledTools", To::Tools("hide")),
    ("alwaysAllow", To::Note("to run calls without asking, use `permissions`")),
    ("autoApprove", To::Note("to run calls without asking, use `permissions`")),
];

const LOGIN: Words = &[
    ("clientId", Some("client_id")),
    ("clientSecret", Some("client_secret")),
    ("callbackPort", Some("callback_port")),
    ("scopes", Some("scopes")),
    ("authServerMetadataUrl", Some("metadata_url")),
];

/// Claude itself ignores times below this.
const LEAST_MILLISECONDS: f64 = 1000.0;

pub(super) fn read(work: &mut Work<'_>) {
    let part = work.file.plugin.as_ref().map(|plugin| plugin.part);
    package::settings(work);
    if part == Some(PluginPart::Manifest) {
        package::manifest(work);
    }
    if part != Some(PluginPart::Servers) {
        work.slips(&["mcpServers", "projects"]);
    }
    let project = work.raw.table("projects").and_then(|all| all.table(work.around.project_dir));
    let path = join("projects", work.around.project_dir);
    if let Some(servers) = project.and_then(|project| project.table("mcpServers")) {
        work.servers(&join(&path, "mcpServers"), servers, KEYS, |one| finish(one, project, &path));
    }
    let written = work.raw.get("mcpServers");
    let bare = part == Some(PluginPart::Servers) && written.is_none();
    let elsewhere = part == Some(PluginPart::Manifest)
        && written.is_some_and(|entry| entry.node.as_table().is_none());
    let servers = match (bare, elsewhere) {
        (true, _) => Some(work.raw),
        (false, true) => None,
        (false, false) => work.table("mcpServers"),
    };
    for (name, entry) in servers.into_iter().flat_map(|servers| &servers.entries) {
        // The project's own table takes precedence.
        if work.has(name) {
            continue;
        }
        let at = if bare { join("", name) } else { join("mcpServers", name) };
        if let Some(mut one) = work.one(name, at, entry) {
            one.apply(KEYS);
            finish(&mut one, project, &path);
            root(&mut one);
            work.add(one);
        }
    }
    for table in project.into_iter().chain([work.raw]) {
        let off = table.get("disabledMcpjsonServers").and_then(|entry| entry.node.as_list());
        for node in off.unwrap_or_default() {
            if let Some(name) = node.as_text().map(str::to_owned) {
                let origin = work.file.origin(&node.span);
                work.conventions.switched_off.push(SwitchedOff { name, origin });
            }
        }
    }
}

/// Sets the variable with the plugin's folder for the server process, as Claude does.
fn root(one: &mut One<'_>) {
    let known = one.out.table("env").is_some_and(|env| env.get(package::ROOT).is_some());
    let plugin = one.report.file.plugin.is_some();
    if plugin && one.out.get("command").is_some() && !known {
        let node = Node::text(format!("${{{}}}", package::ROOT), one.at.clone());
        one.put_in("env", package::ROOT, Entry::new(one.at.clone(), node));
    }
}

fn finish(one: &mut One<'_>, project: Option<&Table>, path: &str) {
    let words = [("streamable-http", "http"), ("streamable_http", "http"), ("local", "stdio")];
    one.kind("type", &words);
    one.tools_or_all("tools");
    if one.raw.get("url").is_some()
        && one.raw.get("type").is_none()
        && one.text("command").is_none()
    {
        let message = format!("`{}` has a `url` but no `type`", one.path);
        let help = "write `\"type\": \"http\"`, or `\"sse\"` for the older transport";
        one.warn("url", Problem::error(message).help(help));
    }
    if let Some(entry) = one.raw.get("timeout") {
        timeout(one, entry);
    }
    one.login("oauth", LOGIN);
    let off = project.and_then(|project| project.get("disabledMcpServers"));
    let named = |entry: &&Entry| {
        let names = entry.node.as_list().unwrap_or_default();
        names.iter().any(|node| node.as_text() == Some(one.display.as_str()))
    };
    if let Some(entry) = off.filter(named) {
        one.switch_off(&join(path, "disabledMcpServers"), entry.node.span.clone());
    }
}

fn timeout(one: &mut One<'_>, entry: &Entry) {
    if number(&entry.node).is_some_and(|number| number < LEAST_MILLISECONDS) {
        let message = format!("`{}` is below 1000 milliseconds", join(&one.path, "timeout"));
        let help = "times are in milliseconds; values below 1000 are ignored";
        one.warn("timeout", Problem::warning(message).help(help));
        return;
    }
    one.time("timeout", entry, Unit::Milliseconds, &["timeout"]);
}
