//! Detects the dialect of a file.
//!
//! The content decides first: a key that only one program has. If there is none, or several
//! contradict each other, the path of the file decides among the dialects that fit.

use capstan_config::source::syntax::Syntax;
use capstan_config::source::tree::{Table, Value};

use capstan_config::source::Dialect;

/// Keys of a file or of a server's entry that only one program has.
struct Marks {
    dialect: Dialect,
    file: &'static [&'static str],
    server: &'static [&'static str],
}

const JSON_MARKS: &[Marks] = &[
    Marks {
        dialect: Dialect::Avelino,
        file: &["serverAuth", "acl", "audit"],
        server: &[
            "cli",
            "cli_help",
            "cli_depth",
            "cli_only",
            "tool_acl",
            "idle_timeout",
            "min_idle_timeout",
            "max_idle_timeout",
        ],
    },
    Marks {
        dialect: Dialect::Llxprt,
        file: &[
            "mcp",
            "allowMCPServers",
            "excludeMCPServers",
            "mcpServerCommand",
            "selectedAuthType",
        ],
        server: &[
            "httpUrl",
            "tcp",
            "includeTools",
            "excludeTools",
            "trust",
            "transport",
            "authProviderType",
            "targetAudience",
            "targetServiceAccount",
            "oauthClientId",
            "oauthClientSecret",
            "oauthAuthorizationUrl",
            "oauthTokenUrl",
            "oauthScopes",
        ],
    },
    Marks {
        dialect: Dialect::Claude,
        file: &["projects", "globalShortcut", "numStartups", "enabledMcpjsonServers"],
        server: &["headersHelper", "alwaysLoad", "request_timeout_ms"],
    },
    Marks { dialect: Dialect::Cursor, file: &[], server: &["envFile", "auth", "serverUrl"] },
];

const TOML_MARKS: &[Marks] = &[
    Marks {
        dialect: Dialect::Caliban,
        file: &[],
        server: &[
            "type",
            "transport",
            "headers",
            "oauth_config",
            "disabled",
            "permissions",
            "lazy",
        ],
    },
    Marks {
        dialect: Dialect::Codex,
        file: &[
            "model",
            "model_provider",
            "approval_policy",
            "sandbox_mode",
            "profiles",
            "mcp_oauth_callback_port",
            "mcp_oauth_callback_url",
            "mcp_oauth_credentials_store",
        ],
        server: &[
            "env_vars",
            "http_headers",
            "env_http_headers",
            "http_headers_helper",
            "bearer_token_env_var",
            "startup_timeout_sec",
            "startup_timeout_ms",
            "tool_timeout_sec",
            "enabled_tools",
            "disabled_tools",
            "default_tools_approval_mode",
            "oauth_resource",
            "environment_id",
            "enabled",
            "required",
            "scopes",
        ],
    },
];

/// The usual places of programs' files: the end of the path, in whole components.
const PLACES: &[(&str, Dialect)] = &[
    (".capstan/config.toml", Dialect::Native),
    ("capstan/config.toml", Dialect::Native),
    (".mcp.json", Dialect::Claude),
    (".claude.json", Dialect::Claude),
    ("claude_desktop_config.json", Dialect::Claude),
    ("managed-mcp.json", Dialect::Claude),
    (".codex/config.toml", Dialect::Codex),
    ("mcp/servers.json", Dialect::Avelino),
    (".vscode/mcp.json", Dialect::VsCode),
    ("User/mcp.json", Dialect::VsCode),
    ("devcontainer.json", Dialect::VsCode),
    (".devcontainer.json", Dialect::VsCode),
    ("mcp-config.json", Dialect::VsCode),
    (".cursor/mcp.json", Dialect::Cursor),
    ("windsurf/mcp_config.json", Dialect::Cursor),
    (".gemini/settings.json", Dialect::Llxprt),
    (".llxprt/settings.json", Dialect::Llxprt),
    (".caliban/settings.toml", Dialect::Caliban),
    (".caliban/settings.json", Dialect::Caliban),
    (".caliban/mcp.toml", Dialect::Caliban),
    ("caliban/settings.toml", Dialect::Caliban),
    ("caliban/settings.json", Dialect::Caliban),
    ("caliban/mcp.toml", Dialect::Caliban),
    (".zeph/config.toml", Dialect::Zeph),
    ("zeph/config.toml", Dialect::Zeph),
    ("zeph.toml", Dialect::Zeph),
    ("goose/config.yaml", Dialect::Goose),
    ("zed/settings.json", Dialect::Zed),
    (".zed/settings.json", Dialect::Zed),
    ("opencode.json", Dialect::OpenCode),
    ("opencode.jsonc", Dialect::OpenCode),
];

/// Returns the dialect of a parsed file that is in the usual place of a program's files.
pub(crate) fn of(place: Option<Dialect>, syntax: Syntax, table: &Table) -> Dialect {
    let fits = match syntax {
        Syntax::Toml => in_toml(table),
        Syntax::Json => in_json(table),
        Syntax::Yaml => vec![Dialect::Goose],
    };
    match (fits.as_slice(), place) {
        ([only], _) => *only,
        (_, Some(place)) if fits.contains(&place) => place,
        (_, _) => Dialect::Native,
    }
}

/// Returns the dialect whose program usually has its file there.
pub(crate) fn by_place(path: &str) -> Option<Dialect> {
    let path = path.replace('\\', "/");
    let ends = |end: &str| {
        path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    PLACES.iter().find(|(end, _)| ends(end)).map(|(_, dialect)| *dialect)
}

fn in_toml(table: &Table) -> Vec<Dialect> {
    if table.get("servers").is_some() {
        return vec![Dialect::Native];
    }
    let mcp = table.table("mcp");
    let has = |key| mcp.is_some_and(|mcp| mcp.get(key).is_some());
    let zeph = ["servers", "tool_discovery", "elicitation_queue_capacity"];
    match (zeph.iter().any(|key| has(key)), table.table("mcp_servers")) {
        (true, None) => vec![Dialect::Zeph],
        (false, Some(servers)) => by_marks(TOML_MARKS, table, servers),
        (true, Some(_)) => vec![Dialect::Native],
        (false, None) if holds_tables(table, "server") => vec![Dialect::Caliban],
        // Nothing about servers: a file of any program, or a native one that has no servers yet.
        (false, None) => vec![Dialect::Native, Dialect::Caliban, Dialect::Codex, Dialect::Zeph],
    }
}

fn in_json(table: &Table) -> Vec<Dialect> {
    if table.table("context_servers").is_some() {
        return vec![Dialect::Zed];
    }
    if let Some(servers) = table.table("mcpServers") {
        let mut fits = by_marks(JSON_MARKS, table, servers);
        if fits.len() > 1 {
            fits.push(Dialect::VsCode);
        }
        return fits;
    }
    if table.table("mcp_servers").is_some() {
        return vec![Dialect::Caliban];
    }
    if let Some(mcp) = table.table("mcp") {
        return in_mcp(mcp);
    }
    if table.table("servers").is_some() || table.table("customizations").is_some() {
        return vec![Dialect::VsCode];
    }
    vec![
        Dialect::Avelino,
        Dialect::Llxprt,
        Dialect::Claude,
        Dialect::Cursor,
        Dialect::VsCode,
        Dialect::Caliban,
        Dialect::Zed,
        Dialect::OpenCode,
    ]
}

/// Distinguishes the three programs that have an object `mcp`.
///
/// It contains opencode's servers, VS Code's `servers` and `inputs`, or LLxprt's settings about its
/// servers.
fn in_mcp(mcp: &Table) -> Vec<Dialect> {
    let servers = mcp.table("servers").unwrap_or(mcp);
    let opencode = |entry: &capstan_config::source::tree::Entry| {
        let Some(server) = entry.node.as_table() else { return false };
        let kind = server.get("type").and_then(|entry| entry.node.as_text());
        let words = server.get("command").is_some_and(|entry| entry.node.as_list().is_some());
        words || matches!(kind, Some("local" | "remote"))
    };
    if servers.entries.values().any(opencode) {
        vec![Dialect::OpenCode]
    } else if mcp.get("servers").is_some() {
        vec![Dialect::VsCode]
    } else {
        vec![Dialect::Llxprt, Dialect::OpenCode]
    }
}

/// The dialect whose own keys occur; all dialects if none or several match.
fn by_marks(marks: &[Marks], file: &Table, servers: &Table) -> Vec<Dialect> {
    let entries: Vec<&Table> =
        servers.entries.values().filter_map(|entry| entry.node.as_table()).collect();
    let marked = |marks: &&Marks| {
        marks.file.iter().any(|word| file.get(word).is_some())
            || marks
                .server
                .iter()
                .any(|word| entries.iter().any(|server| server.get(word).is_some()))
    };
    let found: Vec<Dialect> = marks.iter().filter(marked).map(|marks| marks.dialect).collect();
    match found.as_slice() {
        [_] => found,
        _ => marks.iter().map(|marks| marks.dialect).collect(),
    }
}

fn holds_tables(table: &Table, key: &str) -> bool {
    let all = |servers: &Table| {
        let mut values = servers.entries.values();
        values.all(|entry| matches!(entry.node.value, Value::Table(_)))
    };
    table.table(key).is_some_and(|servers| !servers.entries.is_empty() && all(servers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect;

    #[track_caller]
    fn check(path: &str, text: &str, expected: Dialect) {
        assert_eq!(detect(path, text).unwrap(), expected, "{path}: {text}");
    }

    #[test]
    fn a_word_of_one_program_decides() {
        for (text, expected) in [
            ("[servers.a]\ncommand = \"x\"", Dialect::Native),
            ("[server.a]\ncommand = \"x\"", Dialect::Caliban),
            ("[mcp_servers.a]\ntype = \"http\"\nurl = \"https://h\"", Dialect::Caliban),
            ("[mcp_servers.a]\nurl = \"https://h\"\nbearer_token_env_var = \"T\"", Dialect::Codex),
            ("model = \"m\"\n[mcp_servers.a]\ncommand = \"x\"", Dialect::Codex),
            ("[[mcp.servers]]\nid = \"a\"", Dialect::Zeph),
            ("[mcp.tool_discovery]\ntop_k = 1", Dialect::Zeph),
            ("{\"mcpServers\": {\"a\": {\"tool_acl\": {}}}}", Dialect::Avelino),
            ("{\"mcpServers\": {}, \"serverAuth\": {}}", Dialect::Avelino),
            ("{\"mcpServers\": {\"a\": {\"httpUrl\": \"x\"}}}", Dialect::Llxprt),
            ("{\"mcpServers\": {\"a\": {\"alwaysLoad\": true}}}", Dialect::Claude),
            ("{\"mcpServers\": {}, \"projects\": {}}", Dialect::Claude),
            ("{\"mcpServers\": {\"a\": {\"envFile\": \"x\"}}}", Dialect::Cursor),
            ("{\"servers\": {}}", Dialect::VsCode),
            ("{\"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}}", Dialect::VsCode),
            ("{\"customizations\": {}}", Dialect::VsCode),
            ("{\"context_servers\": {}}", Dialect::Zed),
            ("{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\"]}}}", Dialect::OpenCode),
            ("{\"mcp\": {\"servers\": {\"a\": {\"type\": \"remote\"}}}}", Dialect::OpenCode),
            ("{\"mcp_servers\": {}}", Dialect::Caliban),
            ("extensions:\n  a:\n    cmd: x\n", Dialect::Goose),
        ] {
            check("anywhere", text, expected);
        }
    }

    #[test]
    fn where_several_fit_the_place_decides_and_without_a_place_our_own_rules() {
        let common = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": []}}}";
        for (path, expected) in [
            (".mcp.json", Dialect::Claude),
            ("/home/me/.claude.json", Dialect::Claude),
            ("C:\\Users\\me\\AppData\\claude_desktop_config.json", Dialect::Claude),
            ("/home/me/.config/mcp/servers.json", Dialect::Avelino),
            (".cursor/mcp.json", Dialect::Cursor),
            ("windsurf/mcp_config.json", Dialect::Cursor),
            ("~/.gemini/settings.json", Dialect::Llxprt),
            (".llxprt/settings.json", Dialect::Llxprt),
            ("/home/me/.copilot/mcp-config.json", Dialect::VsCode),
            ("mine.json", Dialect::Native),
            ("xmcp/servers.json", Dialect::Native),
            ("zed/settings.json", Dialect::Native),
        ] {
            check(path, common, expected);
        }
        let toml = "[mcp_servers.a]\ncommand = \"x\"";
        check(".codex/config.toml", toml, Dialect::Codex);
        check(".caliban/settings.toml", toml, Dialect::Caliban);
        check("config.toml", toml, Dialect::Native);
    }

    #[test]
    fn a_place_never_outweighs_a_word() {
        check(".mcp.json", "{\"mcpServers\": {\"a\": {\"httpUrl\": \"x\"}}}", Dialect::Llxprt);
        check(".codex/config.toml", "[servers.a]\ncommand = \"x\"", Dialect::Native);
    }

    #[test]
    fn words_that_contradict_each_other_leave_it_to_the_place() {
        let both = "{\"mcpServers\": {\"a\": {\"httpUrl\": \"x\", \"tool_acl\": {}}}}";
        check(".llxprt/settings.json", both, Dialect::Llxprt);
        check("x.json", both, Dialect::Native);
    }

    #[test]
    fn an_empty_file_belongs_to_its_place() {
        for (path, text, expected) in [
            (".mcp.json", "{}", Dialect::Claude),
            (".mcp.json", "", Dialect::Claude),
            ("opencode.jsonc", "{}", Dialect::OpenCode),
            (".codex/config.toml", "", Dialect::Codex),
            ("config.toml", "", Dialect::Native),
            ("x.json", "{}", Dialect::Native),
        ] {
            check(path, text, expected);
        }
    }

    #[test]
    fn what_cannot_be_read_has_no_dialect() {
        for (path, text) in [("a.json", "{"), ("a.toml", "= 1"), ("a.yaml", "[")] {
            assert!(detect(path, text).is_err(), "{text}");
        }
    }
}
