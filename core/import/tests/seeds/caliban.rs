//! Caliban.

use capstan_config::{Fallback, OAuth, Scope, Severity, SourceFile};
use capstan_model::Verdict;

use crate::{Ask, at, caliban, load_files};

const LINEAR: &str = r#"
# .caliban/settings.toml
[mcp_servers.linear]
command = "npx"
args = ["-y", "@linear/mcp-server"]
env = { LINEAR_API_KEY = "${LINEAR_API_KEY}" }
"#;

#[test]
fn c01_a_minimal_server_of_caliban() {
    let loaded = caliban(LINEAR);
    assert_eq!(loaded.problems, []);
    let program = loaded.program("linear");
    assert_eq!(program.command, "npx");
    assert_eq!(program.args, ["-y", "@linear/mcp-server"]);
    assert_eq!(program.env["LINEAR_API_KEY"].reveal(), "value of LINEAR_API_KEY");
    assert_eq!((program.env.len(), program.env_passthrough.len()), (1, 0));
}

#[test]
fn c01_an_unset_variable_names_variable_key_and_file_and_fails_one_server() {
    let text = LINEAR.replace("${LINEAR_API_KEY}", "${NONE}") + "[mcp_servers.b]\ncommand = \"b\"";
    let loaded = caliban(&text);
    let [problem] = loaded.problems.as_slice() else { panic!("{:?}", loaded.problems) };
    let said = problem.to_string();
    for part in ["`NONE`", "`mcp_servers.linear.env.LINEAR_API_KEY`", ".caliban/settings.toml:6"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(loaded.entry("linear").status.is_err() && loaded.entry("b").usable().is_some());
    assert_eq!(loaded.fatal().count(), 0);
}

#[test]
fn c02_c03_http_and_sse_servers_of_caliban_log_in_only_when_told() {
    let loaded = caliban(
        r#"
[mcp_servers.notion]
type = "http"
url = "https://mcp.notion.com/v1"
headers = { Authorization = "Bearer ${NOTION_TOKEN}" }

[mcp_servers.legacy-api]
type = "sse"
url = "https://api.example.com/mcp/sse"
"#,
    );
    assert_eq!(loaded.problems, []);
    let (kind, notion) = loaded.remote("notion");
    assert_eq!((kind, notion.fallback), ("http", Fallback::Never));
    assert_eq!(notion.headers["Authorization"].reveal(), "Bearer value of NOTION_TOKEN");
    let (kind, legacy) = loaded.remote("legacy-api");
    assert_eq!((kind, legacy.fallback), ("sse", Fallback::Never));
    for name in ["notion", "legacy-api"] {
        assert_eq!(loaded.entry(name).status.as_ref().unwrap().oauth, OAuth::Off);
    }
}

#[test]
fn c04_an_empty_variable_keeps_its_emptiness_only_in_files_of_caliban() {
    let text = |table| {
        format!(
            "[{table}.x]\ntransport = \"stdio\"\ncommand = \"run\"\nargs = [\"${{EMPTY:-d}}\", \"${{NONE:-d}}\"]\ncwd = \"sub\""
        )
    };
    let caliban = caliban(&text("mcp_servers"));
    assert_eq!(caliban.program("x").args, ["", "d"]);
    assert_eq!(caliban.program("x").cwd.as_deref(), Some("sub"));
    let native = at("config.toml", &text("servers"));
    assert_eq!(native.program("x").args, ["d", "d"]);
}

#[test]
fn c05_c06_switched_off_and_bound_to_the_workspace() {
    let loaded = caliban(
        "[mcp_servers.s]\ncommand = \"${CLAUDE_PROJECT_DIR}/bin/s\"\nargs = [\"${CLAUDE_PROJECT_DIR}\"]\ndisabled = true",
    );
    assert_eq!(loaded.problems, []);
    assert_eq!(loaded.program("s").command, "/project/bin/s");
    assert!(!loaded.entry("s").enabled && loaded.entry("s").usable().is_none());
}

#[test]
fn c07_a_manual_login_has_its_client_its_endpoints_and_its_scopes() {
    let text = |block: &str| {
        format!(
            "[mcp_servers.my-server]\ntype = \"http\"\nurl = \"https://api.example.com/mcp\"\n\
             oauth = \"manual\"\n{block}"
        )
    };
    let loaded = caliban(&text(
        r#"
[mcp_servers.my-server.oauth_config]
client_id = "my-client"
auth_url = "https://auth.example.com/authorize"
token_url = "https://auth.example.com/token"
scopes = ["read", "write"]
"#,
    ));
    let server = loaded.entry("my-server").status.as_ref().unwrap();
    assert_eq!(server.oauth, OAuth::Manual);
    let config = server.oauth_config.as_ref().unwrap();
    assert_eq!(config.client_id.as_deref(), Some("my-client"));
    assert_eq!(config.auth_url.as_deref(), Some("https://auth.example.com/authorize"));
    assert_eq!(config.token_url.as_deref(), Some("https://auth.example.com/token"));
    assert_eq!(config.scopes.as_deref(), Some(&["read".to_owned(), "write".to_owned()][..]));
    let without = caliban(&text(""));
    let problem = without.entry("my-server").status.as_ref().unwrap_err();
    assert!(problem.message.contains("oauth_config"), "{problem:?}");
    assert_eq!(without.fatal().count(), 0);
}

#[test]
fn c17_the_older_file_counts_only_where_no_settings_name_a_server() {
    let file = |path, scope, text: &str| SourceFile::new(path, scope, text);
    let user = || {
        file(
            "/u/caliban/mcp.toml",
            Scope::User,
            "[server.a]\ncommand = \"user\"\nargs = [\"x\"]\n[server.b]\ncommand = \"user\"",
        )
    };
    let project = || file(".caliban/mcp.toml", Scope::Project, "[server.a]\ncommand = \"project\"");
    let settings = |text| file("/u/caliban/settings.toml", Scope::User, text);
    let loaded = load_files(&[user(), project(), settings("[ui]\ntheme = \"dark\"")]);
    assert_eq!(loaded.problems, []);
    let program = loaded.program("a");
    assert_eq!((program.command.as_str(), program.args.len()), ("project", 0));
    assert_eq!(loaded.program("b").command, "user");
    let loaded = load_files(&[user(), project(), settings("[mcp_servers.c]\ncommand = \"c\"")]);
    assert_eq!(loaded.config.servers.len(), 1);
    assert_eq!(loaded.problems.len(), 2, "both are said not to be used");
    assert_eq!(loaded.of(Severity::Error).len(), 0);
}

#[test]
fn c20_rules_of_a_server_in_the_older_file() {
    let loaded = at(
        ".caliban/mcp.toml",
        "[server.linear]\ncommand = \"run\"\n[server.linear.permissions]\nallow = [\"read_*\", \"list_*\"]\ndeny = [\"delete_*\"]\nask = [\"create_*\", \"update_*\"]",
    );
    assert_eq!(loaded.problems, []);
    let server = loaded.entry("linear").status.as_ref().unwrap();
    let patterns = |verdict| {
        let list = server.permissions.list(verdict).iter();
        list.map(|rule| rule.pattern.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(patterns(Verdict::Allow), ["read_*", "list_*"]);
    assert_eq!(patterns(Verdict::Ask), ["create_*", "update_*"]);
    assert_eq!(patterns(Verdict::Deny), ["delete_*"]);
}
