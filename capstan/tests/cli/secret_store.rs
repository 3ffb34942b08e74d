//! `capstan secret`, and servers whose settings refer to secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::{Ended, World};

use crate::stage::{column, ends_with, failure, fixture, json, ok_json, read, run, says};

const VALUE: &str = "xyzzy-7261-value";

#[track_caller]
fn set(world: &World, name: &str, value: &str) -> Ended {
    world.capstan(["secret", "set", name]).env("CAPSTAN_KEYRING", "off").stdin(value).run()
}

/// A world whose server `f` has these lines more, and the secret `gh`.
#[track_caller]
fn with_secret(more: &str) -> World {
    let world = World::new();
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n\n{}{more}\n",
        fixture("f", &["--stderr", "2"])
    ));
    ends_with(set(&world, "gh", VALUE), 0);
    world
}

/// A program of this name that prints something, in a folder of the world.
#[track_caller]
fn program(world: &World, name: &str, script: &str) -> String {
    let path = world.write(format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// The variable that the fixture got.
#[track_caller]
fn variable(world: &World, name: &str) -> String {
    let called = ends_with(run(world, "call f__env --json"), 0);
    let env = json(&called)["structuredContent"]["env"][name].clone();
    env.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_secret_is_stored_listed_and_removed_and_never_shown() {
    let world = World::new();
    let stored = ends_with(set(&world, "work/gh", &format!("{VALUE}\n")), 0);
    says(&stored.stderr, "stored `work/gh` in ");
    let file = world.data().join("capstan/mcp-tokens.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    says(&read(&file), &format!("\"value\": \"{VALUE}\""));
    let listed = ok_json(&world, "secret list");
    assert_eq!(column(&listed, "name"), ["work/gh"]);
    assert_eq!(column(&listed, "stored"), ["file"]);
    for words in ["secret list", "secret list --debug", "secret remove work/gh --debug"] {
        let Ended { stdout, stderr, .. } = ends_with(run(&world, words), 0);
        assert!(!format!("{stdout}{stderr}").contains(VALUE), "{words}");
    }
    let gone = ends_with(run(&world, "secret remove work/gh --json"), 4);
    says(&failure(&gone).1, "no secret named `work/gh`");
    assert!(!read(&file).contains(VALUE));
}

#[test]
fn a_secret_that_cannot_be_used_is_refused() {
    let world = World::new();
    for (name, value) in [("a b", "x"), ("", "x"), ("a", ""), ("a", "\n"), ("a", "x\0y")] {
        ends_with(set(&world, name, value), 2);
    }
    // A value is never a word of the command line.
    ends_with(run(&world, "secret set a value"), 2);
    assert_eq!(ok_json(&world, "secret list"), serde_json::json!([]));
}

#[test]
fn without_a_keyring_the_file_is_used_and_a_message_says_so_once() {
    let world = World::new();
    let run = world.capstan(["secret", "set", "a"]).stdin(VALUE).run();
    let stored = ends_with(run, 0);
    assert_eq!(stored.stderr.matches("the keyring cannot be used").count(), 1, "{}", stored.stderr);
    says(&stored.stderr, "mcp-tokens.json instead");
}

#[test]
fn a_damaged_file_is_reported_and_kept() {
    let world = World::new();
    let file = world.write(".local/share/capstan/mcp-tokens.json", "{\"version\":1,");
    let listed = ends_with(run(&world, "secret list --json"), 70);
    says(&failure(&listed).1, "mcp-tokens.json is damaged");
    let stored = ends_with(set(&world, "a", VALUE), 0);
    says(&stored.stderr, "mcp-tokens.json.damaged-1");
    assert_eq!(read(file.with_extension("json.damaged-1")), "{\"version\":1,");
}

#[test]
fn a_program_gets_secrets_in_variables_and_arguments() {
    let world = with_secret(
        "env = { A = \"keyring:gh\", B = \"Bearer ${keyring:gh}!\", C = \"plain keyring:gh\" }",
    );
    assert_eq!(variable(&world, "A"), VALUE);
    assert_eq!(variable(&world, "B"), format!("Bearer {VALUE}!"));
    assert_eq!(variable(&world, "C"), "plain keyring:gh");
    for words in ["list --refresh --debug", "get f", "config show", "tools --debug --refresh"] {
        let Ended { stdout, stderr, .. } = ends_with(run(&world, words), 0);
        assert!(!format!("{stdout}{stderr}").contains(VALUE), "{words}: {stdout}{stderr}");
    }
}

#[test]
fn an_unknown_secret_names_the_key_the_file_and_what_to_do() {
    let world = with_secret("env = { TOKEN = \"keyring:other\" }");
    let called = ends_with(run(&world, "call f__env --json"), 7);
    let message = failure(&called).1;
    says(&message, "`servers.f.env.TOKEN` in ");
    says(&message, "capstan/config.toml needs the secret `other`, which is not stored");
    says(&message, "`capstan secret set other`");
    ends_with(set(&world, "other", "later-7261"), 0);
    assert_eq!(variable(&world, "TOKEN"), "later-7261");
}

#[test]
fn a_changed_secret_makes_no_other_server_in_the_cache() {
    let world = with_secret("env = { TOKEN = \"keyring:gh\" }");
    assert_eq!(variable(&world, "TOKEN"), VALUE);
    let saved = || fs::read_dir(world.cache().join("capstan/manifests")).unwrap().count();
    assert_eq!(saved(), 1);
    ends_with(set(&world, "gh", "rotated-7261"), 0);
    assert_eq!(variable(&world, "TOKEN"), "rotated-7261");
    assert_eq!(saved(), 1);
}

#[test]
fn the_output_of_a_command_is_a_secret_and_the_command_sees_few_variables() {
    let world = with_secret("");
    let script = "echo \"$1-${OP_ACCOUNT:-none}-${MY_TOKEN:-none}-$#\"";
    let op = program(&world, "op", script);
    let config = read(world.config().join("capstan/config.toml"));
    let more =
        format!("env = {{ A = \"command:{op} read 'a b'\", B = \"<${{command:{op} x}}>\" }}\n");
    world.write_user_config(&format!("{config}{more}"));
    let call = || {
        let run = world.capstan(["call", "f__env", "--json"]);
        ends_with(run.env("OP_ACCOUNT", "me").env("MY_TOKEN", "mine").run(), 0)
    };
    let env = json(&call())["structuredContent"]["env"].clone();
    assert_eq!((&env["A"], &env["B"]), (&"read-me-none-2".into(), &"<x-me-none-1>".into()));
}

#[test]
fn a_command_that_fails_or_is_not_allowed_fails_the_server_with_the_reason() {
    let world = World::new();
    let op = program(&world, "op", "echo 'not signed in' >&2; exit 3");
    let big = program(&world, "big", "head -c 100000 /dev/zero | tr '\\0' x");
    let with = |rules: &str, reference: &str| {
        let fixture = fixture("f", &[]);
        world.write_user_config(&format!("{rules}\n{fixture}env = {{ T = \"{reference}\" }}\n"));
        failure(&ends_with(run(&world, "call f__env --json"), 7)).1
    };
    for (reference, reason) in [
        (format!("command:{op} read"), "failed with exit code 3: not signed in"),
        (format!("command:{big}"), "printed more than 65536 bytes"),
        ("command:true".to_owned(), "`true` printed nothing"),
        ("command:/nowhere/op".to_owned(), "cannot be started"),
        ("command:./op".to_owned(), "has the relative path `./op`"),
        ("command:op 'x".to_owned(), "cannot be split into words"),
    ] {
        let message = with("", &reference);
        says(&message, reason);
        says(&message, "`servers.f.env.T` in ");
    }
    let fixture = capstan_testkit::binary("capstan-fixture").display().to_string();
    let rules = format!("[mcp]\nallowed_commands = [{fixture:?}]\n");
    says(&with(&rules, &format!("command:{op}")), "add it to `mcp.allowed_commands`");
}

#[test]
fn files_of_other_programs_have_no_references() {
    let world = World::new();
    let fixture = capstan_testkit::binary("capstan-fixture").display().to_string();
    let trace = world.home().join("ran");
    let text = serde_json::json!({"mcpServers": {"f": {"command": fixture, "env": {
        "A": "keyring:gh", "B": format!("command:touch {}", trace.display()),
    }}}});
    let file = world.write("claude.json", text.to_string()).display().to_string();
    let named = format!("claude:{file}");
    let called = world.capstan(["--config", &named, "call", "f__env", "--json"]).run();
    let env = json(&ends_with(called, 0))["structuredContent"]["env"].clone();
    assert_eq!(env["A"], "keyring:gh");
    says(env["B"].as_str().unwrap(), "command:touch");
    assert!(!trace.exists());
}

#[test]
fn a_project_runs_no_command_and_reads_no_secret_before_it_is_trusted() {
    let world = World::new();
    world.write("project/.git/HEAD", "");
    let trace = world.home().join("ran");
    let script = program(&world, "helper", &format!("touch {}; echo x", trace.display()));
    let fixture = fixture("f", &[]);
    world.write_project_config(&format!("{fixture}env = {{ T = \"command:{script}\" }}\n"));
    ends_with(run(&world, "call f__env"), 7);
    ends_with(run(&world, "list --refresh"), 0);
    assert!(!trace.exists(), "the command was run");
    ends_with(run(&world, "trust --yes"), 0);
    assert_eq!(variable_of_trusted(&world), "x");
    assert!(trace.exists());
}

#[track_caller]
fn variable_of_trusted(world: &World) -> String {
    let called = ends_with(run(world, "call f__env --json --yes"), 0);
    json(&called)["structuredContent"]["env"]["T"].as_str().unwrap().to_owned()
}

#[test]
fn references_that_cannot_work_are_errors_of_the_file() {
    for (line, problem) in [
        ("description = \"keyring:a\"", "`servers.f.description` cannot refer to a secret"),
        ("env = { T = \"keyring:a b\" }", "refers to a secret by the name `a b`"),
        ("env = { T = \"${VAR}\" }", "gets a reference to a secret from a variable"),
        ("cwd = \"/${command:pwd}\"", "`servers.f.cwd` cannot have the output of a command"),
    ] {
        let world = World::new();
        world.write_user_config(&format!("{}{line}\n", fixture("f", &[])));
        let checked = world.capstan(["config", "check"]).env("VAR", "keyring:gh").run();
        says(&format!("{}{}", checked.stdout, checked.stderr), problem);
        let called = world.capstan(["call", "f__env"]).env("VAR", "keyring:gh").run();
        assert_ne!(called.status, Some(0), "{line}");
    }
}
