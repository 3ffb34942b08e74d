//! Codex: `[mcp_servers.NAME]` of its `config.toml`.

use capstan_config::source::expand::forms::{Forms, is_name};
use capstan_config::source::expand::join;
use capstan_config::source::problem::Problem;
use capstan_config::source::tree::{Entry, Node, Text, Value};

use crate::translate::file::Work;
use crate::translate::login::Words;
use crate::translate::server::{Keys, One, To, Unit, exactly};
use capstan_config::source::reader::AutoAllow;

const KEYS: Keys = &[
    ("command", To::Key("command")),
    ("args", To::Key("args")),
    ("env", To::Key("env")),
    ("env_vars", To::ByHand),
    ("cwd", To::Key("cwd")),
    ("url", To::Key("url")),
    ("http_headers", To::Key("headers")),
    ("env_http_headers", To::ByHand),
    ("http_headers_helper", To::Key("headers_helper")),
    ("bearer_token_env_var", To::ByHand),
    (
        "bearer_token",
        To::Refuse("a token in the file", "name a variable with `bearer_token_env_var`"),
    ),
    ("startup_timeout_sec", To::Time(Unit::Seconds, &["startup_timeout"])),
    ("startup_timeout_ms", To::ByHand),
    ("tool_timeout_sec", To::Time(Unit::Seconds, &["timeout"])),
    ("enabled", To::Key("enabled")),
    ("required", To::Key("required")),
    ("enabled_tools", To::Tools("expose")),
    ("disabled_tools", To::Tools("hide")),
    ("default_tools_approval_mode", To::ByHand),
    ("tools", To::ByHand),
    ("auth", To::ByHand),
    ("scopes", To::ByHand),
    ("oauth", To::ByHand),
    ("oauth_resource", To::ByHand),
    ("environment_id", To::ByHand),
    ("experimental_environment", To::ByHand),
    ("omit_tools_from", To::Note("tool search applies automatically if there are many tools")),
    ("supports_parallel_tool_calls", To::Nothing),
    ("name", To::Nothing),
];

const LOGIN: Words = &[
    ("client_id", Some("client_id")),
    ("client_secret", Some("client_secret")),
    ("callback_port", Some("callback_port")),
];

pub(super) fn read(work: &mut Work<'_>) {
    work.conventions.forms = Forms::Nothing;
    work.slips(&["mcp_servers"]);
    let mut auto_allows = Vec::new();
    if let Some(servers) = work.table("mcp_servers") {
        work.servers("mcp_servers", servers, KEYS, |one| auto_allows.extend(finish(one)));
    }
    work.conventions.auto_allows = auto_allows;
}

fn finish(one: &mut One<'_>) -> Vec<AutoAllow> {
    passed_on(one);
    headers(one);
    if let (Some(entry), None) =
        (one.raw.get("startup_timeout_ms"), one.raw.get("startup_timeout_sec"))
    {
        one.time("startup_timeout_ms", entry, Unit::Milliseconds, &["startup_timeout"]);
    }
    one.login("oauth", LOGIN);
    one.flat_login(&[("scopes", "scopes"), ("oauth_resource", "resource")]);
    match one.text("auth") {
        Some("oauth") => one.put_text("oauth", "auth", "auto"),
        Some(_) => one.refuse(
            "auth",
            "a login with another account",
            "remove it to approve calls one by one",
        ),
        None => {}
    }
    for key in ["environment_id", "experimental_environment"] {
        if one.text(key).is_some_and(|id| id != "local") {
            one.refuse(key, "a start in another environment", "servers start on this machine");
        }
    }
    approvals(one)
}

/// Translates the variables to pass on: each is a name, or a table with a name.
fn passed_on(one: &mut One<'_>) {
    let Some(entry) = one.raw.get("env_vars") else { return };
    let name = |node: &Node| {
        let name = node.as_table().and_then(|table| table.get("name"));
        name.map_or_else(|| node.clone(), |name| name.node.clone())
    };
    let node = match entry.node.as_list() {
        Some(list) => Node::list(list.iter().map(name).collect(), entry.node.span.clone()),
        None => entry.node.clone(),
    };
    one.put("env_passthrough", "env_vars", node);
}

/// Adds the headers whose values come from variables to the literal ones.
fn headers(one: &mut One<'_>) {
    let mut more = Vec::new();
    if let Some(entry) = one.raw.get("bearer_token_env_var") {
        more.push(("Authorization", "Bearer ", "bearer_token_env_var".to_owned(), entry));
    }
    if let Some(table) = one.raw.table("env_http_headers") {
        for (name, entry) in &table.entries {
            more.push((name, "", join("env_http_headers", name), entry));
        }
    } else if one.raw.get("env_http_headers").is_some() {
        let path = join(&one.path, "env_http_headers");
        let problem = Problem::error(format!("`{path}` must be a table of names"));
        one.warn("env_http_headers", problem.help("write `{ \"X-Header\" = \"VARIABLE\" }`"));
    }
    for (header, before, key, entry) in more {
        let path = format!("{}.{key}", one.path);
        let span = entry.node.span.clone();
        let Some(name) = entry.node.as_text().filter(|name| is_name(name)) else {
            let problem = Problem::error(format!("`{path}` is not the name of a variable"))
                .help("give the name alone, without `$`");
            one.report.add(problem, path, &span);
            continue;
        };
        let value = format!("{before}${{{name}}}");
        let text = Text { ours: true, ..Text::plain(value) };
        let node = Node { value: Value::Text(text), span };
        let entry = Entry { path: Some(path), ..Entry::new(entry.key.clone(), node) };
        one.put_in("headers", header, entry);
    }
}

/// Translates the approval modes of the server and of single tools.
fn approvals(one: &mut One<'_>) -> Vec<AutoAllow> {
    let mut auto_allows = Vec::new();
    let default = one.text("default_tools_approval_mode");
    let asks_about_all = matches!(default, Some("prompt" | "writes"));
    if let Some(entry) = one.raw.get("default_tools_approval_mode") {
        let key = "default_tools_approval_mode";
        auto_allows.extend(approval(one, key, &entry.node, "*"));
    }
    let Some(tools) = one.raw.table("tools") else { return auto_allows };
    for (tool, entry) in &tools.entries {
        let settings = entry.node.as_table();
        let mode = settings.and_then(|settings| settings.get("approval_mode"));
        if let Some(mode) = mode
            && asks_about_all
            && mode.node.as_text() == Some("approve")
        {
            // A server's `ask` comes before its `allow`, so that the tool would be asked about.
            let path = join(&join(&one.path, "tools"), tool);
            let problem = Problem::warning(format!(
                "`{path}` is not used: `default_tools_approval_mode` asks about every tool"
            ));
            let problem = problem.help("list the tools to ask about, instead of all");
            one.report.add(problem, path, &mode.node.span);
        } else if let Some(mode) = mode {
            auto_allows.extend(approval(one, "tools", &mode.node, &exactly(tool)));
        }
        let other = settings.map(|settings| settings.entries.keys());
        let other = other.into_iter().flatten().find(|key| *key != "approval_mode");
        if settings.is_none() || other.is_some() {
            let path = join(&join(&one.path, "tools"), tool);
            let problem = Problem::error(format!("`{path}` has an unknown key"))
                .help("the supported key is `approval_mode`");
            one.report.add(problem, path, &entry.key);
        }
    }
    auto_allows
}

fn approval(one: &mut One<'_>, key: &str, mode: &Node, pattern: &str) -> Option<AutoAllow> {
    match mode.as_text() {
        Some("auto") => None,
        Some("approve") => one.auto_allow(join(&one.path, key), &mode.span, pattern),
        // For `writes`, asking about everything is the stricter interpretation.
        Some("prompt" | "writes") => {
            let path = join(&one.path, key);
            one.rule("ask", path, Node::text(pattern, mode.span.clone()));
            None
        }
        Some(_) | None => {
            let path = join(&one.path, key);
            let problem = Problem::error(format!("`{path}` has an unknown approval mode"))
                .help("use \"auto\", \"prompt\", \"writes\" or \"approve\"");
            one.report.add(problem, path, &mode.span);
            None
        }
    }
}
