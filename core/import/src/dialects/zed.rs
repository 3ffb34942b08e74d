//! Zed: `context_servers` and the permissions of its agent in `settings.json`.

use capstan_config::source::expand::forms::Forms;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table};

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::server::{Keys, One, To, Unit, exactly};
use capstan_config::source::reader::AutoAllow;

const KEYS: Keys = &[
    ("source", To::ByHand),
    ("enabled", To::Key("enabled")),
    ("command", To::ByHand),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("timeout", To::Time(Unit::Seconds, &["timeout"])),
    ("oauth", To::ByHand),
    ("settings", To::Note("it configures an extension of Zed")),
    ("remote", To::Note("servers start on this machine")),
];

const LOGIN: Words = &[
    ("client_id", Some("client_id")),
    ("client_secret", Some("client_secret")),
    ("callback_port", Some("callback_port")),
    ("redirect_uri", Some("redirect_uri")),
    ("scopes", Some("scopes")),
];

/// Zed's words for verdicts, and the native lists for them.
const VERDICTS: [(&str, &str); 3] = [("allow", "allow"), ("deny", "deny"), ("confirm", "ask")];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Nothing;
    work.slips(&["context_servers", "context_server_timeout", "agent"]);
    let timeout = work.raw.get("context_server_timeout");
    let rules = work.raw.table("agent").and_then(|agent| agent.table("tool_permissions"));
    let tools = rules.and_then(|rules| rules.table("tools"));
    if let Some(entry) = rules.and_then(|rules| rules.get("default")) {
        default(work, entry);
    }
    let Some(servers) = work.table("context_servers") else { return };
    let mut auto_allows = Vec::new();
    for (name, entry) in &servers.entries {
        let path = join("context_servers", name);
        let table = entry.node.as_table();
        let runs = |key| table.is_some_and(|table| table.get(key).is_some());
        if table.is_some() && !runs("command") && !runs("url") {
            work.conventions
                .built_in
                .push((name.clone(), "an extension of Zed runs it".to_owned()));
            extension(work, path, entry);
            continue;
        }
        if let Some(mut one) = work.one(name, path, entry) {
            one.apply(KEYS);
            finish(&mut one, timeout);
            for (id, entry) in tools.into_iter().flat_map(|tools| &tools.entries) {
                if let Some(tool) = tool_of(id, name) {
                    auto_allows.extend(permission(&mut one, id, tool, entry));
                }
            }
            work.add(one);
        }
    }
    work.conventions.auto_allows = auto_allows;
}

/// Translates the default verdict for tools.
fn default(work: &mut Work<'_>, entry: &Entry) {
    let mut entry = entry.clone();
    if entry.node.as_text() == Some("confirm") {
        entry.node = Node::text("ask", entry.node.span.clone());
    }
    let path = "agent.tool_permissions.default".to_owned();
    work.put("permissions", "default", path, &entry);
}

/// Warns about an entry without a command, which belongs to an extension that provides the command.
fn extension(work: &mut Work<'_>, path: String, entry: &Entry) {
    let enabled = entry.node.as_table().and_then(|table| table.get("enabled"));
    if enabled.and_then(|entry| entry.node.as_bool()) != Some(false) {
        let problem =
            Problem::warning(format!("`{path}` is not used: an extension of Zed runs it"))
                .help("give the server a `command` or a `url`");
        work.report.add(problem, path, &entry.key);
    }
}

fn finish(one: &mut One<'_>, timeout: Option<&Entry>) {
    if let Some(entry) = one.raw.get("command") {
        match entry.node.as_table() {
            Some(command) => program(one, command),
            None => one.put("command", "command", entry.node.clone()),
        }
    }
    if let (Some(entry), None) = (timeout, one.raw.get("timeout"))
        && let Some(seconds) = crate::translate::server::number(&entry.node)
    {
        let node = Node::text(Unit::Seconds.duration(seconds), entry.node.span.clone());
        let path = Some("context_server_timeout".to_owned());
        one.out.put("timeout", Entry { path, ..Entry::new(entry.key.clone(), node) });
    }
    one.login("oauth", LOGIN);
}

/// Translates the older form: the program with its arguments and variables in one table.
fn program(one: &mut One<'_>, command: &Table) {
    for (key, entry) in &command.entries {
        let path = join(&join(&one.path, "command"), key);
        let ours = match key.as_str() {
            "path" => "command",
            "args" => "args",
            "env" => "env",
            "timeout" => continue,
            _ => {
                let problem = Problem::warning(format!("`{path}` is not used"))
                    .help("supported keys are `path`, `args` and `env`");
                one.report.add(problem, path, &entry.key);
                continue;
            }
        };
        one.out.put(ours, Entry { path: Some(path), ..entry.clone() });
    }
}

/// Returns the tool in `mcp:SERVER:TOOL`, if the server is this one.
fn tool_of<'i>(id: &'i str, server: &str) -> Option<&'i str> {
    id.strip_prefix("mcp:")?.strip_prefix(server)?.strip_prefix(':')
}

fn permission(one: &mut One<'_>, id: &str, tool: &str, entry: &Entry) -> Option<AutoAllow> {
    let path = join("agent.tool_permissions.tools", id);
    let pattern = exactly(tool);
    let mut allowed = None;
    if entry.node.as_table().is_none() {
        let problem = Problem::error(format!("`{path}` must be a table"))
            .help("write { \"default\": \"confirm\" }");
        one.report.add(problem, path.clone(), &entry.node.span);
    }
    for (key, entry) in entry.node.as_table().into_iter().flat_map(|table| &table.entries) {
        let path = join(&path, key);
        let verdict = entry.node.as_text().and_then(|word| {
            VERDICTS.iter().find(|(known, _)| *known == word).map(|(_, list)| *list)
        });
        match (key.as_str(), verdict) {
            ("default", Some("allow")) => {
                allowed = one.auto_allow(path, &entry.node.span, &pattern);
            }
            ("default", Some(verdict)) => {
                one.rule(verdict, path, Node::text(&pattern, entry.node.span.clone()));
            }
            _ => {
                let problem = Problem::error(format!(
                    "`{path}` asks for rules about the text of a call, which this version does not support"
                ));
                let help = "remove it, or write rules about arguments in a native file";
                one.report.add(problem.help(help), path, &entry.key);
            }
        }
    }
    allowed
}
