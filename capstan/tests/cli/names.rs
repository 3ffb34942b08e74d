//! Names and schemas: what models are offered, what is hidden, and which arguments are sent.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stage::{
    column, ends_with, failure, fixture, last_entry, ok_json, quoted, read, row, run, says, with,
};

const LONG: &str = "a_tool_with_a_name_of_seventy_characters_which_is_more_than_any_api_takes";

/// The entry of a fixture with these tools besides its own, and more keys.
#[track_caller]
fn server(name: &str, tools: &[Value], keys: &str) -> String {
    let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
    let options: Vec<&str> = tools.iter().flat_map(|tool| ["--tool", tool]).collect();
    format!("{}{keys}\n", fixture(name, &options))
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn with_schema(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "inputSchema": schema })
}

#[track_caller]
fn called(world: &World, words: &[&str]) -> String {
    ends_with(world.capstan(["call"].iter().chain(words)).run(), 0).stdout
}

#[test]
fn c58_odd_and_long_and_clashing_names() {
    let bare = "naming = \"bare\"";
    let first = server("first", &[tool("a b/ü"), tool(LONG), tool("search")], bare);
    let second = server("second", &[tool("search")], bare);
    let world = with(&format!("{first}\n{second}"));
    let tools = ok_json(&world, "tools --for gemini");
    let name = |id: &str| row(&tools, "id", id)["public_name"].as_str().unwrap().to_owned();
    assert_eq!(name("first__a b/ü"), "a_b__");
    let (head, tail) = (LONG.get(..28).unwrap(), LONG.get(LONG.len() - 32..).unwrap());
    assert_eq!(name(&format!("first__{LONG}")), format!("{head}___{tail}"));
    assert_eq!(name("first__search"), "search");
    assert_eq!(name("second__search"), "second__search");
    let mut names = column(&tools, "public_name");
    assert!(names.iter().all(|name| name.len() <= 63), "{names:?}");
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);

    for (name, server, item) in [
        ("a_b__", "first", "a b/ü"),
        ("search", "first", "search"),
        ("second__search", "second", "search"),
        (&format!("{head}___{tail}"), "first", LONG),
        ("first:a b/ü", "first", "a b/ü"),
        ("mcp__second__search", "second", "search"),
    ] {
        assert_eq!(called(&world, &[name, "x=1"]), "{\"x\":1}\n", "{name}");
        let entry = last_entry(&world);
        assert_eq!(json!([entry["server"], entry["item"]]), json!([server, item]), "{name}");
        ends_with(world.capstan(["why", name]).run(), 0);
        let shown = ends_with(world.capstan(["tools", name, "--json"]).run(), 0);
        assert_eq!(crate::stage::json(&shown)["name"], item, "{name}");
    }
}

/// A dot is allowed in a name; `second.search` is an id, because there is a server `second`.
#[test]
fn c58_a_bare_name_keeps_its_dots() {
    let bare = "naming = \"bare\"";
    let first = server("first", &[tool("repo.list"), tool("second.search")], bare);
    let second = server("second", &[tool("search")], bare);
    let world = with(&format!("{first}\n{second}"));
    let tools = ok_json(&world, "tools --for gemini");
    let name = |id: &str| row(&tools, "id", id)["public_name"].as_str().unwrap().to_owned();
    assert_eq!(name("first__repo.list"), "repo.list");
    assert_eq!(name("first__second.search"), "first__second.search");
    for (typed, server, item) in [
        ("repo.list", "first", "repo.list"),
        ("second.search", "second", "search"),
        ("first__second.search", "first", "second.search"),
    ] {
        called(&world, &[typed]);
        let entry = last_entry(&world);
        assert_eq!(json!([entry["server"], entry["item"]]), json!([server, item]), "{typed}");
    }
}

#[test]
fn ids_are_shown_whatever_the_naming_and_nothing_is_added_without_a_provider() {
    let world = with(&server("s", &[tool("a b")], "naming = \"mcp\""));
    let tools = ok_json(&world, "tools");
    let keys = ["id", "server", "name", "description", "effect", "tokens", "inputSchema"];
    let found = row(&tools, "id", "s__a b");
    assert!(found.as_object().unwrap().keys().eq(keys), "{found}");
    says(&run(&world, "tools").stdout, "s__a b");
    let offered = ok_json(&world, "tools --for anthropic");
    assert_eq!(row(&offered, "id", "s__a b")["public_name"], "mcp__s__a_b");
    assert_eq!(called(&world, &["mcp__s__a_b"]), "{}\n");
}

#[test]
fn a_bare_name_waits_for_every_server_that_comes_before() {
    let bare = "naming = \"bare\"";
    let broken = format!("{}{bare}\n", fixture("broken", &["--exit", "3"]));
    let world = with(&format!("{broken}\n{}", server("good", &[tool("search")], bare)));
    let ended = ends_with(run(&world, "call search --json"), 7);
    says(&failure(&ended).1, "server `broken` is not usable");
    assert_eq!(called(&world, &["good__search"]), "{}\n");
    ends_with(run(&world, "disable broken"), 0);
    assert_eq!(called(&world, &["search"]), "{}\n");
}

#[test]
fn a_name_that_nobody_has_starts_nobody() {
    let world = World::new();
    let trace = world.home().join("trace");
    world.write_user_config(&fixture("s", &["--trace", trace.to_str().unwrap()]));
    for name in ["search", "t__search"] {
        let ended = ends_with(run(&world, &format!("call {name} --json")), 4);
        assert_eq!(failure(&ended).0, "not_found");
    }
    assert!(!trace.exists());
}

/// What C59 speaks of, with numbers and an order that a JSON library could change.
fn odd_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "z": { "anyOf": [{ "type": "string", "default": "x" }, { "type": "integer" }], "default": "x" },
            "nested": { "type": "object", "additionalProperties": false, "properties": {
                "deep": { "$schema": "x", "type": "array", "items": { "type": "object", "additionalProperties": true } }
            } },
            "tree": { "$ref": "#/$defs/node" }
        },
        "additionalProperties": false,
        "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } }
    })
}

#[test]
fn c59_schemas_are_cleaned_for_gemini_and_for_nobody_else() {
    let world = with(&server("s", &[with_schema("odd", &odd_schema())], ""));
    let expected = json!({
        "type": "object",
        "properties": {
            "z": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "nested": { "type": "object", "properties": {
                "deep": { "type": "array", "items": { "type": "object" } }
            } },
            "tree": { "type": "object", "properties": { "next": { "type": "object" } } }
        }
    });
    let gemini = ends_with(run(&world, "tools s__odd --for gemini --json"), 0);
    says(&gemini.stdout, &expected.to_string());
    for words in [
        "tools --json",
        "tools s__odd --json",
        "tools s --for openai --json",
        "tools --for anthropic --json",
    ] {
        says(&ends_with(run(&world, words), 0).stdout, &odd_schema().to_string());
    }
    let text = ends_with(run(&world, "tools s__odd --for gemini"), 0).stdout;
    says(&text, &expected.to_string());
}

#[test]
fn a_schema_that_a_provider_cannot_take_hides_its_tool_there_and_no_other() {
    let choice =
        with_schema("choice", &json!({ "type": "object", "anyOf": [{ "required": ["a"] }] }));
    let world = with(&server("s", &[choice, tool("plain")], ""));
    let ended = ends_with(run(&world, "tools --for openai --json"), 0);
    let ids = column(&crate::stage::json(&ended), "id");
    assert!(ids.contains(&"s__plain".to_owned()) && !ids.contains(&"s__choice".to_owned()));
    says(&ended.stderr, "`s__choice` is hidden: its schema has `anyOf` at its root");
    let ended = ends_with(run(&world, "tools s__choice --for openai --json"), 4);
    assert_eq!(failure(&ended).0, "not_found");
    ends_with(run(&world, "tools s__choice --for gemini"), 0);
    ends_with(run(&world, "tools --for nobody"), 2);
}

#[test]
fn a_bad_schema_hides_its_tool_with_the_reason_and_breaks_no_other() {
    let bad = with_schema("bad", &json!({ "properties": { "a": { "type": "strng" } } }));
    let far =
        with_schema("far", &json!({ "properties": { "a": { "$ref": "http://127.0.0.1:9/a" } } }));
    let world = with(&server("s", &[bad, far, tool("good")], ""));
    let ended = ends_with(run(&world, "tools --json"), 0);
    let ids = column(&crate::stage::json(&ended), "id");
    assert!(ids.contains(&"s__good".to_owned()), "{ids:?}");
    assert!(!ids.iter().any(|id| id == "s__bad" || id == "s__far"), "{ids:?}");
    says(&ended.stderr, "`s__bad` is hidden: its input schema cannot be used: `properties.a.type`");
    says(&ended.stderr, "`s__far` is hidden");
    for name in ["s__bad", "s__far"] {
        let ended = ends_with(run(&world, &format!("call {name} --json")), 4);
        let (code, message, _) = failure(&ended);
        assert_eq!(code, "not_found");
        says(&message, &format!("`{name}` is hidden: its input schema"));
    }
    assert_eq!(called(&world, &["s__good"]), "{}\n");
}

#[test]
fn arguments_that_do_not_fit_never_reach_the_server() {
    let world = World::new();
    let trace = world.home().join("trace");
    let schema = json!({
        "type": "object",
        "properties": {
            "n": { "type": "integer", "minimum": 1 },
            "api_key": { "type": "string", "maxLength": 3 },
            "issue": { "type": "object", "properties": { "labels": { "type": "array", "items": { "enum": ["a", "b"] } } } }
        },
        "required": ["n"],
        "additionalProperties": false
    });
    let strict = with_schema("strict", &schema).to_string();
    let options = ["--tool", &strict, "--trace", trace.to_str().unwrap()];
    world.write_user_config(&fixture("s", &options));
    for (arguments, expected) in [
        (r#"{"n":0}"#, "`n` must be at least 1, not `0`"),
        (r#"{"n":"x"}"#, "`n` must be an integer, not `\"x\"`"),
        (r#"{"n":1,"api_key":"hunter2"}"#, "`api_key` must have at most 3 characters, not ***"),
        (
            r#"{"n":1,"issue":{"labels":["a","c"]}}"#,
            "`issue.labels[1]` must be one of `\"a\"`, `\"b\"`, not `\"c\"`",
        ),
        (r#"{"n":1,"other":true}"#, "there is no `other`"),
    ] {
        let ended = ends_with(world.capstan(["call", "s__strict", arguments, "--json"]).run(), 2);
        let (code, message, hint) = failure(&ended);
        assert_eq!(code, "invalid_input");
        assert_eq!(message, format!("invalid arguments for `s__strict`: {expected}"));
        assert_eq!(hint, "`capstan tools s__strict` shows its arguments");
        assert_eq!(last_entry(&world)["code"], "invalid_input");
    }
    let words = ["call", "s__strict", "n=0", "--json"];
    says(&failure(&ends_with(world.capstan(words).run(), 2)).1, "at least 1");
    assert!(!read(&trace).contains("tools/call"), "{}", read(&trace));
    assert_eq!(called(&world, &["s__strict", r#"{"n": 1.0}"#]), "{\"n\": 1.0}\n");
}

#[test]
fn a_naming_that_does_not_exist_is_refused() {
    let world = with(&format!("{}naming = {}\n", fixture("s", &[]), quoted("short")));
    says(&run(&world, "config check").stderr, "naming");
    ends_with(run(&world, "call s__echo"), 7);
}
