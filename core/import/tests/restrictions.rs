//! Restrictions of other programs' files: an import carries each of them, or leaves the server out.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use capstan_config::{Dialect, Scope, SourceFile, Surroundings, load};
use capstan_import::servers::{ClientRules, Plan, Projects, Secrets, State, find, plan};
use capstan_import::{AllDialects, Client};

fn native(text: &str) -> SourceFile {
    let dialect = Some(Dialect::Native);
    SourceFile { dialect, ..SourceFile::new("config.toml", Scope::User, text) }
}

fn planned(client: Client, text: &str, file: &str) -> Plan {
    let source = SourceFile::new(path_of(client), Scope::User, text);
    plan(
        find(client, &source, Projects::Only("/p"), &ClientRules::default()),
        &native(file),
        Secrets::Keep,
    )
    .unwrap()
}

fn path_of(client: Client) -> &'static str {
    match client {
        Client::Zeph | Client::Caliban | Client::Codex => "f.toml",
        Client::Goose => "f.yaml",
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::VsCode
        | Client::Gemini
        | Client::Llxprt
        | Client::Zed
        | Client::OpenCode
        | Client::Windsurf
        | Client::Avelino => "f.json",
    }
}

/// The native file after an import, which must be free of errors.
#[track_caller]
fn imported(client: Client, text: &str) -> String {
    let plan = planned(client, text, "");
    let written = plan.apply("").unwrap();
    let around = Surroundings { variable: &|_| None, project_dir: "/p" };
    let problems = load(&[native(&written)], &around, &AllDialects).problems;
    assert!(problems.is_empty(), "{written}\n{problems:?}");
    written
}

#[track_caller]
fn carries(client: Client, text: &str, expected: &str) {
    let written = imported(client, text);
    assert!(written.contains(expected), "{text}\nbecame\n{written}");
}

#[track_caller]
fn stops(client: Client, text: &str, reason: &str) {
    let plan = planned(client, text, "");
    assert_eq!(plan.names().count(), 0, "{text}");
    let states: Vec<&State> = plan.rows.iter().map(|row| &row.state).collect();
    let is_said =
        matches!(&states[..], [State::Unusable { reason: said }] if said.contains(reason));
    assert!(is_said, "{states:?}");
    assert!(plan.limits.is_empty());
}

fn zeph(tables: &str) -> String {
    format!("{tables}\n[[mcp.servers]]\nid = \"fs\"\ncommand = \"npx\"\n")
}

/// Issue "First hour" 2, rows C45, C49 and C50: Zeph's quota, denies and list of commands.
#[test]
fn restrictions_of_a_zeph_file_are_carried() {
    for (tables, expected) in [
        ("[tools]\nmax_tool_calls_per_session = 7", "\n[tools]\nmax_tool_calls_per_session = 7\n"),
        (
            "[tools.authorization]\nenabled = true\n[[tools.authorization.rules]]\naction = \"allow\"\ntools = [\"read_file\"]\n[[tools.authorization.rules]]\naction = \"deny\"\ntools = [\"shell\", \"fs:rm_*\", \"other__*\"]\ncomment = \"never\"",
            "permissions = { deny = [{ pattern = \"shell\", reason = \"never\" }, { pattern = \"rm_*\", reason = \"never\" }, { pattern = \"other__*\", reason = \"never\" }] }",
        ),
        (
            "[tools.policy]\ndeny = [\"*delete*\"]\nask = [\"fs__w*\"]",
            "permissions = { deny = [\"*delete*\"], ask = [\"w*\"] }",
        ),
        ("[tools.policy]\ndeny = [\"f*\"]", "permissions = { deny = [\"*\"] }"),
        ("[tools.policy]\ndeny = [\"run:command=rm *\"]", "deny = [\"run:command=rm *\"]"),
        (
            "[mcp]\nallowed_commands = [\"npx\", \"uvx\"]",
            "\n[mcp]\nallowed_commands = [\"npx\", \"uvx\"]\n",
        ),
        ("[mcp]\nmax_dynamic_servers = 2", "\n[mcp]\nmax_dynamic_servers = 2\n"),
        ("[mcp]\nelicitation_queue_capacity = 3", "\n[mcp]\nelicitation_queue = 3\n"),
        ("[mcp]\nelicitation_enabled = false", "elicitation = false"),
    ] {
        carries(Client::Zeph, &zeph(tables), expected);
    }
    let off = zeph("[[tools.authorization.rules]]\naction = \"deny\"\ntools = [\"shell\"]");
    assert!(!imported(Client::Zeph, &off).contains("deny"), "disabled rules deny nothing");
}

/// Issue "First hour" 2.
#[test]
fn a_server_whose_restrictions_cannot_be_carried_is_not_imported() {
    let order = "[tools.authorization]\nenabled = true\n[[tools.authorization.rules]]\naction = \"allow\"\ntools = [\"list_*\"]\n[[tools.authorization.rules]]\naction = \"deny\"\ntools = [\"*\"]";
    for (tables, reason) in [
        (
            "[mcp]\nallowed_commands = [\"uvx\"]",
            "`mcp.allowed_commands` of its file does not list `npx`",
        ),
        ("[mcp]\nallowed_commands = []", "does not list `npx`"),
        (order, "`tools.authorization` allows `list_*` before `deny` applies to `*`"),
        ("[tools.policy]\ndeny = [\"{f,g}*\"]", "cannot be reduced to one server"),
        ("[tools.policy]\ndeny = \"x\"", "must be a list"),
        ("[tools.policy]\ndeny = [\"${UNSET}\"]", "UNSET"),
        ("[tools]\nmax_tool_calls_per_session = \"many\"", "max_tool_calls_per_session"),
    ] {
        stops(Client::Zeph, &zeph(tables), reason);
    }
    let caliban =
        |rules: &str| format!("[permissions]\n{rules}\n[mcp_servers.a]\ncommand = \"x\"\n");
    stops(Client::Caliban, &caliban("ask = [\"Elicit(a)\"]"), "restricts all of its servers");
    stops(Client::Caliban, &caliban("deny = [1]"), "is not a pattern");
    let avelino = r#"{"mcpServers": {"a": {"command": "x"}}, "acl": {"default": "deny"}}"#;
    stops(Client::Avelino, avelino, "`access` of its file restricts all of its servers");
    let zed = r#"{"agent": {"tool_permissions": {"tools": {"mcp:a:t": "deny"}}}, "context_servers": {"a": {"command": "x"}}}"#;
    stops(Client::Zed, zed, "must be a table");
    stops(
        Client::Goose,
        "GOOSE_MODE: careful\nextensions:\n  a: {type: stdio, cmd: x, enabled: true}\n",
        "GOOSE_MODE",
    );
    stops(
        Client::Llxprt,
        r#"{"mcp": {"excluded": "a"}, "mcpServers": {"a": {"command": "x"}}}"#,
        "list of servers",
    );
    stops(
        Client::Cursor,
        r#"{"mcpServers": {"a": {"command": "x", "allowedTools": ["t"]}}}"#,
        "seems to restrict",
    );
}

#[test]
fn rules_for_all_servers_of_other_programs_are_carried() {
    let caliban =
        |rules: &str| format!("[permissions]\n{rules}\n[mcp_servers.a]\ncommand = \"x\"\n");
    carries(
        Client::Caliban,
        &caliban("deny = [\"mcp__a__x\", \"b.c\"]"),
        "deny = [\"x\", \"b.c\"]",
    );
    carries(Client::Caliban, &caliban("deny = [\"Elicit(*)\"]"), "elicitation = false");
    carries(
        Client::Caliban,
        &caliban(
            "ask = [{ pattern = \"a__t\", effect = \"write\", expires_at = 2090-01-01T00:00:00Z }]",
        ),
        "ask = [{ pattern = \"t\", expires_at = \"2090-01-01T00:00:00Z\", effect = \"write\" }]",
    );
    let goose = |mode: &str| {
        format!("GOOSE_MODE: {mode}\nextensions:\n  a: {{type: stdio, cmd: x, enabled: true}}\n")
    };
    carries(Client::Goose, &goose("approve"), "permissions = { ask = [\"*\"] }");
    carries(Client::Goose, &goose("chat"), "permissions = { deny = [\"*\"] }");
    carries(
        Client::Goose,
        &goose("smart_approve"),
        "ask = [{ pattern = \"*\", effect = \"write\" }]",
    );
    assert!(!imported(Client::Goose, &goose("auto")).contains("permissions"));
    let opencode = |more: &str| {
        format!(r#"{{"mcp": {{"a": {{"type": "local", "command": ["x"]}}}}, {more}}}"#)
    };
    carries(
        Client::OpenCode,
        &opencode(r#""tools": {"*_delete": false}"#),
        "hide = [\"*_delete\", \"delete\"]",
    );
    carries(Client::OpenCode, &opencode(r#""permission": "ask""#), "ask = [\"*\"]");
    carries(Client::OpenCode, &opencode(r#""permission": {"a_*": "deny"}"#), "deny = [\"*\"]");
    carries(
        Client::Cursor,
        r#"{"mcpServers": {"a": {"command": "x", "enabled": false}}}"#,
        "enabled = false",
    );
}

/// Issue "First hour" 2: `trust: true` stays, as `capstan add --trust` writes it.
#[test]
fn what_a_user_lets_run_without_asking_is_carried_and_said() {
    let llxprt = r#"{"mcpServers": {"a": {"command": "x", "trust": true}}}"#;
    carries(Client::Llxprt, llxprt, "permissions = { allow = [\"*\"] }");
    let plan = planned(Client::Llxprt, llxprt, "");
    let note = "`mcpServers.a.trust` is imported: its tools may run without asking";
    assert!(plan.rows[0].notes[0].starts_with(note), "{:?}", plan.rows[0].notes);
    let codex = "[mcp_servers.a]\ncommand = \"x\"\ntools.get.approval_mode = \"approve\"\n";
    carries(Client::Codex, codex, "permissions = { allow = [\"get\"] }");
}

#[test]
fn a_project_lets_nothing_run_without_asking() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "trust": true}}}"#;
    let source = SourceFile::new("f.json", Scope::Project, text);
    let found = find(Client::Llxprt, &source, Projects::Only("/p"), &ClientRules::default());
    let plan = plan(found, &native(""), Secrets::Reference).unwrap();
    assert!(!plan.apply("").unwrap().contains("permissions"));
    let note = "a project cannot allow calls by itself";
    assert!(plan.rows[0].notes[0].contains(note), "{:?}", plan.rows[0].notes);
}

/// Issue "First hour" 2: LLxprt servers with one target and different restrictions.
#[test]
fn servers_of_one_target_stay_apart_where_their_restrictions_differ() {
    let text = r#"{"mcpServers": {
        "all": {"command": "x"},
        "same": {"command": "x", "args": []},
        "slow": {"command": "x", "timeout": 90000},
        "safe": {"command": "x", "includeTools": ["a"]},
        "safer": {"command": "x", "includeTools": []},
        "less": {"command": "x", "excludeTools": ["b"]}
    }}"#;
    let plan = planned(Client::Llxprt, text, "");
    let names: Vec<&str> = plan.names().collect();
    assert_eq!(names, ["all", "slow", "safe", "safer", "less"]);
    assert_eq!(plan.rows[1].state, State::Same { name: "all".to_owned(), apart_from: Vec::new() });
    let written = plan.apply("").unwrap();
    assert_eq!(planned(Client::Llxprt, text, &written).names().count(), 0, "again:\n{written}");
}

/// A server that the operator has changed since is kept, and the plan names the differences.
#[test]
fn a_server_of_the_same_name_that_is_there_already_is_kept() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "timeout": 5000}}}"#;
    let plan = planned(Client::Llxprt, text, "[servers.a]\ncommand = \"x\"\nexpose = [\"t\"]\n");
    let apart_from = ["timeout", "startup_timeout", "expose"].map(str::to_owned).to_vec();
    assert_eq!(plan.rows[0].state, State::Same { name: "a".to_owned(), apart_from });
}

#[test]
fn of_one_server_in_two_clients_the_more_restricted_one_stays_apart() {
    let found = |client: Client, text: &str| {
        let source = SourceFile::new(path_of(client), Scope::User, text);
        find(client, &source, Projects::Only("/p"), &ClientRules::default())
    };
    let mut all = found(Client::Cursor, r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    all.extend(found(
        Client::Llxprt,
        r#"{"mcpServers": {"a": {"command": "x", "excludeTools": ["t"]}}}"#,
    ));
    all.extend(found(
        Client::Gemini,
        r#"{"mcpServers": {"a": {"command": "x", "timeout": 9000}}}"#,
    ));
    let plan = plan(all, &native(""), Secrets::Keep).unwrap();
    assert_eq!(plan.names().collect::<Vec<_>>(), ["a", "a-llxprt"]);
}

#[test]
fn the_smaller_limit_applies_and_a_list_of_commands_stops_no_server_that_is_there() {
    let text = zeph("[mcp]\nallowed_commands = [\"npx\"]\n[tools]\nmax_tool_calls_per_session = 7");
    let check = |file: &str, expected: &str| {
        let written = planned(Client::Zeph, &text, file).apply(file).unwrap();
        assert!(written.contains(expected), "{written}");
    };
    let file = "[servers.a]\ncommand = \"bash\"\n";
    check(file, "allowed_commands = [\"npx\", \"bash\"]");
    check(
        &format!("{file}[tools]\nmax_tool_calls_per_session = 9 # mine\n"),
        "max_tool_calls_per_session = 7 # mine",
    );
    check(
        &format!("{file}[tools]\nmax_tool_calls_per_session = 5\n"),
        "max_tool_calls_per_session = 5\n",
    );
    check(
        &format!("{file}[mcp]\nallowed_commands = [\"npx\", \"bash\"]\n"),
        "allowed_commands = [\"npx\", \"bash\"]\n",
    );
    let limits = planned(Client::Zeph, &text, file).limits;
    assert_eq!(limits[0].to_string(), "tools.max_tool_calls_per_session = 7");
}

#[test]
fn a_name_that_two_servers_have_stops_no_other_server() {
    let text = r#"{"mcpServers": {
        "a b": {"command": "x"}, "a-b": {"command": "y", "url": 1}, "c": {"command": "z"}
    }}"#;
    let plan = planned(Client::Cursor, text, "");
    assert_eq!(plan.names().collect::<Vec<_>>(), ["a b", "c"]);
    let reason = "`a b` in its file has the same name, `a-b`; rename one of them".to_owned();
    assert_eq!(plan.rows[1].state, State::Unusable { reason });
    let twice = format!("{}\n{}", zeph(""), zeph("").replace("fs", "other"));
    let plan = planned(Client::Zeph, &format!("{twice}\n{}", zeph("")), "");
    assert_eq!(plan.names().collect::<Vec<_>>(), ["other"]);
    let reason = "there are two servers named `fs` in its file; rename one".to_owned();
    assert_eq!(plan.rows[0].state, State::Unusable { reason });
}

#[test]
fn a_damaged_restriction_of_a_file_still_stops_all_its_servers() {
    let text = "[permissions]\ndeny = 7\n[mcp_servers.a]\ncommand = \"x\"\n";
    stops(Client::Caliban, text, "permissions");
}

/// The plan for Claude Code's servers, with these settings.
fn with_settings(scope: Scope, servers: &str, settings: &str) -> Plan {
    let source = SourceFile::new(".claude.json", scope, servers);
    let settings = SourceFile::new("settings.json", Scope::User, settings);
    let rules = ClientRules::read(&[settings], "/p");
    let found = find(Client::ClaudeCode, &source, Projects::Only("/p"), &rules);
    plan(found, &native(""), Secrets::Keep).unwrap()
}

#[test]
fn rules_of_claude_code_for_tools_become_rules_of_the_server() {
    let servers = r#"{"mcpServers": {"g": {"command": "x"}, "my hub": {"command": "y"}}}"#;
    for (settings, expected) in [
        (
            r#"{"permissions": {"deny": ["mcp__g__delete_repo", "Bash(rm:*)"], "ask": ["mcp__g__push_*"]}}"#,
            "[servers.g]\ncommand = \"x\"\npermissions = { deny = [\"delete_repo\"], ask = [\"push_*\"] }\n\n[servers.\"my hub\"]\ncommand = \"y\"\n",
        ),
        (
            r#"{"permissions": {"deny": ["mcp__my_hub", "mcp__g2"], "allow": ["mcp__g"]}}"#,
            "[servers.g]\ncommand = \"x\"\n\n[servers.\"my hub\"]\ncommand = \"y\"\npermissions = { deny = [\"*\"] }\n",
        ),
        (
            r#"{"permissions": {"ask": ["mcp__*__drop"]}}"#,
            "[servers.g]\ncommand = \"x\"\npermissions = { ask = [\"*__drop\", \"_drop\", \"drop\"] }\n\n[servers.\"my hub\"]\ncommand = \"y\"\npermissions = { ask = [\"*__drop\", \"_drop\", \"drop\"] }\n",
        ),
    ] {
        let plan = with_settings(Scope::User, servers, settings);
        assert_eq!(plan.apply("").unwrap(), expected, "{settings}");
    }
    let denied = r#"{"permissions": {"deny": ["mcp__g__delete_repo"]}}"#;
    let plan = with_settings(Scope::User, servers, denied);
    let note = "`permissions.deny: mcp__g__delete_repo` in settings.json is imported";
    assert_eq!((&plan.rows[0].notes[..], plan.rows[1].notes.len()), (&[note.to_owned()][..], 0));
}

#[test]
fn a_server_that_claude_code_does_not_start_in_a_project_stays_disabled() {
    let servers = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#;
    let off = "[servers.b]\ncommand = \"y\"\nenabled = false\n";
    for settings in [
        r#"{"projects": {"/p": {"disabledMcpjsonServers": ["b"]}}}"#,
        r#"{"projects": {"/p": {"enabledMcpjsonServers": ["a"]}}}"#,
        r#"{"disabledMcpjsonServers": ["b"], "enableAllProjectMcpServers": true}"#,
    ] {
        let written = with_settings(Scope::Project, servers, settings).apply("").unwrap();
        assert_eq!(written, format!("[servers.a]\ncommand = \"x\"\n\n{off}"), "{settings}");
        let written = with_settings(Scope::User, servers, settings).apply("").unwrap();
        assert!(!written.contains("enabled"), "the lists are about a project's file");
    }
    let other = r#"{"projects": {"/q": {"disabledMcpjsonServers": ["b"]}}, "enabledMcpjsonServers": ["a"], "enableAllProjectMcpServers": true}"#;
    assert!(!with_settings(Scope::Project, servers, other).apply("").unwrap().contains("enabled"));
}

#[test]
fn a_server_that_an_unclear_rule_of_claude_code_may_stop_is_not_imported() {
    let servers = r#"{"mcpServers": {"g": {"command": "x"}}}"#;
    for (settings, reason) in [
        (r#"{"permissions": {"deny": ["mcp__g__{a,b}"]}}"#, "cannot be expressed"),
        (
            r#"{"deniedMcpServers": [{"serverName": "g"}]}"#,
            "`deniedMcpServers` in settings.json names it",
        ),
        (r#"{"deniedMcpServers": [{"serverUrl": "https://*"}]}"#, "entries that are not names"),
        (r#"{"allowedMcpServers": [{"serverName": "h"}]}"#, "does not name it"),
        ("{", "settings.json are unknown"),
    ] {
        let plan = with_settings(Scope::User, servers, settings);
        let State::Unusable { reason: said } = &plan.rows[0].state else { panic!("{settings}") };
        assert!(said.contains(reason), "{said}");
    }
    let named = r#"{"allowedMcpServers": [{"serverName": "g"}], "deniedMcpServers": []}"#;
    assert_eq!(with_settings(Scope::User, servers, named).names().count(), 1);
}

/// A server's `ask` comes before its `allow`: a tool that Codex runs without asking is not promised.
#[test]
fn a_tool_is_not_said_to_run_without_asking_where_all_tools_are_asked_about() {
    let codex = "[mcp_servers.a]\ncommand = \"x\"\ndefault_tools_approval_mode = \"prompt\"\n\
                 tools.get.approval_mode = \"approve\"\n";
    let written = imported(Client::Codex, codex);
    assert!(written.contains("permissions = { ask = [\"*\"] }"), "{written}");
    let notes = &planned(Client::Codex, codex, "").rows[0].notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("is not used: `default_tools_approval_mode`"), "{notes:?}");
}

#[test]
fn a_default_comes_after_the_rules_of_a_server_or_is_not_imported() {
    let caliban = |rules: &str, default: &str| {
        format!(
            "[permissions]\ndefault = \"{default}\"\n[mcp_servers.a]\ntype = \"stdio\"\n\
             command = \"x\"\n[mcp_servers.a.permissions]\n{rules}\n"
        )
    };
    for rules in ["ask = [\"get_*\"]", "allow = [\"get_*\"]"] {
        stops(Client::Caliban, &caliban(rules, "deny"), "`permissions.default = \"deny\"`");
    }
    let denied = caliban("deny = [\"get_*\"]", "deny");
    carries(Client::Caliban, &denied, "permissions = { deny = [\"get_*\", \"*\"] }");
    let asked = caliban("allow = [\"get_*\"]", "ask");
    carries(Client::Caliban, &asked, "permissions = { ask = [\"*\"] }");
    let notes = &planned(Client::Caliban, &asked, "").rows[0].notes;
    assert!(notes[0].contains("`permissions.allow` is not imported"), "{notes:?}");
}

#[test]
fn a_list_of_commands_does_not_stop_servers_of_other_files() {
    let mut plan = planned(Client::Zeph, &zeph("[mcp]\nallowed_commands = [\"npx\"]"), "");
    plan.keep_running(["deno", "npx"].into_iter().map(str::to_owned));
    let written = plan.apply("").unwrap();
    assert!(written.contains("allowed_commands = [\"npx\", \"deno\"]"), "{written}");
}

#[test]
fn a_program_with_a_relative_path_is_imported_for_a_project_only() {
    let text = r#"{"mcpServers": {"a": {"command": "./x"}}}"#;
    stops(Client::Cursor, text, "is a relative path");
    let source = SourceFile::new("f.json", Scope::Project, text);
    let found = find(Client::Cursor, &source, Projects::Only("/p"), &ClientRules::default());
    let file = SourceFile { scope: Scope::Project, ..native("") };
    assert_eq!(plan(found, &file, Secrets::Reference).unwrap().names().count(), 1);
}

#[test]
fn a_file_that_is_named_as_one_of_another_program_is_reported() {
    let text = "[mcp_servers.a]\ncommand = \"x\"\n";
    let dialect = Some(Dialect::Claude);
    let file = SourceFile { dialect, ..SourceFile::new("f.toml", Scope::Flag, text) };
    let around = Surroundings { variable: &|_| None, project_dir: "/p" };
    let problems = load(&[file], &around, &AllDialects).problems;
    let said = |piece: &str| problems.iter().any(|problem| problem.message.contains(piece));
    assert!(
        said("`mcp_servers` is not used: servers of this program are in `mcpServers`"),
        "{problems:?}"
    );
}
