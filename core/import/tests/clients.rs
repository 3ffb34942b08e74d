//! The files of clients: what is taken over from them, and our own entry put in and taken out.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use capstan_config::{Dialect, Scope, SourceFile};
use capstan_import::Client;
use capstan_import::clients::{
    ClientConnection, ClientError, Presence, ServerKey, presence, put, put_back, replace, take,
};
use capstan_import::servers::{ClientRules, Found, Plan, Projects, Secrets, State, find, plan};
use proptest::prelude::*;

/// One real-shaped file of each client.
const FILES: [(Client, &str); 14] = [
    (Client::ClaudeCode, "claude-code.json"),
    (Client::ClaudeDesktop, "claude-desktop.json"),
    (Client::Codex, "codex.toml"),
    (Client::Cursor, "cursor.json"),
    (Client::VsCode, "vscode.json"),
    (Client::Gemini, "gemini.json"),
    (Client::Llxprt, "llxprt.json"),
    (Client::Goose, "goose.yaml"),
    (Client::Zed, "zed.json"),
    (Client::OpenCode, "opencode.jsonc"),
    (Client::Windsurf, "windsurf.json"),
    (Client::Caliban, "caliban.toml"),
    (Client::Zeph, "zeph.toml"),
    (Client::Avelino, "avelino.json"),
];

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn stdio() -> ClientConnection {
    let args = vec!["serve".to_owned()];
    ClientConnection::Stdio { command: "/opt/a \"b\"/capstan".to_owned(), args }
}

fn http() -> ClientConnection {
    ClientConnection::Http { url: "http://127.0.0.1:7777/mcp".to_owned() }
}

fn native(text: &str) -> SourceFile {
    let dialect = Some(Dialect::Native);
    SourceFile { dialect, ..SourceFile::new("config.toml", Scope::User, text) }
}

fn found_in(client: Client, name: &str, text: &str) -> Vec<Found> {
    find(
        client,
        &SourceFile::new(name, Scope::User, text),
        Projects::All("/srv/other"),
        &ClientRules::default(),
    )
}

fn everything() -> Vec<Found> {
    FILES.iter().flat_map(|(client, name)| found_in(*client, name, &fixture(name))).collect()
}

fn told(plan: &Plan) -> String {
    let mut text = String::new();
    for row in &plan.rows {
        let (client, server, target) = (row.client.as_str(), &row.server, &row.target);
        let _ = writeln!(text, "{client} {server} | {target} | {:?}", row.state);
        for note in &row.notes {
            let _ = writeln!(text, "    {note}");
        }
    }
    for variable in &plan.variables {
        let _ = writeln!(text, "{variable:?}");
    }
    text
}

/// The servers of a client's file that can be moved.
fn movable(client: Client, name: &str, text: &str) -> Vec<ServerKey> {
    let made = plan(found_in(client, name, text), &native(""), Secrets::Keep).unwrap();
    let moves = |state: &State| matches!(state, State::New { .. } | State::Differs { .. });
    let rows = made.rows.into_iter().filter(|row| moves(&row.state));
    rows.map(|row| ServerKey { project: row.project, server: row.server }).collect()
}

#[test]
fn our_entry_takes_the_place_of_every_clients_servers() {
    for (client, name) in FILES {
        let before = fixture(name);
        let servers = movable(client, name, &before);
        assert!(!servers.is_empty(), "{name}");
        let new = replace(client, name, &before, &servers, Some(&stdio())).unwrap();
        assert_eq!(presence(client, name, &new).unwrap(), Presence::Starts, "{name}");
        assert_eq!(movable(client, name, &new), [], "{name}: {new}");
        // Another program has changed the file in the meantime: the text is not restored as a
        // whole, but every server is back.
        let alone = take(client, name, &new).unwrap().unwrap();
        let back = put_back(client, name, &alone, &servers, &before).unwrap();
        let mut found = movable(client, name, &back);
        found.sort();
        let mut expected = servers.clone();
        expected.sort();
        assert_eq!(found, expected, "{name}: {back}");
        assert_eq!(put_back(client, name, &back, &servers, &before).unwrap(), back, "{name}");
    }
}

#[test]
fn one_of_several_servers_is_replaced_and_the_others_stay() {
    let before = fixture("codex.toml");
    let server = ServerKey { project: None, server: "figma".to_owned() };
    let new = replace(Client::Codex, "codex.toml", &before, &[server], Some(&stdio())).unwrap();
    assert!(!new.contains("figma") && new.contains("[mcp_servers.context7]"), "{new}");
    assert!(new.ends_with("startup_timeout_sec = 60\n"), "{new}");
    let missing = ServerKey { project: None, server: "nothing".to_owned() };
    assert!(replace(Client::Codex, "codex.toml", &before, &[missing], None).is_err());
    let theirs = "[mcp_servers.capstan]\ncommand = \"other\"\n";
    let refused = replace(Client::Codex, "codex.toml", theirs, &[], Some(&stdio()));
    assert!(matches!(refused, Err(ClientError::NotOurs)), "{refused:?}");
}

#[test]
fn clients_with_a_short_limit_on_a_start_get_a_longer_one() {
    for (client, name, text, expected) in [
        (Client::Codex, "config.toml", "", "startup_timeout_sec = 60"),
        (Client::OpenCode, "opencode.json", "{}", "\"timeout\": 60000"),
        (Client::OpenCode, "opencode.json", r#"{"mcp": {"servers": {}}}"#, "\"startup\": 60000"),
    ] {
        let new = put(client, name, text, &stdio()).unwrap();
        assert!(new.contains(expected), "{new}");
    }
    assert!(!put(Client::ClaudeCode, ".claude.json", "{}", &stdio()).unwrap().contains("imeout"));
}

#[test]
fn our_entry_goes_into_every_clients_file_and_out_again_without_a_trace() {
    for (client, name) in FILES {
        let before = fixture(name);
        for way in [stdio(), http()] {
            let new = match put(client, name, &before, &way) {
                Err(ClientError::NoHttp { .. }) => continue,
                new => new.unwrap(),
            };
            assert_ne!(new, before);
            let expected = if way == stdio() { Presence::Starts } else { Presence::Other };
            assert_eq!(presence(client, name, &new).unwrap(), expected, "{name}:\n{new}");
            assert!(matches!(put(client, name, &new, &way), Err(ClientError::NotOurs)), "{name}");
            assert_eq!(take(client, name, &new).unwrap().as_deref(), Some(&*before), "{name}");
        }
        assert_eq!(take(client, name, &before).unwrap(), None, "{name}");
    }
}

#[test]
fn a_file_that_is_empty_or_not_there_gets_our_entry_alone() {
    for (client, name) in FILES {
        let new = put(client, name, "", &stdio()).unwrap();
        assert!(new.ends_with('\n') && !new.starts_with('\n'), "{name}: {new:?}");
        let found = found_in(client, name, &new);
        let plan = plan(found, &native(""), Secrets::Keep).unwrap();
        assert_eq!(plan.rows.len(), 1, "{name}");
        assert_eq!(plan.rows[0].state, State::Itself, "{name}");
    }
}

#[test]
fn what_the_entry_looks_like() {
    let mut text = String::new();
    for (client, name) in FILES {
        for way in [stdio(), http()] {
            let said = put(client, name, "", &way).unwrap_or_else(|error| format!("{error}\n"));
            let _ = writeln!(text, "--- {}\n{said}", client.as_str());
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn odd_but_sound_files_are_changed_as_little_as_can_be() {
    let check = |client, name: &str, before: &str| {
        let new = put(client, name, before, &stdio()).unwrap();
        assert_eq!(new.contains("keep"), before.contains("keep"), "{new}");
        assert_eq!(presence(client, name, &new).unwrap(), Presence::Starts, "{new}");
        assert_eq!(
            presence(client, name, &take(client, name, &new).unwrap().unwrap()).unwrap(),
            Presence::Absent
        );
    };
    check(Client::Cursor, "mcp.json", "\u{feff}{\"mcpServers\":{},\"x\":1 /* keep */}");
    check(Client::Cursor, "mcp.json", "{\"mcpServers\": null}");
    check(Client::Cursor, "mcp.json", "{}");
    check(Client::OpenCode, "opencode.json", "{\"mcp\": {\"servers\": {}, \"timeout\": 1}}");
    check(Client::Codex, "config.toml", "keep = 1");
    check(Client::Codex, "config.toml", "[mcp_servers]\r\nkeep.command = \"x\"\r\n");
    check(Client::Zeph, "config.toml", "[mcp]\n# keep\n");
    check(Client::Goose, "config.yaml", "extensions:\nkeep: 1\n");
    check(Client::Goose, "config.yaml", "extensions: {} # none\n");
    check(Client::Goose, "config.yaml", "extensions: {}\n");
    check(Client::Goose, "config.yaml", "keep: 1");
    check(
        Client::Goose,
        "config.yaml",
        "extensions:\n    keep:\n        type: stdio\n        cmd: x\n",
    );
    check(Client::Caliban, "settings.json", "{\"mcp_servers\": {}}");
}

#[test]
fn a_file_that_cannot_be_changed_safely_is_refused() {
    let check = |client, name: &str, text: &str, expected: &str| {
        let error = put(client, name, text, &stdio()).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert!(error.hint().is_some(), "{error}");
    };
    check(Client::Cursor, "mcp.json", "{\n  \"mcpServers\": {,}\n}", "(mcp.json:2:18)");
    check(Client::Codex, "config.toml", "a = \n", "(config.toml:1:");
    check(Client::Goose, "config.yaml", "a: [\n", "(config.yaml:");
    check(Client::Cursor, "mcp.json", "[]", "must be an object");
    check(Client::Cursor, "mcp.json", "{\"mcpServers\": []}", "`mcpServers` in this file");
    check(Client::Codex, "config.toml", "mcp_servers = {}", "`mcp_servers` in this file");
    check(Client::Zeph, "config.toml", "[mcp]\nservers = []", "`mcp.servers` in this file");
    check(Client::Goose, "config.yaml", "extensions: {a: {cmd: x}}", "`extensions` in this file");
    check(Client::Cursor, "mcp.json", "{\"mcpServers\": {}, \"mcpServers\": {}}", "changed safely");
    let other = "{\"mcpServers\": {\"capstan\": {\"command\": \"other\"}}}";
    check(Client::Cursor, "mcp.json", other, "already in this file");
    assert_eq!(presence(Client::Cursor, "mcp.json", other).unwrap(), Presence::Other);
}

#[test]
fn the_servers_of_every_client_are_found_merged_and_written() {
    let plan = plan(everything(), &native(""), Secrets::Keep).unwrap();
    let text = told(&plan);
    assert!(!text.contains("canary"), "{text}");
    let written = plan.apply("# mine\n").unwrap();
    insta::assert_snapshot!(format!("{text}\n{}", written.replace("canary", "CANARY")));
}

#[test]
fn secrets_become_variables_on_request_and_none_is_left_behind() {
    let plan = plan(everything(), &native(""), Secrets::Reference).unwrap();
    let written = plan.apply("").unwrap();
    assert!(!written.contains("canary"), "{written}");
    for (name, server) in [
        ("GITHUB_PERSONAL_ACCESS_TOKEN", "github"),
        ("GITHUB_PERSONAL_ACCESS_TOKEN_2", "github-cursor"),
        ("DATABASE_URL", "postgres"),
        ("SLACK_TOKEN", "slack"),
        ("FIGMA_API_KEY", "figma-windsurf"),
        ("PERPLEXITY_KEY", "perplexity"),
    ] {
        assert!(written.contains(&format!("${{{name}}}")), "{name}:\n{written}");
        let listed = |v: &capstan_import::servers::Variable| v.name == name && v.server == server;
        assert!(plan.variables.iter().any(listed), "{name}: {:?}", plan.variables);
    }
    assert!(plan.secrets.is_empty());
}

#[test]
fn importing_again_finds_nothing_new() {
    for choice in [Secrets::Keep, Secrets::Reference] {
        let first = plan(everything(), &native(""), choice).unwrap();
        let written = native(&first.apply("").unwrap());
        let again = plan(everything(), &written, Secrets::Keep).unwrap();
        let new: Vec<&str> = again.names().collect();
        assert!(new.is_empty(), "{choice:?}: {new:?}");
    }
}

#[test]
fn of_two_servers_with_one_name_the_second_gets_another() {
    let file = native("[servers.linear]\nurl = \"https://elsewhere.example.com/mcp\"\n");
    let found = found_in(Client::ClaudeCode, "x.json", &fixture("claude-code.json"));
    let plan = plan(found, &file, Secrets::Keep).unwrap();
    let row = plan.rows.iter().find(|row| row.server == "linear").unwrap();
    let (from, name) = ("linear".to_owned(), "linear-claude-code".to_owned());
    assert_eq!(row.state, State::Differs { from, name });
    assert!(plan.apply(&file.text).unwrap().contains("[servers.linear-claude-code]"));
    assert_eq!(plan.secrets, ["github"]);
}

proptest! {
    #[test]
    fn no_text_makes_a_change_fail_otherwise_than_with_a_reason(
        text in "(?s)[ \\n\\r{}\\[\\]\":,=#/*a-c$\u{e4}-]{0,60}",
        before in "(mcpServers|mcp_servers|extensions|\"mcpServers\": )?",
    ) {
        let text = format!("{before}{text}");
        for (client, name) in FILES {
            if let Ok(new) = put(client, name, &text, &stdio()) {
                let taken = take(client, name, &new).map(|taken| taken.is_some());
                prop_assert!(matches!(taken, Ok(true) | Err(ClientError::Unsafe)), "{}", new);
            }
            let found = found_in(client, name, &text);
            prop_assert!(plan(found, &native(""), Secrets::Reference).is_ok());
        }
    }
}

#[test]
fn a_broken_file_is_one_row_with_its_place() {
    let plan = plan(found_in(Client::Cursor, "mcp.json", "{\n x"), &native(""), Secrets::Keep);
    let State::Unusable { reason } = &plan.unwrap().rows[0].state else { unreachable!() };
    assert!(reason.contains("(mcp.json:2:2)"), "{reason}");
}
