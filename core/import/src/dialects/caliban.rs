//! Caliban: `[mcp_servers.NAME]` in its settings, `[server.NAME]` in the older `mcp.toml`.

use capstan_config::source::expand::forms::Forms;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::Node;

use crate::translate::file::Work;
use crate::translate::server::{Keys, One, To, Unit};
use capstan_config::source::reader::FileRole;

const KEYS: Keys = &[
    ("type", To::ByHand),
    ("transport", To::ByHand),
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("oauth", To::Key("oauth")),
    ("oauth_config", To::Key("oauth_config")),
    ("disabled", To::Key("disabled")),
    ("permissions", To::Key("permissions")),
    ("timeout", To::Time(Unit::Seconds, &["timeout"])),
    ("startup_timeout", To::Time(Unit::Seconds, &["startup_timeout"])),
    ("lazy", To::ByHand),
];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::BracesKeepingEmpty;
    work.slips(&["mcp_servers", "server", "permissions"]);
    let (settings, legacy) = (work.table("mcp_servers"), work.table("server"));
    if let Some(rules) = work.raw.get("permissions") {
        work.tree.put("permissions", rules.clone());
    }
    let named = settings.is_some_and(|servers| !servers.entries.is_empty());
    if let (true, Some(entry)) = (named, work.raw.get("server")) {
        let problem = Problem::warning("`server` is not used, because `mcp_servers` names servers")
            .help("move them to `mcp_servers`");
        work.report.add(problem, "server", &entry.key);
    }
    let (kin, path, servers) = match (settings, legacy) {
        (Some(servers), _) if named => (FileRole::Settings, "mcp_servers", servers),
        (_, Some(servers)) => (FileRole::Legacy, "server", servers),
        (_, None) => return,
    };
    work.conventions.role = kin;
    work.servers(path, servers, KEYS, finish);
}

fn finish(one: &mut One<'_>) {
    for key in ["type", "transport"] {
        // `capstan-config` reports an entry that has both names.
        if let Some(entry) = one.raw.get(key) {
            let node = match entry.node.as_text() {
                Some(text) => Node::text(text.to_lowercase(), entry.node.span.clone()),
                None => entry.node.clone(),
            };
            one.put(key, key, node);
        }
    }
    let typed = one.raw.get("type").or(one.raw.get("transport")).is_some();
    let (command, url) = (one.raw.get("command").is_some(), one.raw.get("url").is_some());
    if url && !command && !typed {
        let message =
            format!("`{}` has a `url` but no `type`; the default type is stdio", one.path);
        let help = one.report.line("type", "\"http\"");
        one.warn("url", Problem::error(message).help(format!("write `{help}`")));
    }
    if url && one.raw.get("oauth").is_none() {
        one.put_text("oauth", "oauth", "off");
    }
    match one.flag("lazy") {
        Some(false) => one.put("always_load", "lazy", Node::yes(one.span("lazy"))),
        Some(true) => one.note("lazy", "tool search applies automatically if there are many tools"),
        None => {}
    }
}
