//! Items by the names that clients and models know them by, and tools whose schemas cannot be used.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Alphabet, Catalog, Gathered, Names, Patience};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Absent, Call};
use capstan_model::{
    CallError, Caller, ErrorCode, Front, ItemId, Kind, Naming, ServerName, ServerState, Target,
};
use futures::FutureExt;
use futures::future::ready;
use world::{Person, Server, World, json, policy};

const LONG: &str = "a_name_that_is_so_long_that_no_model_api_would_take_it_as_it_stands_here";

fn world(servers: Vec<Server>, naming: &[(&str, Naming)]) -> World {
    let mut world = World::new(servers, policy(&[], &[], &["*"]));
    let naming = naming.iter().map(|(name, naming)| (name.parse().unwrap(), *naming));
    let catalog = Catalog { names: Names::new(naming), ..Catalog::default() };
    world.change(|hub| hub.catalog = Arc::new(catalog));
    world
}

async fn found(world: &World, name: &str) -> Result<String, CallError> {
    let caller = Caller::operator(Front::Cli);
    Ok(world.hub.find_tool(&caller, name).await?.id.to_string())
}

async fn gather(world: &World) -> Gathered {
    world.hub.gather(Listing::Tools, Patience::UpTo(Duration::MAX), &mut |_| {}).await
}

fn broken(name: &str) -> Server {
    let server: ServerName = name.parse().unwrap();
    let failed = move || CallError::Unreachable { server: server.clone(), reason: "x".to_owned() };
    Server { lists: Box::new(move |_| ready(Err(failed())).boxed()), ..Server::new(name, &[]) }
}

/// A server with one tool of this schema.
fn with_schema(name: &str, schema: &'static str) -> Server {
    let items = move || -> Arc<[Item]> {
        let definition = json(&format!(r#"{{"name":"odd","inputSchema":{schema}}}"#));
        Arc::from([Item { name: "odd".to_owned(), definition }])
    };
    Server { lists: Box::new(move |_| ready(Ok(items())).boxed()), ..Server::new(name, &[]) }
}

#[tokio::test]
async fn a_name_in_any_form_finds_its_tool_without_any_list_seen_before() {
    let servers = || {
        vec![
            Server::new("files", &["a b/ü", LONG, "list.all"]),
            Server::new("a-server-of-thirty-two-characte", &["tool with a space", LONG]),
        ]
    };
    let knowing = world(servers(), &[]);
    let gathered = gather(&knowing).await;
    for alphabet in Alphabet::ALL {
        knowing.hub.name_tools(&gathered, alphabet);
        for tool in knowing.hub.visible_tools(&gathered, &Caller::operator(Front::Cli)) {
            let name = knowing.hub.catalog().names.public(Kind::Tool, alphabet, &tool.id).unwrap();
            for world in [&knowing, &world(servers(), &[])] {
                assert_eq!(found(world, &name).await.unwrap(), tool.id.to_string(), "{name}");
            }
        }
    }
    assert_eq!(found(&world(servers(), &[]), "files__list_all").await.unwrap(), "files__list.all");
}

#[tokio::test]
async fn whoever_says_which_server_gets_its_item_whatever_others_are_called() {
    let servers = vec![
        // Its tool is offered by a name that another server has a tool of.
        Server::new("files", &["mcp__read", "read"]),
        Server::new("mcp", &["read", "files__read"]),
    ];
    let world = world(servers, &[("mcp", Naming::Bare), ("files", Naming::Bare)]);
    let gathered = gather(&world).await;
    world.hub.name_tools(&gathered, Alphabet::Usual);
    let caller = Caller::operator(Front::Gateway);
    let find = async |server: &str, item: &str| {
        let id = ItemId { server: server.parse().unwrap(), item: item.to_owned() };
        world.hub.find(&caller, Target::exact(Kind::Tool, id)).await.map(|(id, _)| id)
    };
    for (server, item) in
        [("mcp", "read"), ("mcp", "files__read"), ("files", "read"), ("files", "mcp__read")]
    {
        let id = find(server, item).await.unwrap();
        assert_eq!((id.server.as_str(), id.item.as_str()), (server, item));
    }
    // Names that would be somebody's, were they looked up.
    for (server, item) in
        [("mcp", "mcp__read"), ("files", "files__read"), ("files", "mcp"), ("none", "read")]
    {
        let error = find(server, item).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound, "{server} {item}");
    }
}

#[tokio::test]
async fn the_raw_name_goes_to_the_server_and_into_the_audit_log() {
    let server = Server::new("files", &["a b/ü"]);
    let requests = Arc::clone(&server.requests);
    let world = world(vec![server], &[("files", Naming::Bare)]);
    let call = Call::new(Caller::operator(Front::Cli), Target::tool("a_b__"), None);
    world.call(&Arc::new(Person::nobody()), call).await.unwrap();
    assert_eq!(*requests.lock().unwrap(), [r#"tools/call {"name":"a b/ü"}"#]);
    let entry = world.entries().pop().unwrap();
    assert_eq!((entry.server.as_deref(), entry.item.as_str()), (Some("files"), "a b/ü"));
}

#[tokio::test]
async fn a_bare_name_is_that_of_the_first_server_that_has_it() {
    let bare = [("one", Naming::Bare), ("two", Naming::Bare)];
    let servers = || vec![Server::new("one", &["a"]), Server::new("two", &["a", "b"])];
    let world = world(servers(), &bare);
    assert_eq!(found(&world, "a").await.unwrap(), "one__a");
    assert_eq!(found(&world, "b").await.unwrap(), "two__b");
    assert_eq!(found(&world, "two__a").await.unwrap(), "two__a");
    for unknown in ["c", "A", "", "three__a"] {
        let error = found(&world, unknown).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound, "{unknown}");
    }
}

#[tokio::test]
async fn a_bare_name_does_not_go_to_the_next_server_while_the_first_cannot_say() {
    let bare = [("one", Naming::Bare), ("two", Naming::Bare), ("three", Naming::Bare)];
    let servers =
        vec![Server::new("one", &["a"]), broken("two"), Server::new("three", &["a", "b"])];
    let world = world(servers, &bare);
    assert_eq!(found(&world, "a").await.unwrap(), "one__a");
    let error = found(&world, "b").await.unwrap_err();
    assert!(matches!(&error, CallError::Unreachable { server, .. } if server.as_str() == "two"));
    assert_eq!(found(&world, "three__b").await.unwrap(), "three__b");
}

#[tokio::test]
async fn a_server_that_is_switched_off_has_no_bare_names() {
    for state in [ServerState::Disabled, ServerState::AwaitingApproval] {
        let servers = vec![Server::new("one", &["a"]), Server::new("two", &["a"])];
        let mut world = world(servers, &[("one", Naming::Bare), ("two", Naming::Bare)]);
        let one: ServerName = "one".parse().unwrap();
        world.change(|hub| hub.add(Arc::new(Absent::new(one, state))));
        assert_eq!(found(&world, "a").await.unwrap(), "two__a");
    }
}

#[tokio::test]
async fn nobody_is_asked_for_a_name_that_none_of_their_tools_can_have() {
    let asked = |name: &str| Server {
        lists: Box::new(|_| unreachable!("no list is needed")),
        ..Server::new(name, &[])
    };
    let world = world(vec![asked("one"), asked("two")], &[("two", Naming::Mcp)]);
    for name in ["a", "three__a", "two_a", "mcp__one"] {
        assert_eq!(found(&world, name).await.unwrap_err().code(), ErrorCode::NotFound, "{name}");
        assert!(!world.hub.may_be_public(name), "{name}");
    }
}

#[tokio::test]
async fn no_server_gets_at_the_id_of_another_by_a_bare_name() {
    let servers = vec![
        Server::new("evil", &["files__read", "files.read", "mcp__files__read", "files/ read"]),
        Server::new("files", &["read"]),
    ];
    let world = world(servers, &[("evil", Naming::Bare), ("files", Naming::Bare)]);
    for name in ["files__read", "files.read", "files:read", "mcp__files__read", "read"] {
        assert_eq!(found(&world, name).await.unwrap(), "files__read", "{name}");
    }
}

#[tokio::test]
async fn a_tool_is_listed_if_and_only_if_its_schema_can_be_used() {
    for (schema, usable) in [
        (r#"{"type":"object"}"#, true),
        ("{}", true),
        (r#"{"type":"string"}"#, false),
        (r#"{"properties":{"a":{"type":"strng"}}}"#, false),
        (r#"{"properties":{"a":{"$ref":"https://example.com/a"}}}"#, false),
        (r##"{"allOf":[{"$ref":"#"}]}"##, false),
        ("null", false),
    ] {
        let server = with_schema("s", schema);
        let requests = Arc::clone(&server.requests);
        let world = world(vec![server, Server::new("good", &["tool"])], &[]);
        let gathered = gather(&world).await;
        let tools = world.hub.visible_tools(&gathered, &Caller::operator(Front::Cli));
        let ids: Vec<String> = tools.iter().map(|tool| tool.id.to_string()).collect();
        let hidden = world.hub.hidden_tools(&gathered, &Caller::operator(Front::Cli));
        // Holes 3: the gateway lists and runs what the command line does.
        let items = world.hub.visible_items(&gathered, Kind::Tool, &Caller::anonymous());
        let at_gateway: Vec<String> =
            items.iter().map(|(server, item)| format!("{server}__{}", item.name)).collect();
        assert_eq!(at_gateway, ids, "{schema}");
        let (server, odd) = gathered.lists.iter().next().unwrap();
        assert_eq!(world.hub.count_usable(server, odd), usize::from(usable), "{schema}");
        let call = || Call::new(Caller::operator(Front::Gateway), Target::tool("s__odd"), None);
        for _ in 0..2 {
            let called = world.call(&Arc::new(Person::nobody()), call()).await;
            assert_eq!(called.is_ok(), usable, "{schema}");
            let hidden = matches!(called, Err(CallError::Hidden { .. }));
            assert_eq!(hidden, !usable, "{schema}");
        }
        assert_eq!(requests.lock().unwrap().is_empty(), !usable);
        let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__odd"), None);
        let called = world.call(&Arc::new(Person::nobody()), call).await;
        if usable {
            assert_eq!(
                (ids.as_slice(), hidden.len()),
                (&["s__odd".to_owned(), "good__tool".to_owned()][..], 0)
            );
            assert!(called.is_ok(), "{schema}");
        } else {
            assert_eq!(
                (ids.as_slice(), hidden.len()),
                (&["good__tool".to_owned()][..], 1),
                "{schema}"
            );
            assert!(matches!(called, Err(CallError::Hidden { .. })), "{schema}");
            assert!(requests.lock().unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn arguments_are_checked_by_whoever_asks() {
    let schema = r#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let world = world(vec![with_schema("s", schema)], &[]);
    let tool = world.hub.find_tool(&Caller::operator(Front::Cli), "s__odd").await.unwrap();
    assert!(tool.check(&json(r#"{"n":1}"#)).is_ok());
    let error = tool.check(&json(r#"{"n":"x"}"#)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidInput);
    assert_eq!(
        error.to_string(),
        "invalid arguments for `s__odd`: `n` must be an integer, not `\"x\"`"
    );
}
