//! opencode: `mcp` of its `opencode.json`, with the servers in it or one level deeper.

use capstan_config::source::expand::forms::Forms;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table};

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::prefix;
use crate::translate::server::{Keys, One, To, Unit};

const KEYS: Keys = &[
    ("type", To::ByHand),
    ("command", To::ByHand),
    ("environment", To::Key("env")),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("enabled", To::Key("enabled")),
    ("disabled", To::Key("disabled")),
    ("timeout", To::ByHand),
    ("oauth", To::ByHand),
    ("description", To::Key("description")),
];

const LOGIN: Words = &[
    ("clientId", Some("client_id")),
    ("client_id", Some("client_id")),
    ("clientSecret", Some("client_secret")),
    ("client_secret", Some("client_secret")),
    ("scope", Some("scopes")),
    ("callback_port", Some("callback_port")),
    ("callbackPort", Some("callback_port")),
    ("redirect_uri", Some("redirect_uri")),
    ("redirectUri", Some("redirect_uri")),
];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Curly;
    work.slips(&["mcp", "tools", "permission"]);
    let Some(mcp) = work.table("mcp") else { return };
    let (path, servers) = match mcp.table("servers") {
        Some(servers) if servers.get("type").is_none() => ("mcp.servers", servers),
        Some(_) | None => ("mcp", mcp),
    };
    let timeout = if path == "mcp" { None } else { mcp.get("timeout") };
    let raw = work.raw;
    work.servers(path, servers, KEYS, |one| {
        finish(one, timeout);
        hidden(one, raw);
        permissions(one, raw);
    });
}

fn finish(one: &mut One<'_>, timeout: Option<&Entry>) {
    one.kind("type", &[("local", "stdio"), ("remote", "http")]);
    // A `remote` server may use either transport.
    if one.text("type") == Some("remote") {
        one.out.entries.shift_remove("type");
    }
    command(one);
    let own = one.raw.get("timeout").map(|entry| (join(&one.path, "timeout"), entry));
    let shared = timeout.map(|entry| ("mcp.timeout".to_owned(), entry));
    if let Some((path, entry)) = own.or(shared) {
        times(one, &path, entry);
    }
    one.login("oauth", LOGIN);
}

/// Translates the command, which is one list of the program and its arguments.
fn command(one: &mut One<'_>) {
    let Some(entry) = one.raw.get("command") else { return };
    let Some((program, args)) = entry.node.as_list().and_then(<[Node]>::split_first) else {
        one.put("command", "command", entry.node.clone());
        return;
    };
    one.put("command", "command", program.clone());
    one.put("args", "command", Node::list(args.to_vec(), entry.node.span.clone()));
}

/// Translates the time limit: one for everything, or one for the start and one for requests.
fn times(one: &mut One<'_>, path: &str, entry: &Entry) {
    let mut put = |ours: &str, path: String, entry: &Entry| {
        let duration =
            crate::translate::server::number(&entry.node).map(|n| Unit::Milliseconds.duration(n));
        let span = entry.node.span.clone();
        let node = duration.map_or_else(|| entry.node.clone(), |text| Node::text(text, span));
        let entry = Entry { path: Some(path), ..Entry::new(entry.key.clone(), node) };
        one.out.put(ours, entry);
    };
    let Some(table) = entry.node.as_table() else {
        put("startup_timeout", path.to_owned(), entry);
        put("timeout", path.to_owned(), entry);
        return;
    };
    for (key, ours) in [("startup", "startup_timeout"), ("request", "timeout")] {
        if let Some(entry) = table.get(key) {
            put(ours, join(path, key), entry);
        }
    }
}

/// Translates `tools`, which switches tools off by patterns for `server_tool`.
fn hidden(one: &mut One<'_>, raw: &Table) {
    let Some(tools) = raw.table("tools") else { return };
    let off = tools.entries.iter().filter(|(_, entry)| entry.node.as_bool() == Some(false));
    let mut nodes = Vec::new();
    for (pattern, entry) in off {
        let own = below(&one.display, pattern);
        let own = own.into_iter().map(|own| Node::text(own, entry.key.clone()));
        nodes.extend(own.map(|own| (entry.key.clone(), own)));
    }
    if let Some((span, _)) = nodes.first().cloned() {
        let list = nodes.into_iter().map(|(_, node)| node).collect();
        let path = Some("tools".to_owned());
        let entry = Entry { path, ..Entry::new(span.clone(), Node::list(list, span)) };
        one.out.put("hide", entry);
    }
}

/// Translates the ask and deny rules of `permission`, which have the same patterns.
///
/// Allow rules are not translated, because a later pattern may revoke them.
fn permissions(one: &mut One<'_>, raw: &Table) {
    let Some(entry) = raw.get("permission") else { return };
    let Some(table) = entry.node.as_table() else {
        permission(one, "permission".to_owned(), vec!["*".to_owned()], entry);
        return;
    };
    for (pattern, entry) in &table.entries {
        permission(one, join("permission", pattern), below(&one.display, pattern), entry);
    }
}

/// Translates a verdict on tools.
fn permission(one: &mut One<'_>, path: String, tools: Vec<String>, entry: &Entry) {
    let list = match entry.node.as_text() {
        _ if tools.is_empty() => return,
        Some("allow") => return,
        Some(list @ ("ask" | "deny")) => list,
        Some(_) | None => {
            let problem = Problem::error(format!("`{path}` must be allow, ask or deny"))
                .help("write one of the three words");
            one.report.add(problem, path, &entry.node.span);
            return;
        }
    };
    for tool in tools {
        one.rule(list, path.clone(), Node::text(tool, entry.node.span.clone()));
    }
}

/// Reduces a pattern for `server_tool` to the tools of one server.
fn below(server: &str, pattern: &str) -> Vec<String> {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let id: String = server.chars().map(safe).chain(['_']).collect();
    prefix::after(&id, pattern)
}
