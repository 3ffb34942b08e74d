//! The `mcp` program of avelino: `servers.json` with `mcpServers`, `serverAuth`, `acl`, `audit`.

use capstan_model::Verdict;
use capstan_policy::DefaultRule;

use capstan_config::source::expand::{MissingEnv, join};
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::Node;

use super::avelino_auth;
use crate::translate::file::Work;
use crate::translate::server::{Keys, One, To, Unit};

const KEYS: Keys = &[
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("cli", To::Key("cli")),
    ("cli_help", To::Key("cli_help")),
    ("cli_depth", To::Key("cli_depth")),
    ("cli_only", To::ByHand),
    ("tools", To::ByHand),
    ("tool_acl", To::Key("effect")),
    ("idle_timeout", To::Time(Unit::Seconds, &["idle_timeout"])),
    ("min_idle_timeout", To::Time(Unit::Seconds, &["min_idle_timeout"])),
    ("max_idle_timeout", To::Time(Unit::Seconds, &["max_idle_timeout"])),
];

const TOP: [&str; 5] = ["mcpServers", "serverAuth", "acl", "audit", "$schema"];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.missing = MissingEnv::Empty;
    work.conventions.default = Some(DefaultRule::Always(Verdict::Allow));
    work.slips(&TOP);
    if let Some(servers) = work.table("mcpServers") {
        work.servers("mcpServers", servers, KEYS, finish);
    }
    avelino_auth::read(work);
    audit(work);
}

fn finish(one: &mut One<'_>) {
    // For both keys an empty list counts as absent.
    for (key, ours) in [("cli_only", "cli_only"), ("tools", "tools")] {
        if let Some(entry) = one.raw.get(key)
            && entry.node.as_list().is_none_or(|list| !list.is_empty())
        {
            one.put(ours, key, entry.node.clone());
        }
    }
    if one.raw.get("command").is_some() {
        one.drop_keys(&["url", "headers"], "command");
    }
}

/// Translates the audit settings, except for the place of the log: avelino's log is a database.
fn audit(work: &mut Work<'_>) {
    let Some(audit) = work.table("audit") else { return };
    for (key, entry) in &audit.entries {
        let path = join("audit", key);
        let why = match (key.as_str(), entry.node.as_text(), entry.node.as_bool()) {
            ("enabled", ..) => {
                work.put("audit", "enabled", path, entry);
                continue;
            }
            ("output", Some("none"), _) => {
                let mut entry = entry.clone();
                entry.node = Node::no(entry.node.span.clone());
                work.put("audit", "enabled", path, &entry);
                continue;
            }
            ("log_arguments", _, Some(keep)) => {
                let mut entry = entry.clone();
                let written = if keep { "redacted" } else { "off" };
                entry.node = Node::text(written, entry.node.span.clone());
                work.put("audit", "arguments", path, &entry);
                continue;
            }
            ("output", Some("file"), _) => continue,
            ("output" | "path" | "index_path", ..) => "is not used; Capstan writes one log file",
            ("log_arguments", ..) => "must be true or false",
            _ => "is not a known key",
        };
        let problem = Problem::warning(format!("`{path}` {why}"))
            .help("`capstan audit` reads the log, `audit.path` in a native file moves it");
        work.report.add(problem, path, &entry.key);
    }
}
