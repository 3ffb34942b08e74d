//! What reaches the other side: the same item by every name, and the same bytes.

use std::sync::Arc;

use capstan_hub::ports::Listing;
use capstan_hub::{Answer, Call};
use capstan_model::{CallError, Caller, ErrorCode, Front, Kind, Target};
use capstan_policy::ServerPolicy;
use capstan_wire::compose;
use futures::FutureExt;
use futures::future::ready;
use proptest::prelude::*;

use super::{Scene, answering, files, tool};
use crate::world::{Person, Server, World, items, json, policy};

/// Things that a reader and writer of JSON would lose.
const FRAGILE: &str = r#"{ "z":1.0000000000000000000001,"a":12345678901234567890123, "e":1E+2,"s":"\u00fc\/","o":{"_x" : [1 ,{}]},"n":null}"#;

#[tokio::test]
async fn params_reach_the_server_as_written_except_for_the_name() {
    let scene = Scene::with_server(files());
    let meta = r#"{"progressToken":18446744073709551616,"vendor/x":{"b":1,"a":2}}"#;
    let params = format!(
        r#"{{"_meta":{meta},"later":[1.50],"name":"Files.read","arguments":{FRAGILE},"task":{{}}}}"#
    );
    scene.send(Call { params: json(&params), ..tool("Files.read") }).await.unwrap();
    let expected = params.replace("Files.read", "read");
    assert_eq!(scene.served(), [format!("tools/call {expected}")]);
}

#[tokio::test]
async fn the_name_in_the_params_never_overrules_the_name_that_was_judged() {
    let table = [
        (r#"{"name":"drop","arguments":{}}"#, r#"tools/call {"name":"read","arguments":{}}"#),
        (r#"{"arguments":{}}"#, r#"tools/call {"arguments":{},"name":"read"}"#),
        (r#"{"name":{"name":"drop"}}"#, r#"tools/call {"name":"read"}"#),
        (r#"{"n\u0061me":"drop"}"#, r#"tools/call {"name":"read"}"#),
    ];
    for (params, expected) in table {
        let scene = Scene::with_server(files());
        scene.send(Call { params: json(params), ..tool("files__read") }).await.unwrap();
        assert_eq!(scene.served(), [expected]);
    }
}

/// Holes 2.
#[tokio::test]
async fn no_member_that_a_server_could_read_as_one_of_ours_is_forwarded() {
    let members = [
        "Name",
        "NAME",
        r"name\u0000",
        r"name\u0000x",
        "ｎａｍｅ",
        "n\u{200b}ame",
        "Arguments",
        "argumentſ",
        "URI",
        "_Meta",
        "tas\u{212a}",
        "requeststate",
        "InputResponses",
    ];
    for kind in [Kind::Tool, Kind::Prompt, Kind::Resource] {
        let key = kind.name_key();
        for member in members {
            for front in [Front::Cli, Front::Gateway] {
                let scene = Scene::with_server(files());
                let params = format!(r#"{{"{key}":"read","{member}":"drop"}}"#);
                let call = Call {
                    caller: Caller::operator(front).into(),
                    params: json(&params),
                    ..ask(kind, "files:read")
                };
                let error = scene.send(call).await.map(drop).unwrap_err();
                assert_eq!(error.code(), ErrorCode::InvalidInput, "{params}: {error}");
                assert!(error.to_string().contains("could be read as"), "{error}");
                assert_eq!(scene.served(), [""; 0], "{params}");
            }
        }
    }
}

#[tokio::test]
async fn members_that_no_server_takes_for_one_of_ours_are_forwarded() {
    for member in ["names", "nom", "argument", "url", "meta", "vendor/Name", "名前", "x-NAME"] {
        let scene = Scene::with_server(files());
        let params =
            format!(r#"{{"name":"read","{member}":"x","arguments":{{"Name":1,"URI":2}}}}"#);
        scene.send(Call { params: json(&params), ..tool("files__read") }).await.unwrap();
        assert_eq!(scene.served(), [format!("tools/call {params}")]);
    }
}

#[tokio::test]
async fn the_address_that_a_rule_reads_is_the_one_that_is_sent() {
    let deny = ["*:uri=doc://secret"];
    let table = [
        ("library:doc://secret", r#"{"uri":"doc://harmless"}"#, None),
        ("library:doc://secret", "{}", None),
        (
            "library:doc://a",
            r#"{"uri":"doc://secret"}"#,
            Some(r#"resources/read {"uri":"doc://a"}"#),
        ),
    ];
    for (name, params, expected) in table {
        let server = library();
        let requests = Arc::clone(&server.requests);
        let world = World::new(vec![server], policy(&deny, &[], &["*"]));
        let call = Call { params: json(params), ..ask(Kind::Resource, name) };
        let result = world.call(&Arc::new(Person::nobody()), call).await;
        assert_eq!(result.is_ok(), expected.is_some(), "{name} {params}");
        assert_eq!(requests.lock().unwrap().first().map(String::as_str), expected);
    }
}

#[tokio::test]
async fn the_answer_reaches_the_caller_byte_for_byte() {
    for answer in
        [FRAGILE, r#"{"content":[],"isError":false,"_meta":{"x":1e400}}"#, r#"{ "a" : [ 1 ] }"#]
    {
        let scene = Scene::with_server(answering(answer));
        assert_eq!(scene.call("files__read").await.unwrap().as_str(), answer);
    }
}

#[tokio::test]
async fn the_operator_is_shown_the_arguments_that_would_be_sent() {
    let scene = Scene::with_server(files());
    let params = format!(r#"{{"name":"write","arguments":{FRAGILE}}}"#);
    scene.send(Call { params: json(&params), ..tool("files__write") }).await.unwrap_err();
    let shown = format!("tool files__write {FRAGILE} (write) by `permissions.ask: write`");
    assert_eq!(*scene.person.seen.lock().unwrap(), [shown]);
}

#[tokio::test]
async fn a_rule_about_arguments_sees_through_every_way_to_write_them() {
    let denied = [
        r#"{"path":"/etc/passwd"}"#,
        r#"{"path":"\/etc\/passwd"}"#,
        r#"{"path":"\u002fetc/x"}"#,
        r#"{"p\u0061th":"/etc/x","other":1}"#,
        // Holes 2: a server could take these for `path`, and whatever they say is in doubt.
        r#"{"Path":"/etc/x"}"#,
        r#"{"path":"/home","PATH":"/etc/x"}"#,
        r#"{"path":"/home","path\u0000":"/etc/x"}"#,
    ];
    let allowed =
        ["{}", r#"{"path":"/home"}"#, r#"{"paths":"/etc/x"}"#, r#"{"in":{"path":"/etc/x"}}"#];
    for (arguments, expected) in
        denied.iter().map(|text| (text, 0)).chain(allowed.iter().map(|text| (text, 1)))
    {
        let server = Server::new("files", &["read"]);
        let requests = Arc::clone(&server.requests);
        let world = World::new(vec![server], policy(&["files__read:path=/etc/*"], &[], &["*"]));
        let target = Target::tool("files__read");
        let call = Call::new(Caller::operator(Front::Cli), target, Some(&json(arguments)));
        let result = world.call(&Arc::new(Person::nobody()), call).await;
        assert_eq!((result.is_ok(), requests.lock().unwrap().len()), (expected == 1, expected));
    }
}

#[tokio::test]
async fn every_spelling_reaches_the_same_tool() {
    let spellings = [
        "files__read",
        "mcp__files__read",
        "files:read",
        "files.read",
        "Files__read",
        "mcp__Files__read",
        "Files:read",
        "Files.read",
    ];
    for name in spellings {
        let scene = Scene::with_server(files());
        scene.call(name).await.unwrap();
        assert_eq!(scene.served(), [r#"tools/call {"name":"read","arguments":{}}"#], "{name}");
        assert!(scene.entry().starts_with("tool files read; read allow"), "{name}");
        // No spelling goes past a rule that was written in another.
        let denied = Scene::with_server(files());
        let error = denied.call(&name.replace("read", "drop")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::PolicyBlocked, "{name}");
    }
}

#[tokio::test]
async fn what_names_no_server_of_ours_or_no_item_reaches_nobody() {
    let names = [
        "",
        "read",
        "files",
        "files__",
        "__read",
        ":read",
        ".read",
        "mcp____read",
        "FILES__read",
        "files/read",
        "files_read",
        " files__read",
        "mcp__mcp__files__read",
    ];
    for name in names {
        let mut rules = policy(&[], &[], &["*"]);
        // A server whose operator gave it no other name than its slug.
        rules.servers.insert("bare".parse().unwrap(), ServerPolicy::default());
        let (files, bare) = (Server::new("files", &["read"]), Server::new("bare", &["read"]));
        let requests = [Arc::clone(&files.requests), Arc::clone(&bare.requests)];
        let world = World::new(vec![files, bare], rules);
        let error = world.call(&Arc::new(Person::nobody()), tool(name)).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound, "{name}");
        assert!(requests.iter().all(|list| list.lock().unwrap().is_empty()), "{name}");
    }
}

#[tokio::test]
async fn a_display_name_never_takes_over_the_id_of_another_servers_tool() {
    let mut rules = policy(&[], &[], &["*"]);
    let display = "files__list".to_owned();
    let posing = ServerPolicy { display, ..ServerPolicy::default() };
    rules.servers.insert("posing".parse().unwrap(), posing);
    let files = Server::new("files", &["list__all"]);
    let requests = Arc::clone(&files.requests);
    let world = World::new(vec![Server::new("posing", &["all"]), files], rules);
    world.call(&Arc::new(Person::nobody()), tool("files__list__all")).await.unwrap();
    assert_eq!(requests.lock().unwrap().len(), 1);
}

/// A server with one tool, one prompt and any resource.
fn library() -> Server {
    let lists = |listing| {
        let names: &[&str] = match listing {
            Listing::Tools => &["lend"],
            Listing::Prompts => &["review"],
            Listing::Resources | Listing::Templates => &[],
        };
        ready(Ok(items(names))).boxed()
    };
    let runs = |_, _| ready(Ok(Answer::Whole(json(FRAGILE)))).boxed();
    Server { lists: Box::new(lists), runs: Box::new(runs), ..Server::new("library", &[]) }
}

fn ask(kind: Kind, name: &str) -> Call {
    let target = Target::spelled(kind, name);
    Call::new(Caller::operator(Front::Gateway), target, None)
}

#[tokio::test]
async fn resources_and_prompts_take_the_same_road() {
    let table = [
        (Kind::Resource, "library:doc://a?b=1", r#"resources/read {"uri":"doc://a?b=1"}"#),
        (Kind::Resource, "library__doc://a", r#"resources/read {"uri":"doc://a"}"#),
        (Kind::Prompt, "library:review", r#"prompts/get {"name":"review"}"#),
        (Kind::Prompt, "mcp__library__review", r#"prompts/get {"name":"review"}"#),
    ];
    for (kind, name, expected) in table {
        let server = library();
        let requests = Arc::clone(&server.requests);
        // At the gateway what reads needs no rule, and both of these read by their nature.
        let world = World::new(vec![server], policy(&[], &[], &[]));
        let answer = world.call(&Arc::new(Person::nobody()), ask(kind, name)).await.unwrap();
        assert_eq!(answer.as_str(), FRAGILE);
        assert_eq!(*requests.lock().unwrap(), [expected]);
        let entries = world.entries();
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        let told = (entry.kind, entry.server.as_deref(), entry.effect.unwrap().as_str());
        assert_eq!(told, (kind, Some("library"), "read"));
    }
}

#[tokio::test]
async fn resources_and_prompts_are_refused_like_tools() {
    let resource = (Kind::Resource, "library:doc://a");
    let prompt = (Kind::Prompt, "library__review");
    let cases = [
        (resource, "doc://*", ErrorCode::PolicyBlocked),
        (resource, "*:uri=doc://a", ErrorCode::PolicyBlocked),
        (prompt, "library__review", ErrorCode::PolicyBlocked),
        ((Kind::Prompt, "library__lend"), "none", ErrorCode::NotFound),
        ((Kind::Tool, "library__review"), "none", ErrorCode::NotFound),
        ((Kind::Resource, "nobody:doc://a"), "none", ErrorCode::NotFound),
    ];
    for ((kind, name), deny, code) in cases {
        let server = library();
        let requests = Arc::clone(&server.requests);
        let world = World::new(vec![server], policy(&[deny], &[], &["*"]));
        let result = world.call(&Arc::new(Person::nobody()), ask(kind, name)).await;
        let error: CallError = result.unwrap_err();
        assert_eq!((error.code(), requests.lock().unwrap().len()), (code, 0), "{name} {deny}");
        let entries = world.entries();
        assert_eq!((entries.len(), entries.first().unwrap().kind), (1, kind));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_arguments_arrive_as_they_were_written(
        texts in prop::collection::vec(".*", 0..4),
        number in "-?[1-9][0-9]{0,40}(\\.[0-9]{1,40})?",
    ) {
        let strings: Vec<_> = texts.iter().map(|text| compose::string(text).to_string()).collect();
        let arguments = format!(r#"{{"n":{number},"list":[{}]}}"#, strings.join(" , "));
        let scene = Scene::with_server(files());
        let target = Target::tool("files:read");
        let call = Call::new(Caller::operator(Front::Cli), target, Some(&json(&arguments)));
        scene.send(call).now_or_never().unwrap().unwrap();
        let expected = format!(r#"tools/call {{"name":"read","arguments":{arguments}}}"#);
        prop_assert_eq!(scene.served(), [expected]);
    }
}
