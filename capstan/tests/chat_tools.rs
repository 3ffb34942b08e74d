//! The tools that a model is offered in a conversation, and Capstan's own tools with which it reaches
//! the others: the real binary, real servers, and a stand-in for the providers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

use capstan_testkit::model_api::{MODEL_KEY, ModelApi, ModelRequest, ModelStep};
use capstan_testkit::{Ended, World, binary};
use serde_json::{Value, json};

const OWN: [&str; 4] = ["search_tools", "describe_tool", "call_tool", "read_resource"];

/// A world with a server of 59 tools, another of 19 and one of 4.
fn world(rules: &str) -> World {
    let world = World::new();
    let program = binary("capstan-fixture");
    let program = program.to_str().unwrap();
    let read = json!({"name": "read_file", "description": "Reads a file", "inputSchema": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}});
    let read = format!("\"--tool\", '{read}'");
    let entry =
        |name: &str, rest: &str| format!("[servers.{name}]\ncommand = {program:?}\n{rest}\n");
    let servers = [
        entry("large", &format!("args = [\"--tools\", \"40\", {read}, \"--library\"]")),
        entry("other", &format!("args = [{read}]")),
        entry("small", "expose = [\"echo\", \"add\", \"count\", \"log\"]"),
    ];
    world.write_user_config(&format!("{rules}\n{}", servers.concat()));
    world
}

fn chat(world: &World, api: &ModelApi, text: &str) -> Ended {
    world
        .capstan(["-p", text, "--model", "openai/model"])
        .env("OPENAI_BASE_URL", format!("{}/v1", api.url()))
        .env("OPENAI_API_KEY", MODEL_KEY)
        .run()
}

/// The names of the tools of a request.
fn offered(request: &ModelRequest) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn of_server<'a>(names: &'a [String], server: &str) -> Vec<&'a str> {
    let prefix = format!("{server}__");
    names.iter().map(String::as_str).filter(|name| name.starts_with(&prefix)).collect()
}

/// The text of the last result that the model got.
fn result(request: &ModelRequest) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "tool").unwrap();
    last["content"].as_str().unwrap().to_owned()
}

fn system(request: &ModelRequest) -> String {
    request.body["messages"][0]["content"].as_str().unwrap().to_owned()
}

fn allowing(search: &str) -> String {
    format!("[permissions]\nallow = [\"*\"]\n[search]\n{search}\n")
}

#[test]
fn c45_a_model_is_offered_ten_fitting_tools_the_included_ones_and_small_servers() {
    let world = world(&allowing("always_include = [\"read_file\"]"));
    let api = ModelApi::start([ModelStep::text("ok")]);
    assert_eq!(chat(&world, &api, "Please add two numbers.").ok(), "ok\n");
    let request = &api.requests()[0];
    let names = offered(request);
    let has = |name: &str| names.contains(&name.to_owned());
    assert!(has("large__read_file") && has("other__read_file"), "{names:?}");
    assert!(has("large__add") || has("other__add"), "{names:?}");
    assert_eq!(of_server(&names, "small").len(), 4, "{names:?}");
    let fitting = names.len() - OWN.len() - 4 - 2;
    assert!((1..=10).contains(&fitting), "{names:?}");
    assert!(OWN.iter().all(|own| has(own)), "{names:?}");
    let more = 59 + 19 + 4 - (names.len() - OWN.len());
    assert!(system(request).contains(&format!("{more} more tools are available")), "{names:?}");
}

#[test]
fn c45_a_qualified_name_includes_one_tool_and_none_offers_all() {
    let qualified = world(&allowing("always_include = [\"other__read_file\"]\ntop_k = 1"));
    let api = ModelApi::start([ModelStep::text("ok")]);
    chat(&qualified, &api, "Please add two numbers.").ok();
    let names = offered(&api.requests()[0]);
    let reads: Vec<&String> = names.iter().filter(|name| name.ends_with("read_file")).collect();
    assert_eq!(reads, ["other__read_file"]);
    assert_eq!(names.len(), 4 + 1 + 1 + OWN.len(), "{names:?}");
    // Less similar tools than the minimum fit nothing.
    let strict = world(&allowing("min_similarity = 1.0"));
    let api = ModelApi::start([ModelStep::text("ok")]);
    chat(&strict, &api, "Please add two numbers.").ok();
    assert_eq!(offered(&api.requests()[0]).len(), 4 + OWN.len());
    let all = world(&allowing("strategy = \"none\""));
    let api = ModelApi::start([ModelStep::text("ok")]);
    chat(&all, &api, "Please add two numbers.").ok();
    let names = offered(&api.requests()[0]);
    assert_eq!(names.len(), 59 + 19 + 4 + 1, "{names:?}");
    assert!(!names.contains(&"search_tools".to_owned()), "nothing is left to search");
}

#[test]
fn a_model_finds_describes_and_calls_a_tool_that_it_is_not_offered() {
    let world = world(&allowing("min_similarity = 1.0"));
    let api = ModelApi::start([
        ModelStep::calls([("search_tools", json!({"queries": ["reads a file", "adds numbers"]}))]),
        ModelStep::calls([("describe_tool", json!({"tool": "large__add"}))]),
        ModelStep::calls([(
            "call_tool",
            json!({"tool": "large__add", "arguments": {"a": 20, "b": 22}}),
        )]),
        ModelStep::calls([(
            "read_resource",
            json!({"server": "large", "uri": "file:///workspace/README.md"}),
        )]),
        ModelStep::text("done"),
    ]);
    let strict = chat(&world, &api, "hello").ok();
    assert_eq!(strict, "done\n");
    assert!(!offered(&api.requests()[0]).contains(&"large__add".to_owned()));
    assert_eq!(result(&api.requests()[1]), "None of 82 tools fits.");
    assert!(result(&api.requests()[2]).contains("\"a\":{\"type\":\"number\"}"));
    assert_eq!(result(&api.requests()[3]), "42");
    assert!(result(&api.requests()[4]).contains("# Read"), "{}", result(&api.requests()[4]));
    let offers: Vec<Vec<String>> = api.requests().iter().map(offered).collect();
    assert!(offers.windows(2).all(|two| two[0] == two[1]), "the offer of a turn stays the same");
    let audit: Value =
        serde_json::from_str(&world.capstan(["audit", "--json"]).run().ok()).unwrap();
    let items: Vec<&str> =
        audit.as_array().unwrap().iter().filter_map(|row| row["item"].as_str()).collect();
    assert!(items.contains(&"add"), "the audit log has the real tool: {audit}");
    assert!(!items.contains(&"call_tool"), "{audit}");
}

#[test]
fn a_search_result_has_names_purposes_and_arguments() {
    let world = world(&allowing("top_k = 1"));
    let queries = json!({"queries": ["reads a file", "xyzzy plugh"], "limit": 2});
    let api =
        ModelApi::start([ModelStep::calls([("search_tools", queries)]), ModelStep::text("done")]);
    chat(&world, &api, "add two numbers").ok();
    let found = result(&api.requests()[1]);
    // Both servers have the tool; it is shown once.
    let rows = ["large", "other"].map(|server| {
        let same = if server == "large" { "other" } else { "large" };
        format!("{server}__read_file(path: string): Reads a file (the same: {same}__read_file)")
    });
    let first = found.lines().next().unwrap();
    assert!(rows.iter().any(|row| row == first), "{found}");
}

#[test]
fn a_forbidden_tool_is_not_found_not_described_and_not_called_by_name() {
    let rules = format!("{}\n", allowing("top_k = 1"))
        .replace("allow = [\"*\"]", "allow = [\"*\"]\ndeny = [\"large__add\", \"other__*\"]");
    let world = world(&rules);
    let api = ModelApi::start([
        ModelStep::calls([("search_tools", json!({"queries": ["adds two numbers"], "limit": 20}))]),
        ModelStep::calls([
            ("describe_tool", json!({"tool": "large__add"})),
            ("call_tool", json!({"tool": "large__add", "arguments": {"a": 1, "b": 2}})),
            ("call_tool", json!({"tool": "nosuch__tool"})),
            ("call_tool", json!({"arguments": {}})),
            ("search_tools", json!({"queries": []})),
            ("read_resource", json!({"server": "nosuch", "uri": "a:b"})),
        ]),
        ModelStep::text("done"),
    ]);
    let ended = chat(&world, &api, "add two numbers");
    assert_eq!(ended.status, Some(6), "{}", ended.stderr);
    let requests = api.requests();
    assert!(!offered(&requests[0]).contains(&"large__add".to_owned()));
    let found = result(&requests[1]);
    assert!(found.contains("small__add") && !found.contains("large__add"), "{found}");
    assert!(!found.contains("other__"), "{found}");
    let results: Vec<String> = requests[2].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(results.len(), 7);
    assert!(results[1].contains("failed") && !results[1].contains("number\""), "{results:?}");
    assert!(results[2].contains("was refused"), "{results:?}");
    assert!(results[3].contains("`search_tools` finds tools"), "{results:?}");
    assert!(results[4].contains("`tool` must be a text"), "{results:?}");
    assert!(results[5].contains("`queries` is empty"), "{results:?}");
    assert!(results[6].contains("nosuch"), "{results:?}");
}

#[test]
fn a_model_can_select_the_tools_and_offers_none_that_is_forbidden_or_unknown() {
    let rules = allowing("strategy = \"llm\"")
        .replace("allow = [\"*\"]", "allow = [\"*\"]\ndeny = [\"large__big\"]");
    let world = world(&rules);
    let names = r#"["large__tool_7", "large__big", "nosuch", "other__echo"]"#;
    let api = ModelApi::start([ModelStep::text(names), ModelStep::text("ok")]);
    let ended = chat(&world, &api, "whatever you like");
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.ok(), "ok\n");
    let requests = api.requests();
    assert!(requests[0].body.get("tools").is_none());
    let asked = requests[0].body.to_string();
    assert!(asked.contains("large__tool_7: Echoes") && asked.contains("whatever you like"));
    assert!(!asked.contains("large__big"), "a forbidden tool is not shown to the model");
    let names = offered(&requests[1]);
    assert_eq!(of_server(&names, "large"), ["large__tool_7"]);
    assert_eq!(of_server(&names, "other"), ["other__echo"]);
}

#[test]
fn if_the_model_does_not_select_the_tools_search_does_and_one_note_says_so() {
    for answer in [ModelStep::status(500, "broken"), ModelStep::text("I like all of them.")] {
        let world = world(&allowing("strategy = \"llm\""));
        let api = ModelApi::start([answer, ModelStep::text("ok")]);
        let ended = chat(&world, &api, "Please add two numbers.");
        let note = "tools are selected by search";
        assert_eq!(ended.stderr.matches(note).count(), 1, "{}", ended.stderr);
        assert_eq!(ended.ok(), "ok\n");
        let names = offered(&api.requests()[1]);
        assert!(names.iter().any(|name| name.ends_with("__add")), "{names:?}");
    }
    let world = world(&allowing("strategy = \"llm\"\nmodel = \"gemini/other\""));
    let api = ModelApi::start([ModelStep::text("ok")]);
    let ended = chat(&world, &api, "Please add two numbers.");
    assert!(ended.stderr.contains("no API key for `gemini`"), "{}", ended.stderr);
    assert_eq!(ended.ok(), "ok\n");
}
