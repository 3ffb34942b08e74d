//! Shells that work in a gateway that runs.

use std::os::unix::fs::PermissionsExt;

use capstan_testkit::{Ended, World, binary};
use serde_json::{Value, json};

use crate::leftovers::wait_until_empty;
use crate::scene::{Scene, until_running};
use crate::stage::{ALL, Gateway, fixture, with};

#[track_caller]
fn run(world: &World, words: &str) -> Ended {
    world.capstan(words.split_whitespace()).run()
}

/// Runs words that must end with this code; everything that was said.
#[track_caller]
fn ends(world: &World, words: &str, code: i32) -> String {
    let Ended { status, stdout, stderr } = run(world, words);
    assert_eq!(status, Some(code), "{words}\nstdout:\n{stdout}\nstderr:\n{stderr}");
    format!("{stdout}{stderr}")
}

/// The names of the servers that a gateway has, with where each comes from.
#[track_caller]
fn servers(world: &World) -> Vec<(String, String)> {
    let ended = run(world, "--attach list --json");
    let rows: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.as_array().unwrap().iter().map(|row| (text(row, "name"), text(row, "scope"))).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, scope)| ((*name).to_owned(), (*scope).to_owned())).collect()
}

#[test]
fn c44_servers_are_added_listed_and_removed_while_it_runs_and_the_eleventh_is_refused() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut scene = Scene::start(&world);
    let server = binary("capstan-fixture").display().to_string();
    let before = std::fs::read(world.config().join("capstan/config.toml")).unwrap();
    let said = ends(&world, &format!("add a {server} --instructions m-a --attach"), 0);
    assert!(!said.contains("to the gateway"), "behind a command every word is its own: {said}");
    ends(&world, "remove a", 0);
    let said = ends(&world, &format!("--attach add a {server} --instructions m-a"), 0);
    assert!(said.contains("added `a` to the gateway, until it ends"), "{said}");
    ends(&world, &format!("add --attach b {server}"), 0);
    assert_eq!(servers(&world), pairs(&[("f", "user"), ("a", "dynamic"), ("b", "dynamic")]));
    scene.appears("a__echo");
    assert!(scene.works("b__echo"));
    let said = ends(&world, "call a__echo text=hi --attach", 0);
    assert!(said.contains("hi"), "{said}");
    let said = ends(&world, "remove a --attach", 0);
    assert!(said.contains("removed `a`"), "{said}");
    scene.vanishes("a__echo");
    until_running(&world, "m-a", 0);
    for number in 2..=10 {
        ends(&world, &format!("--attach add s{number} {server}"), 0);
    }
    let said = ends(&world, &format!("--attach add one-more {server}"), 9);
    assert!(
        said.contains("10 servers have already been added") && said.contains("max_dynamic"),
        "{said}"
    );
    assert!(!scene.has("one-more__echo"));
    let after = std::fs::read(world.config().join("capstan/config.toml")).unwrap();
    assert_eq!(before, after, "no file has changed");
    // They outlive a change of the files, and nothing else does.
    world.write_user_config(&format!("{ALL}{}", fixture("g", &[])));
    scene.appears("g__echo");
    assert!(scene.works("b__echo") && !scene.has("f__echo"));
    scene.gateway.hang_up();
    assert_eq!(scene.gateway.end(), Some(0));
    wait_until_empty(&world);
    let mut again = Scene::start(&world);
    assert!(again.has("g__echo") && !again.has("b__echo"));
}

#[test]
fn what_must_not_be_added_or_removed_is_refused_and_says_why() {
    let server = binary("capstan-fixture").display().to_string();
    let allowed = format!("[mcp]\nallowed_commands = [{}]\n\n", Value::from(server.as_str()));
    let world = with(&format!("{allowed}{ALL}{}", fixture("f", &[])));
    let mut scene = Scene::start(&world);
    let file = world.config().join("capstan/config.toml").display().to_string();
    for (words, code, pieces) in [
        (format!("--attach add f {server}"), 2, vec!["`f` is configured in", &file]),
        ("--attach add x bash -c true".to_owned(), 6, vec!["mcp.allowed_commands", "`bash`"]),
        ("--attach add --scope user x bash".to_owned(), 2, vec!["`--scope`"]),
        (
            format!("--attach add --trust x {server}"),
            2,
            vec!["`--trust` cannot be used with `--attach`"],
        ),
        ("--attach remove f".to_owned(), 2, vec!["configured in", &file, "capstan remove f"]),
        ("--attach remove nobody".to_owned(), 4, vec!["no server named `nobody`"]),
        ("--attach add x https://h -H broken".to_owned(), 2, vec!["KEY: VALUE"]),
        ("--attach serve".to_owned(), 2, vec!["cannot run in a gateway"]),
        ("--attach trust".to_owned(), 2, vec!["cannot run in a gateway"]),
        ("--attach config show".to_owned(), 2, vec!["cannot run in a gateway"]),
        ("--attach --demo list".to_owned(), 2, vec!["`--demo` cannot be used with `--attach`"]),
        ("list --attach --config x".to_owned(), 2, vec!["`--config` cannot be used with", "PID"]),
        ("--attach=1 list".to_owned(), 4, vec!["none of your gateways has the process ID 1"]),
    ] {
        let said = ends(&world, &words, code);
        for piece in pieces {
            assert!(said.contains(piece), "{piece:?} for {words}:\n{said}");
        }
    }
    assert_eq!(servers(&world), pairs(&[("f", "user")]));
    assert!(scene.works("f__echo"));
}

#[test]
fn the_operators_rules_hold_for_servers_that_are_added() {
    let world = with("[permissions]\nallow = [\"*\"]\ndeny = [\"*__count\"]\n");
    let mut scene = Scene::start(&world);
    let server = binary("capstan-fixture").display().to_string();
    ends(&world, &format!("--attach add a {server}"), 0);
    scene.appears("a__echo");
    assert!(scene.works("a__echo") && !scene.works("a__count") && !scene.has("a__count"));
    let said = ends(&world, "--attach call a__count", 6);
    assert!(said.contains("*__count"), "{said}");
}

#[test]
fn a_broken_file_is_told_of_by_list_and_reload() {
    let good = format!("{ALL}{}", fixture("f", &[]));
    let world = with(&good);
    let scene = Scene::start(&world);
    assert!(ends(&world, "reload", 0).contains("nothing has changed"));
    world.write_user_config(&format!("{good}colour = 1\n"));
    scene.gateway.says("the configuration is not reloaded");
    for (words, code) in [("list --attach", 0), ("reload", 3)] {
        let said = ends(&world, words, code);
        assert!(said.contains("colour") && said.contains("config.toml:"), "{words}: {said}");
    }
    // What is added meanwhile is added to what is in force.
    let server = binary("capstan-fixture").display().to_string();
    ends(&world, &format!("--attach add a {server}"), 0);
    assert_eq!(servers(&world), pairs(&[("f", "user"), ("a", "dynamic")]));
    world.write_user_config(&good);
    ends(&world, "reload", 0);
    assert!(!ends(&world, "list --attach", 0).contains("colour"));
}

#[test]
fn which_gateway_is_meant_must_be_clear() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    assert!(ends(&world, "--attach list", 4).contains("no gateway of yours is running"));
    assert!(ends(&world, "reload", 4).contains("no gateway of yours is running"));
    let first = Scene::start(&world);
    let (second, _) = Gateway::listening(&world, "");
    let said = ends(&world, "--attach list", 2);
    assert!(said.contains("several gateways run") && said.contains("--attach=PID"), "{said}");
    for process in [first.gateway.child.id(), second.child.id()] {
        ends(&world, &format!("--attach={process} list"), 0);
    }
}

/// Issue 15, number 6: commands that read start no second copy of a server that a gateway has.
#[test]
fn plain_reading_commands_use_the_servers_of_a_running_gateway() {
    let world = World::new();
    let starts = world.home().join("starts");
    let program = binary("capstan-fixture").display().to_string();
    let script = format!("echo x >> {}; exec {program} --era legacy", starts.display());
    let script = Value::from(script);
    let entry = format!("[servers.f]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\n");
    world.write_user_config(&format!("{ALL}{entry}"));
    let mut scene = Scene::start(&world);
    assert!(scene.works("f__echo"), "the gateway has started it");
    for words in [
        "list",
        "get f",
        "tools",
        "tools f",
        "tools f__echo",
        "resources",
        "prompts",
        "list --refresh",
        "get f --refresh",
        "tools --refresh",
        "pins",
        "acl classify",
        "read @f:fixture://greeting",
    ] {
        let ended = run(&world, words);
        assert!(matches!(ended.status, Some(0 | 4)), "{words}: {}", ended.stderr);
        assert!(!ended.stderr.contains("--refresh"), "{words}: {}", ended.stderr);
    }
    let state = || {
        let ended = run(&world, "list --json");
        let rows: Value = serde_json::from_str(&ended.stdout).unwrap();
        (rows[0]["state"].clone(), rows[0].get("stale").is_some())
    };
    assert_eq!(state(), (json!("connected"), false));
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "x\n", "it was started once");
    // Without the gateway, what it has seen is shown.
    scene.gateway.hang_up();
    assert_eq!(scene.gateway.end(), Some(0));
    assert_eq!(state(), (json!("cached"), true));
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "x\n");
}

#[test]
fn a_server_that_is_added_is_connected_by_the_gateway_that_runs() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut scene = Scene::start(&world);
    let starts = world.home().join("starts");
    let program = binary("capstan-fixture").display().to_string();
    let script = format!("echo x >> {}; exec {program}", starts.display());
    let added = world.capstan(["add", "--check", "--json", "g", "sh", "-c", &script]).run();
    let told: Value = serde_json::from_str(&added.stdout).unwrap();
    let checked = &told["checked"][0];
    assert!(checked["server"] == "g" && checked["tools"].as_u64() > Some(0), "{told}");
    scene.appears("g__echo");
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "x\n", "it was started once");
}

/// The same words with a gateway and without one.
#[track_caller]
fn check(config: &str, words: &[&str], stdin: &str, code: i32) {
    let ended = |with_gateway: bool, more: &[&str]| {
        let world = with(config);
        let scene = with_gateway.then(|| Scene::start(&world));
        let ended = world.capstan(words.iter().chain(more)).stdin(stdin).run();
        if let Some(mut scene) = scene {
            scene.gateway.hang_up();
            assert_eq!(scene.gateway.end(), Some(0));
        }
        let log = std::fs::read_to_string(world.state().join("capstan/audit.jsonl"));
        let log = log.unwrap_or_default();
        let last: Value = serde_json::from_str(log.lines().last().unwrap_or("{}")).unwrap();
        let told = ["front", "caller", "server", "item", "outcome", "code", "verdict", "ground"]
            .map(|key| last[key].clone());
        // Where it was run is the only thing that may differ.
        let home = world.home().display().to_string();
        let text = |text: String| text.replace(&home, "~");
        (ended.status, text(ended.stdout), text(ended.stderr), told)
    };
    let (alone, thin) = (ended(false, &[]), ended(true, &[]));
    assert_eq!(alone, thin, "{words:?}");
    assert_eq!(alone, ended(true, &["--no-attach"]), "{words:?}");
    assert_eq!(alone.0, Some(code), "{words:?}: {alone:?}");
}

/// The same for many words, with a server that may do everything but count.
#[track_caller]
fn check_all(cases: &[(&[&str], &str, i32)]) {
    let config = format!(
        "[permissions]\nallow = [\"*\"]\ndeny = [\"*__count\"]\n\n{}timeout = \"2s\"\n",
        fixture("f", &["--instructions", "m-f"])
    );
    for (words, stdin, code) in cases {
        check(&config, words, stdin, *code);
    }
}

#[test]
fn an_answer_is_the_same_whether_a_gateway_makes_the_call_or_not() {
    check_all(&[
        (&["call", "f__echo", "text=hi", "n:=1.00"], "", 0),
        (&["call", "f__echo", "text=hi", "--json"], "", 0),
        (&["call", "f__echo", "-", "--json"], r#"{"text":"from stdin"}"#, 0),
        (&["call", "f:weird", "--json"], "", 0),
        (&["call", "f__log"], "", 0),
        (&["call", "f__progress", "steps=3"], "", 0),
        (&["call", "f__elicit"], "", 0),
    ]);
}

#[test]
fn a_refusal_is_the_same_whether_a_gateway_makes_the_call_or_not() {
    check_all(&[
        (&["call", "f__echo", "-"], "no JSON", 2),
        (&["call", "f__count"], "", 6),
        (&["call", "f__count", "--json"], "", 6),
        (&["call", "f__ecko"], "", 4),
        (&["call", "g__echo"], "", 4),
        (&["call", "f__add", "a=one"], "", 2),
    ]);
}

/// Issue 15, number 11: the same rule as without a gateway, until the operator approves the call.
#[test]
fn an_explicit_ask_stops_a_call_through_a_gateway_until_another_shell_approves_it() {
    let rules = "[permissions]\nask = [\"f__count\"]\n\n[gateway]\napproval_wait = \"0s\"\n\n";
    let world = with(&format!("{rules}{}", fixture("f", &[])));
    let mut scene = Scene::start(&world);
    assert!(scene.works("f__echo"), "the gateway runs");
    let refused = |words: &str| {
        let said = ends(&world, words, 6);
        assert!(said.contains("by rule `permissions.ask: f__count`, and no approver"), "{said}");
        let (_, rest) = said.split_once("`capstan approvals yes ").unwrap_or_default();
        rest.split('`').next().unwrap().to_owned()
    };
    for words in ["call f__count", "call f__count --yes", "--attach call f__count"] {
        assert!(!refused(words).is_empty(), "the gateway keeps the question open: {words}");
    }
    assert_eq!(refused("call f__count --no-attach"), "", "no other shell can answer it");
    // An approval is good for one call with these arguments, wherever it is made.
    for words in ["call f__count", "call f__count --no-attach"] {
        let id = refused("call f__count");
        ends(&world, &format!("approvals yes {id}"), 0);
        refused("call f__count why=other");
        ends(&world, words, 0);
        refused(words);
    }
    ends(&world, "call f__grow", 0);
}

#[test]
fn a_failure_is_the_same_whether_a_gateway_makes_the_call_or_not() {
    check_all(&[
        (&["call", "f__fail"], "", 1),
        (&["call", "f__rpc_error", "code=-5"], "", 1),
        (&["call", "f__slow", "ms=60000"], "", 8),
        (&["call", "f__crash_read"], "", 7),
    ]);
}

#[test]
fn a_call_is_made_by_the_gateway_only_if_it_has_the_same_configuration() {
    let config = format!("{ALL}{}", fixture("f", &["--instructions", "m-f"]));
    let world = with(&config);
    let mut scene = Scene::start(&world);
    assert!(scene.works("f__count"));
    // The gateway's server counts on; one of our own begins anew.
    let counted = |words: &str| {
        let ended = run(&world, words);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        ended.stdout.trim().to_owned()
    };
    assert_eq!(counted("call f__count"), "2");
    assert_eq!(counted("call f__count"), "3");
    assert_eq!(counted("call f__count --no-attach"), "1");
    assert_eq!(counted("call f__count --ask --attach"), "4", "it is allowed");
    world.write("more.toml", "");
    let more = world.home().join("more.toml").display().to_string();
    assert_eq!(counted(&format!("call f__count --config {more}")), "1");
    let elsewhere = world.capstan(["call", "f__count"]).within(world.home()).run();
    assert_eq!(elsewhere.stdout.trim(), "1", "another workspace");
    assert_eq!(counted("call f__count"), "5");
    // Where registries are says nothing of servers.
    let call = world.capstan(["call", "f__count"]).env("CAPSTAN_REGISTRY", "https://r.example");
    assert_eq!(call.run().stdout.trim(), "6");
    assert_eq!(calls(&world, "f"), json!(6.0), "those that were made there, at once");
}

/// How often a server is called, as the gateway knows it now.
#[track_caller]
fn calls(world: &World, server: &str) -> Value {
    let rows: Value = serde_json::from_str(&run(world, "--attach list --json").stdout).unwrap();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == server).unwrap();
    row["calls_per_hour"].clone()
}

#[test]
fn calls_of_programs_as_servers_are_counted_too() {
    let world = with(ALL);
    let help =
        "case \"$*\" in *--help) printf 'Usage: say [OPTIONS] WORD\\n'; exit;; esac; echo hi";
    let program = world.write("say", format!("#!/bin/sh\n{help}\n"));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = Value::from(program.to_str().unwrap());
    world.write_user_config(&format!("{ALL}[servers.p]\ntype = \"cli\"\ncommand = {program}\n"));
    let mut scene = Scene::start(&world);
    let tools = scene.tools();
    let [tool] = &tools[..] else { panic!("one tool: {tools:?}") };
    for number in 0..3 {
        let arguments = json!({ "word": number.to_string() });
        let id = scene.begin(tool, &arguments);
        scene.answer(id);
    }
    assert_eq!(calls(&world, "p"), json!(3.0));
}
