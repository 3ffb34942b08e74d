//! The native dialect: TOML with the keys of the reference page.
//!
//! Keys of other programs are not read here, but help messages name the native key for them.

use super::expand::join;
use super::problem::{Problem, Report};
use super::tree::{Entry, Node, Table, Value};

/// A key of another program, the table it would be in, and what to write instead.
struct Foreign {
    word: &'static str,
    level: Level,
    help: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Server,
    Mcp,
}

const SERVERS: &str = "use `[servers.NAME]`";
const EXPOSE: &str = "use `expose = [\"…\"]`";
const HIDE: &str = "use `hide = [\"…\"]`";
const TIMEOUT: &str = "use `timeout = \"60s\"`";
const STARTUP: &str = "use `startup_timeout = \"30s\"`";

const FOREIGN: &[Foreign] = &[
    top("mcp_servers", SERVERS),
    top("mcpServers", SERVERS),
    top("server", SERVERS),
    top("context_servers", SERVERS),
    top("extensions", SERVERS),
    top("serverAuth", "use `[gateway.auth]`"),
    top("acl", "use `[access]`"),
    Foreign { word: "servers", level: Level::Mcp, help: SERVERS },
    server("includeTools", EXPOSE),
    server("tool_allowlist", EXPOSE),
    server("enabled_tools", EXPOSE),
    server("allowed_tools", EXPOSE),
    server("available_tools", EXPOSE),
    server("excludeTools", HIDE),
    server("disabled_tools", HIDE),
    server("denied_tools", HIDE),
    server("httpUrl", "use `url`; Streamable HTTP is the default"),
    server("uri", "use `url`"),
    server("cmd", "use `command`"),
    server("envs", "use `env`"),
    server("environment", "use `env`"),
    server("env_vars", "use `env_passthrough = [\"NAME\"]`"),
    server("http_headers", "use `headers`"),
    server("bearer_token_env_var", "use `headers = { Authorization = \"Bearer ${NAME}\" }`"),
    server("trust_level", "use `trust`"),
    server("tool_acl", "use `effect = { read = [\"…\"], write = [\"…\"] }`"),
    server("alwaysLoad", "use `always_load`"),
    server("lazy", "use `start = \"lazy\"`"),
    server("elicitation_enabled", "use `elicitation`"),
    server("tool_timeout_sec", TIMEOUT),
    server("tool_timeout_secs", TIMEOUT),
    server("request_timeout_ms", TIMEOUT),
    server("startup_timeout_sec", STARTUP),
    server("startup_timeout_ms", STARTUP),
    server("headersHelper", "use `headers_helper`"),
    server("authProviderType", "use `auth_provider`"),
    server("id", "the server's name is the NAME in `[servers.NAME]`"),
    server("name", "the server's name is the NAME in `[servers.NAME]`"),
];

/// Names of the table of servers in a file that several programs could have written.
///
/// Such a file is read by native rules.
const SHARED: [&str; 2] = ["mcpServers", "mcp_servers"];

/// The other tables that such a file may have.
const TABLES: [&str; 10] = [
    "permissions",
    "tools",
    "mcp",
    "audit",
    "screen",
    "flows",
    "access",
    "gateway",
    "search",
    "model",
];

/// Returns the tree of a native file: unchanged, except that its servers are under `servers`.
pub(super) fn read(raw: &Table, report: &mut Report<'_>) -> Table {
    let shared = SHARED.into_iter().find(|name| raw.get(name).is_some());
    let Some(shared) = shared.filter(|_| raw.get("servers").is_none()) else {
        return raw.clone();
    };
    let mut tree = Table::default();
    for (key, entry) in &raw.entries {
        if key == shared {
            tree.put("servers", servers(shared, entry));
        } else if TABLES.contains(&key.as_str()) {
            tree.put(key, entry.clone());
        } else if key != "$schema" {
            let problem = Problem::warning(format!("`{key}` is not used")).help(
                "if the file belongs to another program, name its format: `--config claude:FILE`",
            );
            report.add(problem, key, &entry.key);
        }
    }
    tree
}

/// The servers, each with its path in the file.
fn servers(name: &str, entry: &Entry) -> Entry {
    let mut entry = Entry { path: Some(name.to_owned()), ..entry.clone() };
    if let Value::Table(servers) = &mut entry.node.value {
        for (server, entry) in &mut servers.entries {
            entry.path = Some(join(name, server));
        }
    }
    entry
}

/// The help for a key of another program.
pub(crate) fn help_for_key(path: &str, key: &str) -> Option<String> {
    let level = match path.split_once('.') {
        None if path.is_empty() => Level::Top,
        None if path == "mcp" => Level::Mcp,
        Some(("servers", _)) => Level::Server,
        _ => return None,
    };
    let known = FOREIGN.iter().find(|foreign| foreign.word == key && foreign.level == level);
    known.map(|foreign| foreign.help.to_owned())
}

/// The help for a value of another program.
pub(crate) fn help_for_value(key: &str, node: &Node) -> Option<String> {
    let help = match (key, node.as_text(), node.as_bool()) {
        ("trust", _, Some(true)) => {
            "to run its tools without asking, write `permissions = { allow = [\"*\"] }`"
        }
        ("trust", _, Some(false)) => "remove it; servers are untrusted by default",
        (
            "type" | "transport",
            Some("streamable-http" | "streamable_http" | "streamableHttp" | "remote"),
            _,
        ) => "use `type = \"http\"`",
        ("type" | "transport", Some("local"), _) => "use `type = \"stdio\"`",
        _ => return None,
    };
    Some(help.to_owned())
}

const fn top(word: &'static str, help: &'static str) -> Foreign {
    Foreign { word, level: Level::Top, help }
}

const fn server(word: &'static str, help: &'static str) -> Foreign {
    Foreign { word, level: Level::Server, help }
}
