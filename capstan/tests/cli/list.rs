//! `capstan list`, `tools` and `get`: what they show, for people and for programs.

use capstan_testkit::World;
use serde_json::json;

use crate::stage::{column, ends_with, fixture, ok_json, row, run, says, with};

/// A world with one server of each kind of luck.
#[track_caller]
fn mixed() -> World {
    with(&format!(
        "[servers.bad]\ncommand = \"/nowhere/bad\"\n\n{}\n{}description = \"A good one\"\n",
        fixture("hanging", &["--silent"]),
        fixture("good", &["--era", "legacy", "--instructions", "Be kind."]),
    ))
}

#[test]
fn c12_two_servers_in_trouble_are_told_of_and_the_third_is_usable() {
    let world = mixed();
    let ended = ends_with(run(&world, "tools --json"), 0);
    let ids = column(&crate::stage::json(&ended), "id");
    assert!(ids.iter().all(|id| id.starts_with("good__")) && ids.len() == 18, "{ids:?}");
    let warnings: Vec<&str> =
        ended.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    let [bad, hanging] = warnings[..] else { panic!("two warnings, not {}", ended.stderr) };
    says(bad, "server `bad` is not usable: `/nowhere/bad` does not exist");
    says(hanging, "no answer yet from `hanging`");

    assert_eq!(ends_with(run(&world, "call good__add a=1 b=2"), 0).stdout, "3\n");
}

#[test]
fn c72_a_list_shows_name_target_and_state() {
    let world = mixed();
    let ended = ends_with(run(&world, "list"), 0);
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stdout, @"
        SERVER     STATE       TOOLS  TOKENS  CALLS/H  STOPS  SCOPE  TARGET
        ○ bad      failed      -      -       0        1m     user   /nowhere/bad
        ◐ hanging  connecting  -      -       0        1m     user   [BIN]/capstan-fixture --silent
        ● good     connected   18     816     0        1m     user   [BIN]/capstan-fixture --era legacy --instructions Be kind.
        ");
        insta::assert_snapshot!(ended.stderr, @"
        ○ bad: `/nowhere/bad` does not exist; correct `command` under `[servers.bad]`
        ◐ hanging: it has not answered yet; `--wait [DURATION]` waits longer
        ");
    });
}

#[test]
fn a_list_has_its_shape_for_programs() {
    let listed = ok_json(&mixed(), "list");
    let keys = |name: &str| -> Vec<String> {
        row(&listed, "name", name).as_object().unwrap().keys().cloned().collect()
    };
    let always = [
        "name",
        "transport",
        "state",
        "tools",
        "resources",
        "prompts",
        "target",
        "scope",
        "tokens",
        "calls_per_hour",
        "stops_after",
        "memory",
        "cpu",
    ];
    assert_eq!(keys("good"), always);
    assert_eq!(keys("bad")[..13], always);
    assert_eq!(keys("bad")[13..], ["error"]);
    assert_eq!(column(&listed, "state"), ["failed", "connecting", "connected"]);
    let good = row(&listed, "name", "good");
    let counts = json!([good["tools"], good["resources"], good["prompts"]]);
    assert_eq!(counts, json!([18, 1, 1]));
    let bad = row(&listed, "name", "bad");
    assert_eq!(json!([bad["tools"], bad["resources"]]), json!([null, null]));
    assert!(good["memory"].as_u64().unwrap() > 0 && good["cpu"].is_number(), "{good}");
    assert_eq!(json!([bad["memory"], bad["cpu"]]), json!([null, null]));
    assert_eq!(json!([good["calls_per_hour"], good["stops_after"]]), json!([0.0, 60]));
}

#[test]
fn one_server_is_shown_in_full() {
    let world = mixed();
    let ended = ends_with(run(&world, "get good"), 0);
    world.snapshots().bind(|| {
        insta::assert_snapshot!(ended.stdout, @"
    name: good
    file: [HOME]/.config/capstan/config.toml:8
    scope: user
    transport: stdio
    target: [BIN]/capstan-fixture --era legacy --instructions Be kind.
    description: A good one
    trust: untrusted
    timeout: 1m
    protocol: 2025-11-25
    title: capstan-fixture
    version: [VERSION]
    instructions: Be kind.
    tools: 18
    prompts: 1
    resources: 1
    templates: 1
    discovery: completed
    state: connected
    ");
    });
    let shown = ok_json(&world, "get good --refresh");
    world.snapshots().bind(|| {
        insta::assert_json_snapshot!(shown, @r#"
    {
      "name": "good",
      "file": "[HOME]/.config/capstan/config.toml:8",
      "scope": "user",
      "transport": "stdio",
      "target": "[BIN]/capstan-fixture --era legacy --instructions Be kind.",
      "description": "A good one",
      "trust": "untrusted",
      "timeout": "1m",
      "protocol": "2025-11-25",
      "title": "capstan-fixture",
      "version": "[VERSION]",
      "instructions": "Be kind.",
      "tools": 18,
      "prompts": 1,
      "resources": 1,
      "templates": 1,
      "discovery": "completed",
      "state": "connected"
    }
    "#);
    });
}

#[test]
fn a_server_that_failed_is_shown_with_its_last_words() {
    let world = with(&fixture("f", &["--stderr", "20", "--exit", "9"]));
    let shown = ok_json(&world, "get f");
    assert_eq!(shown["state"], "failed");
    says(shown["error"].as_str().unwrap(), "exiting with 9");
    let stderr = shown["stderr"].as_array().unwrap();
    assert_eq!((stderr.len(), &stderr[9]), (10, &json!("fixture: exiting with 9")));
    let ended = ends_with(run(&world, "get f"), 0);
    says(&ended.stdout, "\n  fixture: line 20 of 20\n  fixture: exiting with 9\n");
}

#[test]
fn tools_are_listed_with_effect_and_cost() {
    let entry = fixture("f", &["--tools", "1"]);
    let rules = "trust = \"trusted\"\nexpose = [\"add\", \"count\", \"hang\", \"tool_0\"]\n\
                 effect = { write = [\"tool_*\"] }\n";
    let world = with(&format!("{entry}{rules}"));
    let ended = ends_with(run(&world, "tools"), 0);
    insta::assert_snapshot!(ended.stdout, @"
    TOOL       EFFECT   TOKENS  DESCRIPTION
    f__add     read     50      Adds two numbers
    f__count   write    42      Counts how often it ran
    f__hang    unknown  30      Never answers
    f__tool_0  write    38      Echoes
    ");
    assert_eq!(ended.stderr, "");
    let listed = ok_json(&world, "tools --refresh");
    insta::assert_json_snapshot!(listed[0], @r#"
    {
      "id": "f__add",
      "server": "f",
      "name": "add",
      "description": "Adds two numbers",
      "effect": "read",
      "tokens": 50,
      "inputSchema": {
        "type": "object",
        "properties": {
          "a": {
            "type": "number"
          },
          "b": {
            "type": "number"
          }
        }
      }
    }
    "#);
    assert_eq!(column(&listed, "effect"), ["read", "write", "unknown", "write"]);
    assert_eq!(listed, ok_json(&world, "tools f --refresh"));
}

#[test]
fn one_tool_is_shown_with_its_arguments() {
    let world = with(&fixture("f", &[]));
    for name in ["f__add", "f:add", "mcp__f__add"] {
        let shown = ok_json(&world, &format!("tools {name}"));
        assert_eq!(shown["inputSchema"]["properties"]["a"], json!({ "type": "number" }));
    }
    let ended = ends_with(run(&world, "tools f__add"), 0);
    insta::assert_snapshot!(ended.stdout, @r#"
    f__add

    Adds two numbers

    effect: write   tokens: about 50

    ARGUMENT  TYPE      NEEDED    DESCRIPTION
    a         a number  optional
    b         a number  optional

    example:
      capstan call f__add a=1 b=1
    "#);
    let ended = ends_with(run(&world, "tools f__adf --json"), 4);
    assert_eq!(crate::stage::failure(&ended).2, "did you mean `f__add`?");
    ends_with(run(&world, "tools nobody"), 4);
}

#[test]
fn tools_come_in_the_order_of_the_configuration_and_from_every_page() {
    let both = [fixture("b", &["--pages", "4"]), fixture("a", &["--tools", "30", "--pages", "7"])];
    let world = with(&both.join("\n"));
    let servers = column(&ok_json(&world, "tools"), "server");
    assert_eq!(servers.len(), 18 + 48);
    assert!(servers[..18].iter().all(|server| server == "b"));
    assert!(servers[18..].iter().all(|server| server == "a"));
}

#[test]
fn where_nothing_is_configured_the_next_step_is_shown() {
    let world = World::new();
    for words in ["list", "tools"] {
        let ended = ends_with(run(&world, words), 0);
        assert_eq!(ended.stdout, "");
        says(&ended.stderr, "no servers are configured");
        says(&ended.stderr, "`capstan add NAME COMMAND…`");
        assert_eq!(ok_json(&world, words), json!([]));
    }
}
