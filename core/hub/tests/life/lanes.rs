//! A server with a connection for each era: which one a call uses, and how long it stays open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_hub::ports::{Era, Item, Lane, Listing};
use capstan_hub::{ApprovalFrom, Call, SideOp};
use capstan_model::{Caller, Front, ItemId, Kind, Target};
use capstan_wire::Json;

use super::care::{Care, Supervised, fixed};

const LEGACY: Lane = Lane::of(Era::Legacy);
const MODERN: Lane = Lane::of(Era::Modern);

/// The tool `do` with this definition.
fn tool(definition: &str) -> Arc<[Item]> {
    let definition = Json::parse(definition.to_owned()).unwrap();
    Arc::new([Item { name: "do".to_owned(), definition }])
}

/// A server that defines its tool in these ways on its two connections.
fn dual(home: &str, own: &str) -> Care {
    let care = Care::default();
    *care.server.tools.lock().unwrap() = tool(home);
    *care.server.own_tools.lock().unwrap() = Some(tool(own));
    care
}

fn calls(care: &Care) -> Vec<&'static str> {
    std::mem::take(&mut care.server.calls.lock().unwrap())
}

const HOME: &str = r#"{"name":"do","description":"d","inputSchema":{"type":"object","x":1}}"#;
const OWN: &str =
    r#"{"inputSchema":{"x":1,"type":"object"},"description":"d","name":"do","execution":{}}"#;

#[tokio::test(start_paused = true)]
async fn each_caller_uses_the_connection_of_its_era_and_lists_are_of_one() {
    let care = dual(HOME, OWN);
    let server = care.take("s", fixed(60));
    for (lane, expected) in
        [(MODERN, "home"), (LEGACY, "own"), (Lane::ANY, "home"), (LEGACY, "own")]
    {
        server.call_in(lane).await.unwrap();
        assert_eq!(calls(&care), [expected], "{lane:?}");
    }
    care.settle().await;
    let listed = server.current().await.unwrap();
    assert_eq!(listed.first().unwrap().definition.as_str(), HOME);
    assert_eq!(care.told(), [], "the second connection's list is no change");
    assert_eq!(care.server.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_own_connection_defines_differently_is_called_at_home() {
    let care = dual(HOME, r#"{"name":"do","description":"deletes everything"}"#);
    let server = care.take("s", fixed(60));
    for _ in 0..2 {
        server.call_in(LEGACY).await.unwrap();
        assert_eq!(calls(&care), ["home"]);
    }
    // Both definitions are read again when they change.
    *care.server.own_tools.lock().unwrap() = Some(tool(HOME));
    server.call_in(LEGACY).await.unwrap();
    assert_eq!(calls(&care), ["own"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_lane_is_closed_while_the_other_is_in_use() {
    let care = dual(HOME, OWN);
    let server = care.take("s", fixed(60));
    server.call_in(LEGACY).await.unwrap();
    assert!(care.server.own_connected.load(Ordering::Relaxed));
    for _ in 0..4 {
        care.pass(Duration::from_secs(20)).await;
        server.call_in(MODERN).await.unwrap();
    }
    assert!(!care.server.own_connected.load(Ordering::Relaxed), "it was not used for a minute");
    assert_eq!(care.server.starts(), 1, "the other one was");
    server.call_in(LEGACY).await.unwrap();
    assert_eq!(calls(&care).last(), Some(&"own"), "it is opened again when it is needed");
    care.pass(Duration::from_secs(70)).await;
    server.call_in(MODERN).await.unwrap();
    assert_eq!(care.server.starts(), 2, "unused, the whole server is stopped");
}

#[tokio::test(start_paused = true)]
async fn a_call_on_a_lane_keeps_both_connections() {
    let care = dual(HOME, OWN);
    *care.server.takes.lock().unwrap() = Duration::from_mins(10);
    let server = care.take("s", fixed(60));
    server.call_in(LEGACY).await.unwrap();
    assert_eq!((calls(&care), care.server.starts()), (vec!["own"], 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_lost_is_sent_again_in_the_same_lane() {
    let care = dual(HOME, OWN);
    let server = care.take("s", fixed(60));
    server.call_in(LEGACY).await.unwrap();
    care.server.own_loses_one.store(true, Ordering::Relaxed);
    server.call_in(LEGACY).await.unwrap();
    assert_eq!(calls(&care), ["own", "own", "own"]);
}

/// Subscribes to a resource in this lane.
async fn subscribe(server: &Supervised, lane: Lane, uri: &str) {
    let id = ItemId { server: server.name.clone(), item: uri.to_owned() };
    let call = Call::new(Caller::operator(Front::Cli), Target::exact(Kind::Resource, id), None);
    let attempt = server.hub.begin(&call).in_lane(lane);
    let (session, from) = (server.hub.session(), ApprovalFrom::Memory);
    attempt.side(&session, call, SideOp::Subscribe, from, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_side_request_uses_the_connection_of_its_callers_era_and_keeps_it() {
    let care = dual(HOME, OWN);
    let server = care.take("s", fixed(60));
    subscribe(&server, MODERN, "f://a").await;
    subscribe(&server, LEGACY, "f://b").await;
    assert_eq!(calls(&care), ["home", "own"]);
    care.pass(Duration::from_mins(5)).await;
    assert!(care.server.own_connected.load(Ordering::Relaxed), "a resource is watched on it");
    server.hub.unsubscribe(&server.name, "f://b").await.unwrap();
    care.pass(Duration::from_mins(2)).await;
    assert!(!care.server.own_connected.load(Ordering::Relaxed));
    assert_eq!(care.server.starts(), 1, "the other one still watches a resource");
}

#[tokio::test(start_paused = true)]
async fn each_era_gets_the_servers_own_description_and_members_of_lists() {
    let care = dual(HOME, OWN);
    let server = care.take("s", fixed(60));
    let (hub, name) = (&server.hub, &server.name);
    let protocol = async |lane| hub.introduce(name, lane).await.unwrap().protocol.clone();
    let meta = async |lane| {
        let members = hub.list_members(name, Listing::Tools, lane).await;
        members.map(|members| members.to_string())
    };
    assert_eq!(meta(LEGACY).await, None, "nothing is started for it");
    assert_eq!(protocol(MODERN).await, "2026-07-28");
    assert!(!care.server.own_connected.load(Ordering::Relaxed), "no legacy client is there");
    assert_eq!(hub.about_in(name, LEGACY).unwrap().protocol, "2026-07-28", "not known yet");
    assert_eq!(protocol(LEGACY).await, "2025-11-25");
    assert_eq!(hub.about_in(name, LEGACY).unwrap().protocol, "2025-11-25");
    assert_eq!(meta(LEGACY).await.as_deref(), Some(r#"{"_meta":"own"}"#));
    for lane in [MODERN, Lane::ANY] {
        assert_eq!(meta(lane).await.as_deref(), Some(r#"{"_meta":"home"}"#));
    }
}
