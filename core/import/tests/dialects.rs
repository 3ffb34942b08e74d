//! Files as other programs have them: what becomes of every key, where it comes from, and that no
//! secret is shown on the way.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use capstan_config::{Dialect, Loaded, Scope, SourceFile, Surroundings, load, show};
use capstan_import::AllDialects;
use capstan_import::detect;
use capstan_model::ServerName;
use proptest::prelude::*;

/// A file with its path and dialect.
const FILES: &[(&str, &str, Dialect)] = &[
    ("caliban.toml", ".caliban/settings.toml", Dialect::Caliban),
    ("caliban-legacy.toml", "/home/me/.config/caliban/mcp.toml", Dialect::Caliban),
    ("avelino.json", "/home/me/.config/mcp/servers.json", Dialect::Avelino),
    ("zeph.toml", "/home/me/.config/zeph/config.toml", Dialect::Zeph),
    ("llxprt.json", "/home/me/.llxprt/settings.json", Dialect::Llxprt),
    ("claude.json", "/home/me/.claude.json", Dialect::Claude),
    ("codex.toml", "/home/me/.codex/config.toml", Dialect::Codex),
    ("vscode.json", ".vscode/mcp.json", Dialect::VsCode),
    ("cursor.json", "/home/me/.cursor/mcp.json", Dialect::Cursor),
    ("goose.yaml", "/home/me/.config/goose/config.yaml", Dialect::Goose),
    ("zed.json", "/home/me/.config/zed/settings.json", Dialect::Zed),
    ("opencode.jsonc", "opencode.jsonc", Dialect::OpenCode),
    ("opencode-v2.json", "opencode.json", Dialect::OpenCode),
];

/// Secrets that no output may contain: those in the files, and those of the environment.
const CANARIES: [&str; 2] = ["canary-literal", "canary-variable"];

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "BLANK" => Some(String::new()),
        "ENV_NAME" => Some("CHOSEN_NAME".to_owned()),
        "NOT_SET" | "literal" | "REGION" | "LEVEL" | "MY_CLIENT_ID" => None,
        name if name.starts_with("CAPSTAN") || name.starts_with("MCP") => None,
        name if name.starts_with("CALIBAN") => None,
        _ => Some("canary-variable".to_owned()),
    }
}

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn load_files(files: &[SourceFile]) -> Loaded {
    load(files, &Surroundings { variable: &variable, project_dir: "/project" }, &AllDialects)
}

/// Everything that people are told about a configuration.
fn told(loaded: &Loaded) -> String {
    let mut text = String::new();
    for entry in loaded.config.servers.values() {
        let target = match &entry.status {
            Ok(server) => format!("{} {}", server.kind.as_str(), server.target),
            Err(problem) => format!("broken: {}", problem.message),
        };
        let switch = if entry.enabled { "" } else { " (off)" };
        let _ = writeln!(text, "{} [{}]{switch} {target}", entry.name, entry.display);
    }
    text.push('\n');
    for problem in &loaded.problems {
        let line = problem.place.as_ref().map_or(0, |place| place.line);
        let help = problem.help.as_deref().unwrap_or("NO REMEDY");
        let _ = writeln!(text, "{line} {}: {}", problem.severity.as_str(), problem.message);
        let _ = writeln!(text, "    {help}");
    }
    text.push('\n');
    // Defaults are the same for all dialects.
    for shown in show(loaded).iter().filter(|shown| shown.origin != "default") {
        let _ = writeln!(text, "{} = {} ({})", shown.key, shown.value, shown.origin);
    }
    text
}

#[test]
fn every_file_is_known_by_its_content_and_every_key_has_a_meaning() {
    for (name, path, dialect) in FILES {
        let text = fixture(name);
        assert_eq!(detect(path, &text).unwrap(), *dialect, "{name}");
        let loaded = load_files(&[SourceFile::new(*path, Scope::User, text)]);
        let told = told(&loaded);
        for canary in CANARIES {
            assert!(!told.contains(canary), "{name} shows a secret:\n{told}");
            let debug = format!("{loaded:?}");
            assert!(!debug.contains(canary), "{name} shows a secret in its debug output");
        }
        insta::assert_snapshot!(*name, told);
    }
}

#[test]
fn every_file_is_read_the_same_when_its_dialect_is_named() {
    for (name, path, dialect) in FILES {
        let found = SourceFile::new(*path, Scope::User, fixture(name));
        let mut named = SourceFile::new(*path, Scope::User, fixture(name));
        named.dialect = Some(*dialect);
        assert_eq!(told(&load_files(&[found])), told(&load_files(&[named])), "{name}");
    }
}

#[test]
fn the_user_can_switch_off_servers_of_the_projects_own_file() {
    let user = SourceFile::new("/home/me/.claude.json", Scope::User, fixture("claude.json"));
    let servers = r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#;
    let project = SourceFile::new("/project/.mcp.json", Scope::Project, servers);
    let loaded = load_files(&[user, project]);
    let on =
        |name: &str| loaded.config.servers[&name.parse::<ServerName>().unwrap()].usable().is_some();
    assert!(on("a") && !on("b"));
}

fn anything(dialect: Dialect, path: &str, text: &str) {
    let mut file = SourceFile::new(path, Scope::Project, text);
    file.dialect = Some(dialect);
    for problem in load_files(&[file]).problems {
        assert!(problem.help.is_some(), "{dialect:?} {text}: {problem:?}");
        if let Some(place) = problem.place {
            assert!(place.start + place.len <= text.len(), "a place outside of {text}");
        }
    }
}

proptest! {
    #[test]
    fn no_dialect_panics_on_any_text(text in ".{0,120}") {
        for path in ["f", "f.json", "f.toml", "f.yaml"] {
            anything(Dialect::Native, path, &text);
            anything(Dialect::Goose, path, &text);
            anything(Dialect::Claude, path, &format!("{{{text}}}"));
        }
    }

    #[test]
    fn no_dialect_panics_on_any_value_under_any_key(
        container in prop::sample::select(vec![
            "mcpServers", "servers", "mcp", "context_servers", "mcp_servers", "server", "extensions",
        ]),
        key in prop::sample::select(vec![
            "type", "command", "url", "httpUrl", "args", "env", "timeout", "trust", "oauth", "auth",
            "tools", "policy", "permissions", "includeTools", "env_vars", "env_http_headers", "roots",
            "env_keys", "cmd", "sandbox", "headers", "tool_acl", "idle_timeout", "enabled", "id",
        ]),
        value in prop::sample::select(vec![
            "1", "-1", "1e99", "true", "null", "\"\"", "\"ü${\"", "\"${A:-b}\"", "\"{env:A}\"", "[]",
            "[[1]]", "[null]", "[{}]", "{}", "{ \"a\": 1 }", "{ \"a\": { \"b\": [] } }",
        ]),
    ) {
        let text = format!("{{ \"{container}\": {{ \"x\": {{ \"{key}\": {value} }} }} }}");
        for dialect in Dialect::ALL {
            anything(dialect, "f", &text);
        }
    }
}
