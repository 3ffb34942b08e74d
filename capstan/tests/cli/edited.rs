//! `capstan edit`: an entry in the user's editor, and its single keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::{Ended, World};
use serde_json::json;

use crate::stage::{self, ends_with, failure, read, says, user_config, with, with_project};

/// A file that somebody cares for.
const KEPT: &str = r#"# My servers.   Two spaces stay.

# Issues.
[servers.linear]
command = "npx"   # with spaces
args = [
  "-y", # always
]
cwd = "/tmp"

# What it may do.
[servers.linear.permissions]
allow = [ "list_*" ] # harmless

# The wiki, not used yet.
[servers."My Wiki"]
url    = 'https://wiki.example.com/mcp'

[servers.linear.env]
DEBUG = "1"

# Limits.
[tools]
max_tool_calls_per_session = 5
# The end.
"#;

/// Runs a command with a script as the editor, which gets the file as `$1`.
fn edit(world: &World, words: &[&str], script: &str) -> Ended {
    let editor = world.write("my editor.sh", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    world.capstan(words).env("EDITOR", format!("'{}' --wait", editor.display())).run()
}

/// The texts that are kept in the state folder.
fn drafts(world: &World) -> Vec<String> {
    let folder = fs::read_dir(world.state().join("capstan/drafts"));
    let names = folder.into_iter().flatten().flatten();
    names.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn an_editor_sees_the_entry_alone_and_the_rest_of_the_file_stays() {
    let world = with(KEPT);
    let seen = world.home().join("seen");
    // The option of `EDITOR` comes first, the file last.
    let script = format!(
        "test \"$1\" = --wait && cp \"$2\" '{}' && sed -i 's/list_/get_/; s/npx/uvx/' \"$2\"",
        seen.display()
    );
    let ended = ends_with(edit(&world, &["edit", "linear"], &script), 0);
    says(&ended.stderr, "changed `linear` in ");
    let entry = "# Issues.\n[servers.linear]\ncommand = \"npx\"   # with spaces\nargs = [\n  \"-y\", \
                 # always\n]\ncwd = \"/tmp\"\n\n# What it may do.\n[servers.linear.permissions]\n\
                 allow = [ \"list_*\" ] # harmless\n[servers.linear.env]\nDEBUG = \"1\"\n";
    assert_eq!(read(&seen), entry);
    let after = user_config(&world);
    let expected = entry.replace("list_", "get_").replace("npx", "uvx");
    assert!(after.contains(&expected), "{after}");
    let rest = "# My servers.   Two spaces stay.\n\n";
    assert!(after.starts_with(rest), "{after}");
    says(
        &after,
        "# The wiki, not used yet.\n[servers.\"My Wiki\"]\nurl    = 'https://wiki.example",
    );
    assert!(after.ends_with("# Limits.\n[tools]\nmax_tool_calls_per_session = 5\n# The end.\n"));
    assert_eq!(drafts(&world), Vec::<String>::new());
}

#[test]
fn visual_comes_before_editor_and_no_shell_reads_either() {
    let world = with(KEPT);
    let mark = world.home().join("mark");
    let run = |name: &str, value: String| {
        let run = world.capstan(["edit", "linear"]).env("EDITOR", "false").env(name, value);
        run.run()
    };
    let ended = ends_with(run("VISUAL", "true".to_owned()), 0);
    says(&ended.stderr, "`linear` is unchanged");
    let ended = ends_with(run("VISUAL", format!("true; touch '{}'", mark.display())), 2);
    says(&ended.stderr, "`true;` was not found");
    assert!(!mark.exists());
    says(&ends_with(run("VISUAL", "'half".to_owned()), 2).stderr, "its quotes do not match");
    let failed = ends_with(run("VISUAL", "false".to_owned()), 1);
    says(&failed.stderr, "the editor `false` ended with exit code 1; nothing was changed");
    assert_eq!(user_config(&world), KEPT);
}

#[test]
fn without_an_editor_and_a_terminal_the_options_are_named() {
    let world = with(KEPT);
    let ended = ends_with(world.capstan(["edit", "linear"]).run(), 2);
    says(&ended.stderr, "`capstan edit linear --set KEY=VALUE`");
}

#[test]
fn a_result_with_errors_changes_nothing_and_is_kept() {
    for (script, line, message) in [
        ("sed -i 's/^cwd.*/timeot = \"5s\"/'", 7, "did you mean `timeout`?"),
        ("sed -i 's/^command.*/command = 7/'", 3, "command"),
        ("sed -i 's/^cwd.*/cwd = \"unfinished/'", 7, ""),
    ] {
        let world = with(KEPT);
        let ended = edit(&world, &["edit", "linear"], &format!("{script} \"$2\""));
        let ended = ends_with(ended, 3);
        says(&ended.stderr, "`linear` was not changed, because the new entry has errors");
        says(&ended.stderr, message);
        says(&ended.stderr, &format!("linear (your text):{line}:"));
        assert_eq!(user_config(&world), KEPT, "{script}");
        assert_eq!(drafts(&world), ["linear.toml"]);
        let ended = edit(&world, &["edit", "linear", "--json"], &format!("{script} \"$2\""));
        let error = &stage::json(&ends_with(ended, 3))["error"];
        assert_eq!(error["problems"][0]["place"]["line"], line, "{error}");
    }
}

#[test]
fn an_entry_cannot_take_the_name_of_another() {
    let world = with(KEPT);
    let script = "sed -i 's/linear/\"My Wiki\"/' \"$2\"";
    ends_with(edit(&world, &["edit", "linear"], script), 3);
    assert_eq!(user_config(&world), KEPT);
}

#[test]
fn an_empty_entry_is_no_removal() {
    let world = with(KEPT);
    let ended = ends_with(edit(&world, &["edit", "linear"], ": > \"$2\""), 2);
    says(&ended.stderr, "`capstan remove linear` removes it");
    assert_eq!(user_config(&world), KEPT);
}

#[test]
fn a_change_by_another_program_meanwhile_is_not_overwritten() {
    let world = with(KEPT);
    let file = world.config().join("capstan/config.toml");
    let script = |pattern: &str| {
        format!("sed -i '{pattern}' '{}' && sed -i 's/npx/uvx/' \"$2\"", file.display())
    };
    let ended = edit(&world, &["edit", "linear"], &script("s/list_/get_/"));
    says(&ends_with(ended, 2).stderr, "the entry of `linear` was changed meanwhile");
    assert_eq!(user_config(&world), KEPT.replace("list_", "get_"));

    let world = with(KEPT);
    let file = world.config().join("capstan/config.toml");
    let other = format!("sed -i 's/= 5/= 6/' '{}' && sed -i 's/npx/uvx/' \"$2\"", file.display());
    ends_with(edit(&world, &["edit", "linear"], &other), 0);
    let after = user_config(&world);
    says(&after, "max_tool_calls_per_session = 6");
    says(&after, "command = \"uvx\"");
}

#[test]
fn a_server_can_be_renamed_and_other_forms_of_entries_are_edited_too() {
    let world = with(KEPT);
    ends_with(edit(&world, &["edit", "my-wiki"], "sed -i 's/\"My Wiki\"/wiki/' \"$2\""), 0);
    assert_eq!(user_config(&world), KEPT.replace("\"My Wiki\"", "wiki"));
    for config in [
        "servers.a.command = \"x\"\nservers.b.command = \"y\"\n",
        "[servers]\nb = { command = \"y\" }\na = { command = \"x\" } # it\n",
        "servers = { b = { command = \"y\" }, a = { command = \"x\" } }\n",
    ] {
        let world = with(config);
        ends_with(edit(&world, &["edit", "a"], "sed -i 's/\"x\"/\"z\"/' \"$2\""), 0);
        assert_eq!(user_config(&world), config.replace("\"x\"", "\"z\""));
    }
}

#[test]
fn an_approved_project_file_stays_approved() {
    let world = with_project();
    ends_with(world.capstan(["add", "-s", "project", "s", "npx"]).run(), 0);
    let ended = ends_with(edit(&world, &["edit", "s"], "sed -i 's/npx/uvx/' \"$2\""), 0);
    assert!(!ended.stderr.contains("not trusted"), "{}", ended.stderr);
    let shown = stage::ok_json(&world, "get s");
    assert_ne!(shown["state"], "awaiting_approval", "{shown}");
}

/// Changes keys of `linear`, and compares the whole text of the file.
#[track_caller]
fn check(options: &[&str], from: &str, to: &str) {
    let world = with(KEPT);
    let words: Vec<&str> = ["edit", "linear"].iter().chain(options).copied().collect();
    ends_with(world.capstan(words).run(), 0);
    assert_eq!(KEPT.matches(from).count(), 1, "the test changes one place");
    assert_eq!(user_config(&world), KEPT.replace(from, to));
}

#[test]
fn single_keys_are_set_and_removed_and_nothing_else_changes() {
    check(&["--set", "timeout=30s"], "cwd = \"/tmp\"\n", "cwd = \"/tmp\"\ntimeout = \"30s\"\n");
    check(&["--unset", "cwd"], "cwd = \"/tmp\"\n", "");
    check(&["--set", "timeout=30s", "--unset", "cwd"], "cwd = \"/tmp\"\n", "timeout = \"30s\"\n");
    check(&["--set", "command=7"], "\"npx\"   # with", "\"7\"   # with");
    check(&["--set", "enabled=false"], "\"/tmp\"\n", "\"/tmp\"\nenabled = false\n");
    check(&["--set", "env.DEBUG=2"], "DEBUG = \"1\"", "DEBUG = \"2\"");
    check(&["--set", "permissions.allow=get_*"], "[ \"list_*\" ]", "[\"get_*\"]");
    check(
        &["--set", "permissions.allow=a", "--set", "permissions.allow=b,c"],
        "[ \"list_*\" ]",
        "[\"a\", \"b,c\"]",
    );
    check(&["--set", "permissions.allow=[\"x\"]"], "[ \"list_*\" ]", "[\"x\"]");
    check(
        &["--set", "effect.read=get_*"],
        "\"/tmp\"\n",
        "\"/tmp\"\neffect = { read = [\"get_*\"] }\n",
    );
}

#[test]
fn a_server_changes_from_a_program_to_an_address_at_once() {
    let world = with("[servers.s]\ncommand = \"x\" # it\n");
    let words = ["edit", "s", "--json", "--unset", "command", "--set", "url=https://h/mcp"];
    let told = stage::json(&ends_with(world.capstan(words).run(), 0));
    let file = world.config().join("capstan/config.toml");
    assert_eq!(told, json!({ "edited": "s", "changed": true, "file": file }));
    assert_eq!(user_config(&world), "[servers.s]\nurl = \"https://h/mcp\"\n");
}

#[test]
fn keys_and_values_that_do_not_fit_are_refused() {
    for (options, code, message, hint) in [
        (["--set", "timeot=5s"], 2, "is not a known key", "did you mean `timeout`?"),
        (["--set", "timeout=soon"], 2, "timeout", ""),
        (["--set", "enabled=maybe"], 2, "enabled", ""),
        (["--set", "url=https://h"], 2, "command", ""),
        (["--set", "timeout"], 2, "`--set` has no key", "--set KEY=VALUE"),
        (["--set", "a b=c"], 2, "`a b` is not a key", "env.DEBUG"),
        (["--unset", "command"], 2, "the server would be refused", ""),
        (["--unset", "comand"], 4, "`comand` is not set", "did you mean `command`?"),
    ] {
        let world = with(KEPT);
        let words: Vec<&str> = ["edit", "linear", "--json"].into_iter().chain(options).collect();
        let (_, said, help) = failure(&ends_with(world.capstan(words).run(), code));
        says(&said, message);
        says(&help, hint);
        assert_eq!(user_config(&world), KEPT);
    }
    let world = with(KEPT);
    let ended = world.capstan(["edit", "linaer", "--unset", "cwd"]).run();
    says(&ends_with(ended, 4).stderr, "did you mean `linear`?");
}

#[test]
fn an_error_that_was_there_before_does_not_keep_from_changing_another_key() {
    let world = with("[servers.s]\ncommand = 7\ntimeout = \"5s\"\n");
    ends_with(world.capstan(["edit", "s", "--set", "timeout=6s"]).run(), 0);
    ends_with(world.capstan(["edit", "s", "--set", "command=npx"]).run(), 0);
    assert_eq!(user_config(&world), "[servers.s]\ncommand = \"npx\"\ntimeout = \"6s\"\n");
    let world = with("[servers.s]\ncommand = \"${TOOL}\"\n");
    ends_with(world.capstan(["edit", "s", "--set", "env.KEY=${SECRET}"]).run(), 0);
    says(&user_config(&world), "env = { KEY = \"${SECRET}\" }");
}

#[test]
fn a_key_of_an_openapi_document_makes_the_document_a_table() {
    let world = with("[servers.pets]\nopenapi = \"pets.yaml\" # mine\n");
    let words = ["edit", "pets", "--set", "openapi.base_url=https://example.com/v1"];
    ends_with(world.capstan(words).run(), 0);
    says(
        &user_config(&world),
        "openapi = { document = \"pets.yaml\", base_url = \"https://example.com/v1\" } # mine\n",
    );
}
