//! Resources and prompts beside tools: who is shown what, and who is helped with values.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Gathered, Patience, Reference, Typing};
use capstan_hub::ports::{Approval, Listing};
use capstan_hub::{Call, Ground};
use capstan_model::{Caller, ErrorCode, Front, Kind, ServerName, Target};
use futures::FutureExt;
use futures::future::ready;

use world::{Person, Server, World, policy};

const NAMES: &[&str] = &["doc://open/a", "doc://secret/b", "doc://secret/{c}"];

async fn gathered(world: &World, listing: Listing) -> Gathered {
    let patience = Patience::UpTo(Duration::from_secs(1));
    world.hub.gather(listing, patience, &mut |_| ()).await
}

fn typing(of: Reference) -> Typing {
    Typing { of, argument: "c".to_owned(), value: String::new(), known: Vec::new() }
}

#[tokio::test]
async fn what_a_rule_denies_is_not_shown_and_everything_else_is() {
    let policy = policy(&["files:doc://secret/*"], &[], &[]);
    let world = World::new(vec![Server::new("files", NAMES), Server::new("other", NAMES)], policy);
    for (listing, kind) in [
        (Listing::Resources, Kind::Resource),
        (Listing::Templates, Kind::Resource),
        (Listing::Prompts, Kind::Prompt),
    ] {
        let gathered = gathered(&world, listing).await;
        let visible = world.hub.visible_items(&gathered, kind, &Caller::operator(Front::Cli));
        let shown: Vec<String> =
            visible.iter().map(|(server, item)| format!("{server} {}", item.name)).collect();
        let expected = [
            "files doc://open/a",
            "other doc://open/a",
            "other doc://secret/b",
            "other doc://secret/{c}",
        ];
        assert_eq!(shown, expected, "{listing:?}");
    }
}

#[tokio::test]
async fn a_resource_is_shown_if_and_only_if_reading_it_is_not_denied() {
    for pattern in ["files:*", "*secret*", "doc://open/a", "files__doc://open/*", "other:*"] {
        let world = World::new(vec![Server::new("files", NAMES)], policy(&[pattern], &[], &["*"]));
        let gathered = gathered(&world, Listing::Resources).await;
        let visible = world.hub.visible_items(&gathered, Kind::Resource, &Caller::anonymous());
        for name in NAMES {
            let target = Target::resource(format!("files:{name}"));
            let call = Call::new(Caller::operator(Front::Gateway), target, None);
            let read = world.call(&Arc::new(Person::nobody()), call).await;
            let shown = visible.iter().any(|(_, item)| item.name == *name);
            assert_eq!(shown, read.is_ok(), "{pattern} {name}");
        }
    }
}

#[tokio::test]
async fn who_may_not_use_something_is_not_helped_with_its_values() {
    let policy = policy(&["files:doc://secret/*", "files__poem"], &[], &[]);
    let world = World::new(vec![Server::new("files", NAMES)], policy);
    let files: ServerName = "files".parse().unwrap();
    let complete = async |server: &ServerName, of| {
        let (caller, typing) = (Caller::operator(Front::Cli), typing(of));
        let agrees = Person {
            approves: Box::new(|| ready(Approval::once(Ground::ByHand)).boxed()),
            ..Person::nobody()
        };
        world.hub.complete(&world.session, &caller, (server, &typing), &agrees).await
    };
    for denied in
        [Reference::Template("doc://secret/{c}".to_owned()), Reference::Prompt("poem".to_owned())]
    {
        assert_eq!(complete(&files, denied).await.unwrap_err().code(), ErrorCode::NotFound);
    }
    // This server cannot say, which is no failure.
    for free in
        [Reference::Template("doc://open/{c}".to_owned()), Reference::Prompt("greet".to_owned())]
    {
        assert_eq!(complete(&files, free).await.unwrap(), [""; 0]);
    }
    let nobody: ServerName = "nobody".parse().unwrap();
    assert!(complete(&nobody, Reference::Prompt("greet".to_owned())).await.is_err());
    let entries = world.entries();
    assert_eq!(entries.len(), 5, "each is written down");
    assert!(entries.iter().all(|entry| entry.method == Some("completion/complete")));
}

#[tokio::test]
async fn the_cost_of_a_server_leaves_out_what_it_may_not_offer() {
    let world =
        |deny: &[&str]| World::new(vec![Server::new("files", &["a", "b"])], policy(deny, &[], &[]));
    let cost = async |world: World| {
        let gathered = gathered(&world, Listing::Tools).await;
        let (server, tools) = gathered.lists.first().unwrap();
        world.hub.tokens(server, tools, &Caller::operator(Front::Cli))
    };
    let (all, one) = (cost(world(&[])).await, cost(world(&["files__b"])).await);
    assert_eq!((all, cost(world(&["files__*"])).await), (2 * one, 0));
    assert!(one > 0);
}
