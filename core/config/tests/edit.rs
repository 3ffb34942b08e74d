//! Changes to files keep everything that need not change.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::time::Duration;

use capstan_config::edit::{
    EditError, NewProgram, NewRemote, NewServer, NewTarget, Switch, add_permission_rule,
    add_server, allow_effect, remove_server, set_enabled, set_key, unset_key,
};
use capstan_model::{Effect, Verdict};
use proptest::prelude::*;

const FILE: &str = r#"# My servers.

# Issues.
[servers.linear]
command = "npx"   # with spaces
args = [
  "-y",
  "@linear/mcp-server", # the package
]

[servers.linear.permissions]
allow = [
  "list_*", # harmless
  "read_*"
]

# The wiki, not used yet.
[servers."My Wiki"]
url    = 'https://wiki.example.com/mcp'
enabled = false  # until June

# Limits.
[tools]
max_tool_calls_per_session = 5
# The end.
"#;

fn stdio(command: &str) -> NewServer {
    let program = NewProgram { command: command.to_owned(), ..NewProgram::default() };
    NewServer::new(NewTarget::Stdio(program))
}

fn http(url: &str) -> NewServer {
    NewServer::new(NewTarget::Http(NewRemote { url: url.to_owned(), ..NewRemote::default() }))
}

#[test]
fn c71_a_new_server_stands_after_the_others_and_nothing_else_changes() {
    let mut server = stdio("npx");
    let NewTarget::Stdio(program) = &mut server.target else { panic!() };
    program.args = vec!["-y".to_owned(), "a b".to_owned()];
    program.env.insert("API_KEY".to_owned(), "${API_KEY}".to_owned());
    server.description = Some("It \"quotes\"".to_owned());
    server.timeout = Some(Duration::from_secs(5));
    server.trust = true;
    server.expose = vec!["get_*".to_owned()];
    server.hide = vec!["get_secret".to_owned()];
    let edited = add_server(FILE, "my-server", &server).unwrap();
    let added = r#"
[servers.my-server]
command = "npx"
args = ["-y", "a b"]
env = { API_KEY = "${API_KEY}" }
description = 'It "quotes"'
timeout = "5s"
expose = ["get_*"]
hide = ["get_secret"]
permissions = { allow = ["*"] }
"#;
    let (before, after) = FILE.split_at(FILE.find("\n# Limits.").unwrap());
    assert_eq!(edited, format!("{before}{added}{after}"));
}

#[test]
fn a_new_server_in_an_empty_file_or_one_of_comments_comes_last() {
    let added = "[servers.x]\nurl = \"https://h/mcp\"\n";
    for (text, expected) in [
        ("", added.to_owned()),
        ("# Mine.", format!("# Mine.\n\n{added}")),
        ("# Mine.\n\n", format!("# Mine.\n\n\n{added}")),
        ("[tools]\n# End.\n", format!("[tools]\n# End.\n\n{added}")),
    ] {
        assert_eq!(add_server(text, "x", &http("https://h/mcp")).unwrap(), expected);
    }
}

#[test]
fn a_new_server_fits_into_whatever_way_servers_are_written() {
    for text in [
        "servers = { a = { command = \"x\" } }\n",
        "servers.a.command = \"x\"\n[tools]\n",
        "[servers]\na = { command = \"x\" }\n",
        "[servers.a]\ncommand = \"x\"\r\n# c\r\n",
    ] {
        let edited = add_server(text, "b", &stdio("y")).unwrap();
        let table: toml::Table = edited.parse().unwrap();
        assert_eq!(table["servers"]["b"]["command"].as_str(), Some("y"), "{edited}");
        assert_eq!(table["servers"]["a"]["command"].as_str(), Some("x"), "{edited}");
    }
}

#[test]
fn kinds_that_are_not_implied_are_written() {
    let sse = NewTarget::Sse(NewRemote { url: "https://h/sse".to_owned(), ..NewRemote::default() });
    let cli = NewTarget::Cli(NewProgram { command: "git".to_owned(), ..NewProgram::default() });
    for (target, line) in [(sse, "type = \"sse\""), (cli, "type = \"cli\"")] {
        let edited = add_server("", "x", &NewServer::new(target)).unwrap();
        assert!(edited.contains(line), "{edited}");
    }
}

#[test]
fn what_could_not_be_used_is_not_added() {
    let exists =
        |name| matches!(add_server(FILE, name, &stdio("x")), Err(EditError::Exists { .. }));
    assert!(exists("linear") && exists("my-wiki") && exists("LINEAR"));
    assert!(matches!(add_server(FILE, " ", &stdio("x")), Err(EditError::NoName)));
    assert!(matches!(add_server("a = ", "x", &stdio("x")), Err(EditError::Syntax { .. })));
    assert!(matches!(
        add_server("servers = 1", "x", &stdio("x")),
        Err(EditError::Unexpected { .. })
    ));
    for server in [stdio(""), http("example.com"), http("ftp://h")] {
        assert!(matches!(add_server("", "x", &server), Err(EditError::Refused { .. })));
    }
    let mut hijacked = stdio("x");
    let NewTarget::Stdio(program) = &mut hijacked.target else { panic!() };
    program.env.insert("LD_PRELOAD".to_owned(), "evil.so".to_owned());
    assert!(matches!(add_server("", "x", &hijacked), Err(EditError::Refused { .. })));
    assert!(add_server("", "x", &http("${BASE}/mcp")).is_ok(), "variables are not known here");
}

#[test]
fn c72_a_removed_server_takes_its_lines_and_leaves_the_comments_around_it() {
    let edited = remove_server(FILE, "linear").unwrap();
    let expected = r#"# My servers.

# Issues.

# The wiki, not used yet.
[servers."My Wiki"]
url    = 'https://wiki.example.com/mcp'
enabled = false  # until June

# Limits.
[tools]
max_tool_calls_per_session = 5
# The end.
"#;
    assert_eq!(edited, expected);
}

#[test]
fn a_server_is_removed_in_whatever_way_it_is_written() {
    for (text, expected) in [
        ("servers = { a = { command = \"x\" }, b = {} }\n", "servers = { b = {} }\n"),
        (
            "# c\nservers.a.command = \"x\"\nservers.b.command = \"y\"\n",
            "# c\nservers.b.command = \"y\"\n",
        ),
        ("[servers]\n# c\na = { command = \"x\" } # d\nb = {}\n", "[servers]\n# c\nb = {}\n"),
        ("[servers.a]\n[tools]\n[servers.a.env]\nX = \"\"\"\n#\n\"\"\"\n", "[tools]\n"),
        ("[servers.a]\r\ncommand = \"x\"\r\n\r\n[tools]\r\n", "[tools]\r\n"),
    ] {
        let edited = remove_server(text, "a").unwrap();
        assert_eq!(edited, expected);
    }
}

#[test]
fn an_unknown_server_is_answered_with_the_nearest_name() {
    let error = remove_server(FILE, "liner").unwrap_err();
    assert_eq!(error.to_string(), "no server named `liner` in this file");
    assert_eq!(error.hint().as_deref(), Some("did you mean `linear`?"));
    assert!(set_enabled("", "x", Switch::On).unwrap_err().hint().is_none());
    assert!(add_permission_rule(FILE, Verdict::Deny, "x", Some("nobody")).is_err());
}

#[test]
fn switching_changes_one_word() {
    let on = set_enabled(FILE, "my-wiki", Switch::On).unwrap();
    assert_eq!(on, FILE.replace("enabled = false  # until", "enabled = true  # until"));
    let off = set_enabled(FILE, "linear", Switch::Off).unwrap();
    assert_eq!(off, FILE.replace("# the package\n]\n", "# the package\n]\nenabled = false\n"));
    assert_eq!(set_enabled(FILE, "linear", Switch::On).unwrap(), FILE);
    let disabled = "[servers.a]\ncommand = \"x\"\ndisabled = true # why\n";
    let enabled = set_enabled(disabled, "a", Switch::On).unwrap();
    assert_eq!(enabled, disabled.replace("true", "false"));
    let inline = set_enabled("servers = { a = { command = \"x\" } }", "a", Switch::Off).unwrap();
    assert_eq!(inline, "servers = { a = { command = \"x\", enabled = false } }\n");
}

#[test]
fn a_rule_joins_its_list_in_the_style_of_the_list() {
    let edited = add_permission_rule(FILE, Verdict::Allow, "get_*", Some("linear")).unwrap();
    let expected = FILE.replace("  \"read_*\"\n]", "  \"read_*\",\n  \"get_*\"\n]");
    assert_eq!(edited, expected);
    for (list, expected) in [
        ("[]", "[\"n\"]"),
        ("[\"a\"]", "[\"a\", \"n\"]"),
        ("[\n  \"a\", # why\n  # more\n]", "[\n  \"a\", # why\n  # more\n  \"n\",\n]"),
        ("[\n\t\"a\" # why\n]", "[\n\t\"a\", # why\n\t\"n\"\n]"),
        ("[ { pattern = \"n\" } ]", "[ { pattern = \"n\" }, \"n\" ]"),
        ("[\"n\"]", "[\"n\"]"),
    ] {
        let text = format!("[permissions]\nallow = {list} # end\n[tools]\n");
        let edited = add_permission_rule(&text, Verdict::Allow, "n", None).unwrap();
        assert_eq!(edited, format!("[permissions]\nallow = {expected} # end\n[tools]\n"));
    }
}

#[test]
fn a_list_that_is_not_there_is_made() {
    let edited = add_permission_rule(FILE, Verdict::Deny, "delete_*", None).unwrap();
    assert_eq!(edited, format!("{FILE}\n[permissions]\ndeny = [\"delete_*\"]\n"));
    let edited = add_permission_rule(FILE, Verdict::Deny, "delete_*", Some("linear")).unwrap();
    assert_eq!(edited, FILE.replace("\"read_*\"\n]\n", "\"read_*\"\n]\ndeny = [\"delete_*\"]\n"));
    let edited = add_permission_rule(FILE, Verdict::Ask, "edit", Some("My Wiki")).unwrap();
    let expected = FILE.replace(
        "# until June\n",
        "# until June\n\n[servers.\"My Wiki\".permissions]\nask = [\"edit\"]\n",
    );
    assert_eq!(edited, expected);
    let inline = "servers = { a = { command = \"x\" } }\n";
    let edited = add_permission_rule(inline, Verdict::Ask, "t", Some("a")).unwrap();
    assert_eq!(edited, "servers = { a = { command = \"x\", permissions = { ask = [\"t\"] } } }\n");
}

#[test]
fn a_rule_about_an_effect_is_another_than_the_pattern_alone() {
    let rule = r#"{ pattern = "a__*", effect = "read" }"#;
    for (list, expected) in [
        ("[]", format!("[{rule}]")),
        (r#"["a__*"]"#, format!(r#"["a__*", {rule}]"#)),
        ("[\n  \"b\", # why\n]", format!("[\n  \"b\", # why\n  {rule},\n]")),
        (
            r#"[{ effect = "read", pattern = "a__*" }]"#,
            r#"[{ effect = "read", pattern = "a__*" }]"#.to_owned(),
        ),
        (
            r#"[{ pattern = "a__*", effect = "write" }]"#,
            format!(r#"[{{ pattern = "a__*", effect = "write" }}, {rule}]"#),
        ),
    ] {
        let text = format!("# mine\n[permissions]\nallow = {list}\n");
        let edited = allow_effect(&text, "a__*", Effect::Read).unwrap();
        assert_eq!(edited, format!("# mine\n[permissions]\nallow = {expected}\n"));
    }
    let made = allow_effect("", "a__*", Effect::Read).unwrap();
    assert_eq!(made, format!("[permissions]\nallow = [{rule}]\n"));
    assert!(allow_effect("", "[", Effect::Read).is_err());
}

#[test]
fn what_is_no_pattern_is_not_added() {
    for pattern in ["", "[", "a{b"] {
        let result = add_permission_rule(FILE, Verdict::Allow, pattern, None);
        assert!(matches!(result, Err(EditError::Pattern { .. })), "{pattern}");
    }
    let question = add_permission_rule(FILE, Verdict::Deny, "Elicit(x)", Some("linear"));
    assert!(matches!(question, Err(EditError::Pattern { .. })));
    let odd = add_permission_rule("[permissions]\nallow = \"x\"", Verdict::Allow, "y", None);
    assert!(matches!(odd, Err(EditError::Unexpected { .. })));
}

/// A file of blocks in any order, with either kind of line ending.
fn any_file() -> impl Strategy<Value = String> {
    let block = prop_oneof![
        Just("# A comment.\n"),
        Just("\n"),
        Just("[servers.S]\ncommand = \"x\"  # c\nargs = [\n  \"a\", # why\n]\n"),
        Just(
            "[servers.S]\n\n# Inside.\nurl = 'https://h'\n\n[servers.S.permissions]\nallow=[\"x\"]\n"
        ),
        Just("[servers.S]\ncommand = \"\"\"x\n# no comment\n\"\"\"\ndisabled = true\n"),
        Just("[servers.S.env]\n  A = \"b\"\n"),
        Just("[other.S]\nx = 1\t\n"),
    ];
    (prop::collection::vec(block, 0..8), prop_oneof![Just("\n"), Just("\r\n")], any::<bool>())
        .prop_map(|(blocks, ending, final_newline)| {
            let named = blocks.iter().enumerate().map(|(n, block)| {
                block.replace("S]", &format!("s{n}]")).replace("S.", &format!("s{n}."))
            });
            let text = named.collect::<String>().replace('\n', ending);
            if final_newline { text } else { text.trim_end().to_owned() }
        })
}

/// True if every line of `some` is in `all`, in the same order and with the same ending. The
/// last line of a file may gain an ending.
fn is_within(some: &str, all: &str) -> bool {
    let mut lines = all.split_inclusive('\n');
    some.split_inclusive('\n').all(|line| {
        lines.any(|other| other == line || other.trim_end_matches(['\r', '\n']) == line)
    })
}

fn servers(text: &str) -> toml::Table {
    let table: toml::Table = text.parse().unwrap();
    table.get("servers").and_then(toml::Value::as_table).cloned().unwrap_or_default()
}

proptest! {
    #[test]
    fn adding_keeps_every_line(text in any_file()) {
        let edited = add_server(&text, "new", &stdio("x")).unwrap();
        prop_assert!(is_within(&text, &edited), "{text:?}\n{edited:?}");
        let mut expected = servers(&text);
        expected.insert("new".to_owned(), servers(&edited)["new"].clone());
        prop_assert_eq!(servers(&edited), expected);
    }

    #[test]
    fn removing_what_was_added_gives_the_file_back(text in any_file()) {
        let edited = add_server(&text, "new", &stdio("x")).unwrap();
        let removed = remove_server(&edited, "new").unwrap();
        // A last line without an end gets one when something is written after it.
        let whole = text.is_empty() || text.ends_with('\n');
        let given = removed.trim_end_matches(['\r', '\n']);
        prop_assert_eq!(if whole { &removed } else { given }, &text);
    }

    #[test]
    fn removing_takes_only_lines_of_the_server(text in any_file()) {
        for name in servers(&text).keys() {
            let edited = remove_server(&text, name).unwrap();
            prop_assert!(is_within(&edited, &text), "{text:?}\n{edited:?}");
            let mut expected = servers(&text);
            expected.remove(name);
            prop_assert_eq!(servers(&edited), expected);
            let before = |text: &str| text.matches("# A comment.").count();
            prop_assert_eq!(before(&edited), before(&text));
        }
    }

    #[test]
    fn switching_and_ruling_keep_every_other_line(text in any_file()) {
        for name in servers(&text).keys() {
            let off = set_enabled(&text, name, Switch::Off).unwrap();
            let changed = !is_within(&text, &off);
            let disabled = servers(&text)[name].get("disabled").is_some();
            prop_assert!(!changed || disabled, "{text:?}\n{off:?}");
            let ruled = add_permission_rule(&text, Verdict::Deny, "t", Some(name)).unwrap();
            prop_assert!(is_within(&text, &ruled), "{text:?}\n{ruled:?}");
            let rule = servers(&ruled)[name]["permissions"]["deny"][0].clone();
            prop_assert_eq!(rule.as_str(), Some("t"));
        }
    }
}

#[test]
fn a_key_for_all_servers_is_removed_without_a_trace() {
    for text in [
        "",
        FILE,
        "[servers.a]\ncommand = \"x\"\n",
        "# c\r\n[mcp] # few\r\nelicitation_queue = 3\r\n\r\n# d\r\n",
        "mcp = { elicitation_queue = 3 }\n",
    ] {
        let edited = set_key(text, "mcp", "max_dynamic_servers", 7).unwrap();
        assert_ne!(edited, text);
        assert_eq!(unset_key(&edited, "mcp", "max_dynamic_servers").unwrap(), text);
        assert_eq!(unset_key(text, "mcp", "max_dynamic_servers").unwrap(), text);
    }
}
