//! `capstan acl`: what tools do, and why that is thought.

use serde_json::{Value, json};

use crate::stage::{column, ends_with, failure, fixture, ok_json, quoted, row, run, says, with};
use capstan_testkit::{World, binary};

/// A world with this file of definitions, and no server.
fn with_file(text: &str) -> World {
    let world = World::new();
    world.write("project/tools.jsonl", text);
    world
}

/// A configuration of another program, with a server whose tools have these effects.
fn with_tool_acl(acl: &Value) -> World {
    let command = binary("capstan-fixture");
    let world = World::new();
    let servers = json!({ "grafana": { "command": command, "tool_acl": acl } });
    world.write("project/servers.json", json!({ "mcpServers": servers }).to_string());
    world
}

#[test]
fn c30_every_tool_has_a_verdict_with_confidence_source_and_reasons() {
    let trusted = format!("{}trust = \"trusted\"\n", fixture("t", &[]));
    let world = with(&format!("{trusted}\n{}", fixture("u", &[])));
    let listed = ok_json(&world, "acl classify");
    let tools = ok_json(&world, "tools");
    assert_eq!(column(&listed, "effect"), column(&tools, "effect"));
    assert_eq!(column(&listed, "tool"), column(&tools, "name"));
    for one in listed.as_array().unwrap() {
        let keys: Vec<&String> = one.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["server", "tool", "effect", "confidence", "source", "reasons"]);
        assert!((0.0..=1.0).contains(&one["confidence"].as_f64().unwrap()), "{one}");
        assert!(!one["reasons"].as_array().unwrap().is_empty(), "{one}");
    }
    let only = ok_json(&world, "acl classify u");
    assert_eq!(only, ok_json(&world, "acl classify --server u"));
    assert!(column(&only, "server").iter().all(|server| server == "u"));
    let said = |list: &Value, tool| {
        let found = row(list, "tool", tool);
        json!([found["effect"], found["source"]])
    };
    assert_eq!(said(&listed, "roots"), json!(["read", "annotation"]));
    assert_eq!(said(&only, "roots"), json!(["unknown", "fallback"]));
    assert_eq!(said(&only, "count"), json!(["write", "annotation"]));
    assert_eq!(said(&only, "add"), json!(["write", "classifier"]));
    ends_with(run(&world, "acl classify nobody"), 4);
    ends_with(run(&world, "acl classify --server nobody"), 4);
    ends_with(run(&world, "acl classify u --server t"), 2);
}

#[test]
fn what_is_denied_has_an_effect_too() {
    let world = with(&format!("[permissions]\ndeny = [\"count\"]\n\n{}", fixture("f", &[])));
    let listed = ok_json(&world, "acl classify");
    assert_eq!(row(&listed, "tool", "count")["effect"], "write");
}

#[test]
fn c29_overrides_of_another_program_count_and_write_wins() {
    let world = with_tool_acl(&json!({ "read": ["crash*", "count"], "write": ["*_read"] }));
    let listed = ok_json(&world, "acl classify --config avelino:servers.json");
    let said = |tool: &str| {
        let found = row(&listed, "tool", tool);
        json!([found["effect"], found["confidence"], found["source"]])
    };
    assert_eq!(said("crash"), json!(["read", 1.0, "override"]));
    assert_eq!(said("count"), json!(["read", 1.0, "override"]));
    assert_eq!(said("crash_read"), json!(["write", 1.0, "override"]));
    assert_ne!(said("echo")[2], "override");
}

#[test]
fn c29_a_pattern_in_both_lists_is_an_error() {
    let world = with_tool_acl(&json!({ "read": ["get_*"], "write": ["get_*"] }));
    let ended = run(&world, "config check --config avelino:servers.json");
    assert_ne!(ended.status, Some(0), "{}", ended.stderr);
    says(&format!("{}{}", ended.stdout, ended.stderr), "`get_*` under both `read` and `write`");
}

#[test]
fn a_person_sees_a_table() {
    let world = with_file(
        "{\"server\":\"crm\",\"name\":\"get_contact\",\"description\":\"Get a contact\"}\n\n\
         {\"tool\":{\"name\":\"wipe_contacts\",\"annotations\":{\"readOnlyHint\":true}}}\n\
         {\"name\":\"gadget\"}\n",
    );
    let ended = ends_with(run(&world, "acl classify --file tools.jsonl"), 0);
    insta::assert_snapshot!(ended.stdout, @"
    SERVER  TOOL           EFFECT   SURE  SOURCE      REASONS
    crm     get_contact    read     90 %  classifier  name: `get` reads; description: `get` reads
    -       wipe_contacts  write    98 %  classifier  name: `wipe` takes away; annotation: readOnlyHint is true, from a server that is not trusted; finding: says readOnlyHint, but looks like a write (name: `wipe` takes away)
    -       gadget         unknown  0 %   fallback    name: no verb
    ");
    says(&ended.stderr, "1 of 3 unknown: they count as writes");
}

#[test]
fn definitions_in_a_file_need_no_server_and_their_annotations_are_hints() {
    let reads = r#""annotations":{"readOnlyHint":true}"#;
    let world = with_file(&format!(
        "{{\"id\":\"a-1\",\"server\":\"a\",\"name\":\"gadget\",{reads}}}\n\
         {{\"server\":\"b\",\"name\":\"run\",\"description\":\"Run it\",\"input_schema\":{{}}}}"
    ));
    let listed = ok_json(&world, "acl classify --file tools.jsonl");
    assert_eq!(column(&listed, "effect"), ["unknown", "write"]);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&json!("a-1"), &Value::Null));
    let only = ok_json(&world, "acl classify --file tools.jsonl --server b");
    assert_eq!(column(&only, "tool"), ["run"]);
}

#[test]
fn a_line_that_is_no_definition_is_refused_with_its_number() {
    for (line, problem) in [
        ("{", "not valid JSON"),
        ("[]", "not an object"),
        ("{\"server\":\"a\"}", "a tool needs a `name`"),
    ] {
        let world = with_file(&format!("{{\"name\":\"get_x\"}}\n{line}\n"));
        let ended = ends_with(run(&world, "acl classify --file tools.jsonl --json"), 2);
        let (code, message, hint) = failure(&ended);
        assert_eq!(code, "invalid_input");
        assert_eq!(message, format!("`tools.jsonl`, line 2: {problem}"), "{line}");
        says(&hint, "each line is a tool");
    }
    let ended = ends_with(run(&World::new(), "acl classify --file nothing.jsonl"), 2);
    says(&ended.stderr, &format!("cannot read {}", quoted("nothing.jsonl").replace('"', "`")));
}
