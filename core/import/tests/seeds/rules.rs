//! Cases in which the programs' documents differ or say nothing.

use std::time::Duration;

use capstan_config::{Dialect, Fallback, Scope, Severity, SourceFile};

use capstan_policy::DefaultRule;

use crate::{Ask, at, load_files, zeph};

#[test]
fn files_of_avelino_and_zeph_allow_what_nobody_speaks_of_but_only_for_their_own_servers() {
    let theirs = r#"{ "mcpServers": { "a": { "command": "x", "idle_timeout": "never" } } }"#;
    let native = |text| SourceFile::new("config.toml", Scope::User, text);
    let default = |files: &[SourceFile], file| {
        let loaded = load_files(files);
        loaded.config.permissions.default_for(file).map(DefaultRule::as_str)
    };
    let user = SourceFile::new("s.json", Scope::User, theirs);
    let files = [user.clone(), native("[servers.b]\ncommand = \"x\"")];
    assert_eq!(default(&files, "s.json"), Some("allow"));
    assert_eq!(default(&files, "config.toml"), None);
    let files = [user, native("[permissions]\ndefault = \"deny\"")];
    assert_eq!(default(&files, "s.json"), Some("deny"), "what somebody wrote comes first");
    let project = SourceFile::new("p.json", Scope::Project, theirs);
    assert_eq!(default(&[project], "p.json"), None, "a project does not loosen by its dialect");
}

#[test]
fn dec4_both_ways_to_reach_a_server() {
    let both = r#""command": "x", "url": "https://h/mcp""#;
    for (path, kind) in [
        ("/home/me/.config/mcp/servers.json", Some("stdio")),
        (".llxprt/settings.json", Some("sse")),
        (".mcp.json", None),
        (".cursor/mcp.json", None),
        ("x.json", None),
    ] {
        let loaded = at(path, &format!("{{ \"mcpServers\": {{ \"a\": {{ {both} }} }} }}"));
        let found = loaded.entry("a").status.as_ref().ok().map(|server| server.kind.as_str());
        assert_eq!(found, kind, "{path}");
        assert_eq!(loaded.problems.len(), 1, "{path}: {:?}", loaded.problems);
    }
}

#[test]
fn a_url_alone_is_tried_as_its_file_or_its_end_says() {
    for (path, url, kind) in [
        ("/home/me/.config/mcp/servers.json", "https://h/mcp", "http"),
        ("/home/me/.config/mcp/servers.json", "https://h/sse", "sse"),
        (".gemini/settings.json", "https://h/mcp", "sse"),
        (".cursor/mcp.json", "https://h/mcp", "http"),
        (".cursor/mcp.json", "https://h/sse/", "sse"),
        ("x.json", "https://h/sse?x=1", "sse"),
        ("x.json", "https://h/ssex", "http"),
    ] {
        let text = format!("{{ \"mcpServers\": {{ \"a\": {{ \"url\": \"{url}\" }} }} }}");
        let loaded = at(path, &text);
        let (found, remote) = loaded.remote("a");
        assert_eq!((found, remote.fallback), (kind, Fallback::OtherTransport), "{path} {url}");
    }
}

#[test]
fn a_file_that_several_programs_could_have_written_is_read_by_our_own_rules() {
    let text = r#"{
        "$schema": "x", "theme": "dark",
        "mcpServers": {
            "a": { "command": "${CAPSTAN_PROJECT_DIR}/a", "timeout": "5s" },
            "b": { "command": "b", "timeout": 5000 },
            "c": { "comand": "c" }
        },
        "permissions": { "deny": ["x"] }
    }"#;
    let loaded = at("mine.json", text);
    assert_eq!(loaded.program("a").command, "/project/a");
    assert!(loaded.entry("b").status.is_err() && loaded.entry("c").status.is_err());
    assert_eq!(loaded.config.permissions.rules.deny.len(), 1);
    assert_eq!(loaded.of(Severity::Warning).len(), 1, "`theme` is said not to be used");
    assert_eq!(loaded.fatal().count(), 0);
    let mut named = SourceFile::new("mine.json", Scope::Flag, text);
    named.dialect = Some(Dialect::Claude);
    assert_eq!(load_files(&[named]).entry("b").status.as_ref().unwrap().timeout.as_secs(), 5);
}

#[test]
fn forms_of_variables_are_never_mixed() {
    for (path, text, expected) in [
        (".mcp.json", "${EMPTY}$EMPTY${env:EMPTY}{env:EMPTY}", "$EMPTY${env:EMPTY}{env:EMPTY}"),
        (".cursor/mcp.json", "${EMPTY}$EMPTY${env:EMPTY}{env:EMPTY}", "${EMPTY}$EMPTY{env:EMPTY}"),
        (".gemini/settings.json", "${EMPTY}$EMPTY${env:EMPTY}%EMPTY%x%20%", "${env:EMPTY}x%20%"),
    ] {
        let text = format!(
            "{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\", \"args\": [\"{text}\"] }} }} }}"
        );
        assert_eq!(at(path, &text).program("a").args, [expected], "{path}");
    }
    let opencode =
        r#"{ "mcp": { "a": { "type": "local", "command": ["x", "${EMPTY}{env:EMPTY}"] } } }"#;
    assert_eq!(at("opencode.json", opencode).program("a").args, ["${EMPTY}"]);
    let codex = "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"${EMPTY}\"]\nenabled = true";
    assert_eq!(at(".codex/config.toml", codex).program("a").args, ["${EMPTY}"]);
    let goose = "extensions:\n  a:\n    type: stdio\n    cmd: x\n    args: ['${ EMPTY }$EMPTY${EMPTY:-d}']\n";
    assert_eq!(at("goose/config.yaml", goose).program("a").args, ["${EMPTY:-d}"]);
}

#[test]
fn numbers_take_the_unit_of_their_file_and_mistaken_ones_are_doubted() {
    let json = |path: &str, number: &str| {
        at(
            path,
            &format!(
                "{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\", \"timeout\": {number} }} }} }}"
            ),
        )
    };
    let toml = |number: &str| {
        zeph(&format!(
            "[[mcp.servers]]\nid = \"a\"\ncommand = \"x\"\ntrust_level = \"trusted\"\ntimeout = {number}"
        ))
    };
    for (loaded, milliseconds, doubted) in vec![
        (json(".llxprt/settings.json", "30000"), 30_000, 0),
        (json(".llxprt/settings.json", "30"), 30, 1),
        (json(".mcp.json", "30000"), 30_000, 0),
        (json(".mcp.json", "30"), 60_000, 1),
        (toml("30"), 30_000, 0),
        (toml("30000"), 30_000_000, 1),
        (toml("5000"), 5_000_000, 1),
        (toml("3600"), 3_600_000, 0),
        (toml("2.5"), 2_500, 0),
    ] {
        let timeout = loaded.entry("a").status.as_ref().unwrap().timeout;
        assert_eq!(timeout, Duration::from_millis(milliseconds));
        assert_eq!(loaded.problems.len(), doubted, "{:?}", loaded.problems);
    }
    for number in ["0", "-5", "\"soon\""] {
        assert_eq!(json(".llxprt/settings.json", number).of(Severity::Error).len(), 1, "{number}");
    }
}

#[test]
fn a_key_that_is_not_known_warns_but_refuses_where_it_seems_to_restrict() {
    for (key, severity) in [
        (r#""colour": "red""#, Severity::Warning),
        (r#""alwaysAllow": ["x"]"#, Severity::Warning),
        (r#""deniedTools": ["x"]"#, Severity::Error),
        (r#""excludeTool": ["x"]"#, Severity::Error),
        (r#""sandboxed": true"#, Severity::Error),
        (r#""oauth": { "clientid": "x" }"#, Severity::Error),
    ] {
        let text = format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\", {key} }} }} }}");
        let loaded = at(".mcp.json", &text);
        let [problem] = loaded.problems.as_slice() else { panic!("{key}: {:?}", loaded.problems) };
        assert_eq!(problem.severity, severity, "{key}");
        assert_eq!(loaded.entry("a").usable().is_some(), severity == Severity::Warning, "{key}");
    }
}

#[test]
fn lists_of_tools_that_share_the_project_file_are_honoured() {
    let text = r#"{ "mcpServers": {
        "a": { "type": "local", "command": "x", "tools": ["*"] },
        "b": { "command": "x", "tools": ["get", "set"], "disabledTools": ["set"] }
    } }"#;
    let loaded = at(".mcp.json", text);
    assert_eq!(loaded.problems, []);
    let lists = |name| {
        let server = loaded.entry(name).status.as_ref().unwrap();
        (server.expose.clone().map(|list| list.len()), server.hide.len())
    };
    assert_eq!((lists("a"), lists("b")), ((None, 0), (Some(2), 1)));
}

#[test]
fn an_entry_that_starts_capstan_itself_is_left_out_with_a_note() {
    for (command, args, kept) in [
        ("capstan", r#"["serve"]"#, 0),
        ("/opt/bin/capstan", r#"["--config", "x", "serve", "--http"]"#, 0),
        ("C:\\\\bin\\\\capstan.exe", r#"["serve"]"#, 0),
        ("capstan", r#"["demo"]"#, 1),
        ("capstan-tools", r#"["serve"]"#, 1),
        ("npx", r#"["serve"]"#, 1),
    ] {
        let text = format!(
            "{{ \"mcpServers\": {{ \"hub\": {{ \"command\": \"{command}\", \"args\": {args} }} }} }}"
        );
        let loaded = at(".mcp.json", &text);
        assert_eq!(
            (loaded.config.servers.len(), loaded.problems.len()),
            (kept, 1 - kept),
            "{command}"
        );
    }
}

#[test]
fn a_project_cannot_let_its_servers_ask_where_the_user_says_that_none_may() {
    let user = SourceFile::new("u.toml", Scope::User, "[mcp]\nelicitation_enabled = false");
    let theirs = "[[mcp.servers]]\nid = \"a\"\ncommand = \"x\"\nelicitation_enabled = true";
    for scope in [Scope::Project, Scope::Flag] {
        let loaded = load_files(&[user.clone(), SourceFile::new("z.toml", scope, theirs)]);
        let asks = loaded.entry("a").status.as_ref().unwrap().elicitation;
        assert_eq!(asks, Some(scope == Scope::Flag), "{scope:?}");
    }
}
