//! Zeph: `[[mcp.servers]]`, `[mcp]`, `[mcp.tool_discovery]` and `[tools]` of its `config.toml`.

use capstan_model::Verdict;
use capstan_policy::DefaultRule;

use capstan_config::nearest;
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Table, Text, Value};

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::outline::Outline::{self, Flag, List, Number, Word};
use crate::translate::server::{Keys, One, To, Unit, exactly};

const KEYS: Keys = &[
    ("id", To::ByHand),
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("url", To::Key("url")),
    ("headers", To::Key("headers")),
    ("timeout", To::Time(Unit::Seconds, &["timeout", "startup_timeout"])),
    ("tool_timeout_secs", To::ByHand),
    ("trust_level", To::Key("trust")),
    ("tool_allowlist", To::ByHand),
    ("policy", To::ByHand),
    ("expected_tools", To::ByHand),
    ("lock_tool_list", To::Key("lock_tool_list")),
    ("elicitation_enabled", To::Key("elicitation")),
    ("roots", To::ByHand),
    ("oauth", To::ByHand),
    ("env_isolation", To::ByHand),
    ("tool_metadata", To::Refuse("sensitivity of tools", "use `permissions` in a native file")),
    ("media_passthrough", To::Note("media are always forwarded")),
    (
        "max_description_bytes",
        To::Note("`max_description_bytes` under `[mcp]` applies to all servers"),
    ),
];

const LOGIN: Words = &[
    ("scopes", Some("scopes")),
    ("callback_port", Some("callback_port")),
    ("client_name", None),
    ("token_storage", None),
];

/// The keys of `[mcp]`; those without a native name are handled in code or ignored.
const MCP: &[(&str, Option<&str>)] = &[
    ("servers", None),
    ("tool_discovery", None),
    ("allowed_commands", Some("allowed_commands")),
    ("max_dynamic_servers", Some("max_dynamic_servers")),
    ("elicitation_enabled", None),
    ("elicitation_timeout", None),
    ("elicitation_queue_capacity", Some("elicitation_queue")),
    ("elicitation_warn_sensitive_fields", None),
    ("default_env_isolation", None),
    ("max_description_bytes", None),
    ("max_instructions_bytes", None),
];

const DISCOVERY: Outline = Outline::Table(&[
    ("strategy", Word(&["Embedding", "Llm", "None", "embedding", "llm", "none"])),
    ("top_k", Number),
    ("min_similarity", Number),
    ("always_include", List(&Outline::Text)),
    ("min_tools_to_filter", Number),
    ("strict", Flag),
]);

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.default = Some(DefaultRule::Always(Verdict::Allow));
    work.slips(&["mcp", "tools"]);
    let mcp = work.table("mcp");
    // Servers may not ask anything unless the file allows it.
    let asking = mcp.and_then(|mcp| mcp.get("elicitation_enabled"));
    if let Some(mcp) = mcp {
        for (index, node) in list(work, mcp).iter().enumerate() {
            server(work, index, node, asking);
        }
        settings(work, mcp);
    }
    if let Some(tools) = work.table("tools") {
        self::tools(work, tools);
    }
}

fn list<'a>(work: &mut Work<'a>, mcp: &'a Table) -> &'a [Node] {
    let Some(entry) = mcp.get("servers") else { return &[] };
    entry.node.as_list().unwrap_or_else(|| {
        let problem = Problem::error("`mcp.servers` must be a list of tables")
            .help("write each server as `[[mcp.servers]]` with an `id`");
        work.report.add(problem, "mcp.servers", &entry.key);
        &[]
    })
}

fn server<'a>(work: &mut Work<'a>, index: usize, node: &'a Node, asking: Option<&Entry>) {
    let id = node.as_table().and_then(|table| table.get("id"));
    let Some((id, name)) = id.and_then(|id| Some((id, id.node.as_text()?))) else {
        let problem = Problem::error(format!("server {} of `mcp.servers` has no `id`", index + 1))
            .help("give it a name: `id = \"…\"`");
        work.report.add(problem, "mcp.servers", &node.span);
        return;
    };
    let Some(table) = node.as_table() else { return };
    let path = join("mcp.servers", name);
    let mut one = work.begin(name, path, &id.node.span, table);
    one.apply(KEYS);
    finish(&mut one);
    if one.out.get("elicitation").is_none() {
        let span = asking.map_or(id.node.span.clone(), |entry| entry.node.span.clone());
        let node = match asking.and_then(|entry| entry.node.as_bool()) {
            Some(true) => Node::yes(span.clone()),
            Some(false) | None => Node::no(span.clone()),
        };
        let path = Some("mcp.elicitation_enabled".to_owned());
        one.out.put("elicitation", Entry { path, ..Entry::new(span, node) });
    }
    work.add(one);
}

fn finish(one: &mut One<'_>) {
    exposure(one);
    if let Some(entry) = one.raw.get("tool_timeout_secs") {
        one.time("tool_timeout_secs", entry, Unit::Seconds, &["timeout"]);
    }
    if let Some(entry) = one.raw.get("expected_tools")
        && entry.node.as_list().is_none_or(|list| !list.is_empty())
    {
        one.put("expected_tools", "expected_tools", entry.node.clone());
    }
    if one.flag("env_isolation") == Some(false) {
        one.note("env_isolation", "servers never inherit the whole environment");
    }
    one.login("oauth", LOGIN);
    roots(one);
    vault(one);
}

/// Translates the list of offered tools. An empty list means all, or none for a sandboxed server.
fn exposure(one: &mut One<'_>) {
    let trust = one.text("trust_level");
    let listed = names(one.raw.get("tool_allowlist"));
    let unlisted = listed.as_ref().is_none_or(Vec::is_empty);
    if let (Some(entry), false) =
        (one.raw.get("tool_allowlist"), unlisted && trust != Some("sandboxed"))
    {
        one.tools("expose", "tool_allowlist", entry);
    }
    let policy = one.raw.table("policy");
    if let Some(policy) = policy {
        self::policy(one, policy, listed.as_deref().filter(|list| !list.is_empty()));
    }
    let limited = one.out.get("expose").is_some();
    if unlisted && !limited && matches!(trust, None | Some("untrusted")) {
        let message = format!("`{}` is untrusted and offers all of its tools", one.path);
        let help = "list those that you use: `tool_allowlist = [\"…\"]`";
        one.warn("trust_level", Problem::warning(message).help(help));
    }
}

fn policy(one: &mut One<'_>, policy: &Table, listed: Option<&[String]>) {
    for (key, entry) in &policy.entries {
        let path = join(&join(&one.path, "policy"), key);
        let ours = match key.as_str() {
            "allowed_tools" => "expose",
            "denied_tools" => "hide",
            "rate_limit" => {
                let problem = Problem::error(format!(
                    "`{path}` asks for a rate limit, which this version does not enforce"
                ));
                one.report.add(problem.help("remove it if you do not need it"), path, &entry.key);
                continue;
            }
            _ => {
                let known = ["allowed_tools", "denied_tools", "rate_limit"];
                let nearest = nearest(key, known.into_iter()).unwrap_or("allowed_tools");
                let problem = Problem::error(format!("`{path}` is not a known key"))
                    .help(format!("did you mean `{nearest}`?"));
                one.report.add(problem, path, &entry.key);
                continue;
            }
        };
        let mut node = entry.node.clone();
        if let Value::List(nodes) = &mut node.value {
            // Both lists restrict, so only tools in both are offered.
            if let ("expose", Some(listed)) = (ours, listed) {
                nodes.retain(|node| {
                    node.as_text().is_none_or(|name| listed.iter().any(|known| known == name))
                });
            }
            for node in nodes {
                if let Some(name) = node.as_text() {
                    *node = Node::text(exactly(name), node.span.clone());
                }
            }
        }
        one.out.put(ours, Entry { path: Some(path), ..Entry::new(entry.key.clone(), node) });
    }
}

fn names(entry: Option<&Entry>) -> Option<Vec<String>> {
    let list = entry?.node.as_list()?;
    Some(list.iter().filter_map(|node| node.as_text().map(str::to_owned)).collect())
}

/// Translates roots: here they are folders, in Zeph named `file://` addresses.
///
/// The first root of Zeph's servers is the working directory, in a project or not.
fn roots(one: &mut One<'_>) {
    let workspace = Text { ours: true, ..Text::plain("${CAPSTAN_PROJECT_DIR}") };
    let workspace = Node { value: Value::Text(workspace), span: one.span("roots") };
    let configured = one.raw.get("roots");
    let Some(list) = configured.map_or(Some(&[][..]), |entry| entry.node.as_list()) else {
        if let Some(entry) = configured {
            one.put("roots", "roots", entry.node.clone());
        }
        return;
    };
    let folder = |node: &Node| {
        let uri = node.as_table().and_then(|root| root.get("uri"));
        let node = uri.map_or(node, |uri| &uri.node);
        let path = node.as_text().map(|text| text.strip_prefix("file://").unwrap_or(text));
        path.map_or_else(|| node.clone(), |path| Node::text(path, node.span.clone()))
    };
    let folders = std::iter::once(workspace).chain(list.iter().map(folder)).collect();
    one.put("roots", "roots", Node::list(folders, one.span("roots")));
}

/// Reports values that are only in Zeph's vault.
fn vault(one: &mut One<'_>) {
    for key in ["env", "headers"] {
        let Some(table) = one.raw.table(key) else { continue };
        for (name, entry) in &table.entries {
            if entry.node.as_text().is_some_and(|text| text.starts_with("vault:")) {
                let path = join(&join(&one.path, key), name);
                let problem = Problem::error(format!("`{path}` is in Zeph's vault"))
                    .help("put it into an environment variable, and write `${NAME}`");
                one.report.add(problem, path, &entry.node.span);
            }
        }
    }
}

/// Translates `[mcp]` without its servers.
fn settings(work: &mut Work<'_>, mcp: &Table) {
    for (key, entry) in &mcp.entries {
        let path = join("mcp", key);
        match MCP.iter().find(|(known, _)| known == key) {
            Some((_, Some(ours))) => work.put("mcp", ours, path, entry),
            Some((_, None)) => setting(work, key, path, entry),
            None => {
                let help = match nearest(key, MCP.iter().map(|(known, _)| *known)) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => "you can keep it".to_owned(),
                };
                let problem = Problem::warning(format!("`{path}` is not used")).help(help);
                work.report.add(problem, path, &entry.key);
            }
        }
    }
}

fn setting(work: &mut Work<'_>, key: &str, path: String, entry: &Entry) {
    match (key, entry.node.as_bool()) {
        // `true` applies to the servers of this file, `false` to all servers.
        ("elicitation_enabled", Some(true)) => {}
        ("elicitation_enabled", _) => work.put("mcp", key, path, entry),
        ("elicitation_timeout", _) => {
            let seconds =
                crate::translate::server::number(&entry.node).map(|n| Unit::Seconds.duration(n));
            let mut entry = entry.clone();
            if let Some(seconds) = seconds {
                entry.node = Node::text(seconds, entry.node.span.clone());
            }
            work.put("mcp", key, path, &entry);
        }
        ("max_description_bytes", _) => {
            let bytes = crate::translate::server::number(&entry.node);
            let mut entry = entry.clone();
            if let Some(bytes) = bytes.filter(|bytes| *bytes >= 1.0) {
                entry.node = Node::text(format!("{}B", bytes.trunc()), entry.node.span.clone());
            }
            work.put("screen", "max_description", path, &entry);
        }
        ("elicitation_warn_sensitive_fields", Some(false)) => {
            let problem = Problem::warning(format!("`{path}` is not used"))
                .help("questions about secrets are always marked");
            work.report.add(problem, path, &entry.key);
        }
        ("default_env_isolation", Some(false)) => {
            let problem = Problem::warning(format!("`{path}` is not used"))
                .help("servers never inherit the whole environment");
            work.report.add(problem, path, &entry.key);
        }
        ("tool_discovery", _) => {
            DISCOVERY.check(&entry.node, &path, &mut work.report);
            discovery(work, &path, entry);
        }
        _ => {}
    }
}

/// Translates `[mcp.tool_discovery]` to `[search]`.
fn discovery(work: &mut Work<'_>, path: &str, entry: &Entry) {
    let Some(table) = entry.node.as_table() else { return };
    for key in ["top_k", "min_similarity", "always_include", "min_tools_to_filter"] {
        if let Some(entry) = table.get(key) {
            work.put("search", key, join(path, key), entry);
        }
    }
    let Some(strategy) = table.get("strategy") else { return };
    let path = join(path, "strategy");
    let known = ["None", "none", "Llm", "llm"];
    if let Some(name) = strategy.node.as_text().filter(|name| known.contains(name)) {
        let node = Node::text(name.to_lowercase(), strategy.node.span.clone());
        work.put("search", "strategy", path, &Entry { node, ..strategy.clone() });
    }
}

/// Translates `[tools]`, except for settings of Zeph's own tools.
fn tools(work: &mut Work<'_>, tools: &Table) {
    for key in ["max_tool_calls_per_session", "policy", "authorization"] {
        if let Some(entry) = tools.get(key) {
            work.put("tools", key, join("tools", key), entry);
        }
    }
}
