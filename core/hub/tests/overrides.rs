//! Tools that the operator shows and calls in another way than their server does.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Alphabet, Catalog, Gathered, Names, Overrides, Patience};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Call, Keep};
use capstan_model::{
    CallError, Caller, Effect, ErrorCode, Front, ItemId, Kind, Naming, Target, ToolOverride,
};
use capstan_policy::{PolicySource, ServerPolicy};
use futures::FutureExt;
use futures::future::ready;
use serde_json::{Value, json};

use world::{Person, Server, World, policy};

/// A server with three tools, two of which have parameters.
fn server() -> Server {
    let tools = [
        json!({ "name": "delete_all", "description": "Delete everything.", "x-more": [1.50],
            "inputSchema": { "type": "object", "required": ["team", "query"], "properties": {
                "team": { "type": "string" }, "query": { "type": "string" },
                "limit": { "type": "integer" }, "cursor": { "type": "string" } } } }),
        json!({ "name": "get", "description": "Get it." }),
        json!({ "name": "other" }),
    ];
    let items: Arc<[Item]> = tools
        .iter()
        .map(|tool| Item {
            name: tool["name"].as_str().unwrap().to_owned(),
            definition: world::json(&tool.to_string()),
        })
        .collect();
    let lists = move |_| ready(Ok(Arc::clone(&items))).boxed();
    Server { lists: Box::new(lists), ..Server::new("files", &[]) }
}

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// What most tests change.
fn usual() -> ToolOverride {
    ToolOverride {
        name: Some("things".to_owned()),
        title: Some("Things".to_owned()),
        description: Some("Get all things.".to_owned()),
        default: object(&json!({ "limit": 20 })),
        pin: object(&json!({ "team": "core" })),
        hide_parameters: vec!["cursor".to_owned()],
        hidden: false,
    }
}

fn world(
    overrides: Vec<(&str, ToolOverride)>,
    policy: PolicySource,
) -> (World, Arc<std::sync::Mutex<Vec<String>>>) {
    let server = server();
    let requests = Arc::clone(&server.requests);
    let mut world = World::new(vec![server], policy);
    let of_tools = overrides.into_iter().map(|(tool, one)| (tool.to_owned(), one)).collect();
    let overrides = Arc::new(Overrides::new([("files".parse().unwrap(), of_tools)]));
    let names = Names::new([("files".parse().unwrap(), Naming::Prefixed)]);
    let names = names.with(Arc::clone(&overrides));
    let catalog = Catalog { names, overrides, ..Catalog::default() };
    world.change(|hub| hub.catalog = Arc::new(catalog));
    (world, requests)
}

/// A policy that knows of the new name too.
fn with_new_name(deny: &[&str], ask: &[&str], allow: &[&str]) -> PolicySource {
    let mut policy = policy(deny, ask, allow);
    let new_names = [("delete_all".to_owned(), "things".to_owned())].into();
    let files = ServerPolicy { new_names, ..ServerPolicy::default() };
    policy.servers.insert("files".parse().unwrap(), files);
    policy
}

async fn gather(world: &World) -> Gathered {
    world.hub.gather(Listing::Tools, Patience::UpTo(Duration::MAX), &mut |_| {}).await
}

async fn call(world: &World, front: Front, name: &str, arguments: Value) -> Result<(), CallError> {
    let arguments = world::json(&arguments.to_string());
    let caller = match front {
        Front::Gateway => Caller::anonymous(),
        Front::Cli | Front::Terminal => Caller::operator(front),
    };
    let call = Call::new(caller, Target::tool(name), Some(&arguments));
    world.call(&Arc::new(Person::nobody()), call).await.map(drop)
}

#[tokio::test]
async fn a_tool_is_listed_as_the_operator_wants_it() {
    let (world, _) = world(vec![("delete_all", usual())], policy(&[], &[], &["*"]));
    let gathered = gather(&world).await;
    let tools = world.hub.visible_tools(&gathered, &Caller::operator(Front::Cli));
    let ids: Vec<String> = tools.iter().map(|tool| tool.shown_id().to_string()).collect();
    assert_eq!(ids, ["files__things", "files__get", "files__other"]);
    let shown: Value = tools[0].definition.read().unwrap();
    assert_eq!(
        shown,
        json!({ "name": "things", "title": "Things", "description": "Get all things.",
            "x-more": [1.50], "inputSchema": { "type": "object", "required": ["query"],
                "properties": { "query": { "type": "string" },
                    "limit": { "type": "integer", "default": 20 } } } })
    );
    // What it does is told by what its server says of it.
    assert_eq!((tools[0].id.item.as_str(), tools[0].effect), ("delete_all", Effect::Write));
    world.hub.name_tools(&gathered, Alphabet::Usual);
    let id = ItemId { server: "files".parse().unwrap(), item: "delete_all".to_owned() };
    let names = &world.hub.catalog().names;
    let public = names.public(Kind::Tool, Alphabet::Usual, &id);
    assert_eq!(public.as_deref(), Some("files__things"));
    assert_eq!(names.resolve(Kind::Tool, Alphabet::Usual, "files__things"), Some(id));
}

#[tokio::test]
async fn a_call_by_any_spelling_reaches_the_tool_with_what_is_settled() {
    for name in
        ["files__things", "files:things", "files.things", "mcp__files__things", "files__delete_all"]
    {
        let (mut world, requests) = world(vec![("delete_all", usual())], policy(&[], &[], &["*"]));
        world.change(|hub| hub.limits.keep_arguments = Keep::Redacted);
        call(&world, Front::Gateway, name, json!({ "query": "a" })).await.unwrap();
        let expected =
            r#"{"name":"delete_all","arguments":{"query":"a","team":"core","limit":20}}"#;
        assert_eq!(*requests.lock().unwrap(), [format!("tools/call {expected}")], "{name}");
        assert_eq!(world.entries()[0].item, "delete_all");
        // Who gives what has a default has chosen.
        call(&world, Front::Gateway, name, json!({ "limit": 1, "query": "a" })).await.unwrap();
        assert!(requests.lock().unwrap()[1].contains(r#""limit":1,"#), "{requests:?}");
    }
}

#[tokio::test]
async fn nobody_gives_what_is_settled() {
    let (world, requests) = world(vec![("delete_all", usual())], policy(&[], &[], &["*"]));
    for front in [Front::Cli, Front::Gateway] {
        for name in ["files__things", "files__delete_all"] {
            for arguments in [
                json!({ "query": "a", "team": "other" }),
                json!({ "query": "a", "team": "core" }),
                json!({ "query": "a", "team": null }),
                json!({ "query": "a", "cursor": "x" }),
                // Holes 2: a server could take these for what is settled.
                json!({ "query": "a", "Team": "other" }),
                json!({ "query": "a", "team\0": "other" }),
                json!({ "query": "a", "CURSOR": "x" }),
                json!([]),
                json!("team"),
            ] {
                let error = call(&world, front, name, arguments.clone()).await.unwrap_err();
                assert_eq!(error.code(), ErrorCode::InvalidInput, "{arguments}: {error}");
            }
        }
    }
    assert!(requests.lock().unwrap().is_empty());
    let (world, requests) = self::world(vec![("delete_all", usual())], policy(&[], &[], &["*"]));
    let twice = Call {
        params: world::json(r#"{"name":"x","arguments":{"query":"a","te\u0061m":"other"}}"#),
        ..Call::new(Caller::anonymous(), Target::tool("files__things"), None)
    };
    let told = world.call(&Arc::new(Person::nobody()), twice).await.map(drop);
    assert_eq!(told.unwrap_err().code(), ErrorCode::InvalidInput);
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn rules_see_the_final_arguments_and_the_tools_own_name() {
    let cases: [([&[&str]; 3], bool); 7] = [
        ([&["files__delete_all:team=core"], &[], &["*"]], false),
        ([&["files__delete_all:limit=20"], &[], &["*"]], false),
        ([&["files__delete_all:team=other"], &[], &["*"]], true),
        ([&["delete_*"], &[], &["*"]], false),
        ([&["files__things"], &[], &["*"]], false),
        ([&[], &["things"], &["delete_all"]], false),
        // By its new name it would pass for one that only reads.
        ([&[], &[], &["files__things", "things"]], false),
    ];
    for ([deny, ask, allow], runs) in cases {
        let (world, _) = world(vec![("delete_all", usual())], with_new_name(deny, ask, allow));
        let told = call(&world, Front::Cli, "files__things", json!({ "query": "a" })).await;
        assert_eq!(told.is_ok(), runs, "{deny:?} {ask:?} {allow:?}: {told:?}");
        if let Err(error) = told {
            assert_eq!(error.code(), ErrorCode::PolicyBlocked, "{error}");
        }
    }
}

#[tokio::test]
async fn who_may_not_know_of_a_tool_learns_nothing_of_what_is_settled_for_it() {
    let (world, _) =
        world(vec![("delete_all", usual())], with_new_name(&["delete_all"], &[], &["*"]));
    let error = call(&world, Front::Gateway, "files__things", json!({ "team": "x" })).await;
    assert_eq!(error.unwrap_err().code(), ErrorCode::PolicyBlocked);
}

#[tokio::test]
async fn what_is_asked_for_in_vain_is_told_with_the_nearest_name() {
    let called =
        |name: &str| ToolOverride { name: Some(name.to_owned()), ..ToolOverride::default() };
    let parameters = ToolOverride {
        default: object(&json!({ "limt": 1 })),
        hide_parameters: vec!["query".to_owned()],
        ..ToolOverride::default()
    };
    let overrides = vec![
        ("delete_al", called("x")),
        ("get", called("other")),
        ("other", called("same")),
        ("delete_all", parameters),
    ];
    let (world, requests) = world(overrides, policy(&[], &[], &["*"]));
    let gathered = gather(&world).await;
    let tools = world.hub.visible_tools(&gathered, &Caller::operator(Front::Cli));
    assert_eq!(
        world.hub.catalog().overrides.problems(&"files".parse().unwrap()),
        [
            "`tools.delete_al`: there is no such tool; did you mean `delete_all`?",
            "`tools.get.name`: `other` is another tool; it keeps its name",
            "`tools.delete_all`: the tool names no parameter `limt`; did you mean `limit`?",
            "`tools.delete_all`: \"query\" is hidden, but the tool needs it; pin it",
        ]
    );
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["delete_all", "get", "same"]);
    // A name goes to the tool that has it, never to the one that wanted it.
    call(&world, Front::Cli, "files__other", json!({})).await.unwrap();
    assert!(requests.lock().unwrap()[0].contains(r#""name":"other""#), "{requests:?}");
}
