//! A server that speaks both eras over HTTP: calls of legacy clients use a connection of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_hub::ports::{Backend as _, Era as LaneEra, Lane};
use capstan_hub::{ApprovalFrom, Call, SideOp};
use capstan_mcp::{Era, HttpSettings};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, Target};
use serde_json::json;

use crate::peer::{Answer, Peer, Seen};
use crate::scene::{Scene, legacy, modern, settings};

const LEGACY: Lane = Lane::of(LaneEra::Legacy);
const MODERN: Lane = Lane::of(LaneEra::Modern);

/// The answer of a server that speaks both eras.
fn both(seen: &Seen) -> Answer {
    if is_modern(seen) { modern(seen) } else { legacy(seen) }
}

fn is_modern(seen: &Seen) -> bool {
    seen.header("mcp-protocol-version") == Some("2026-07-28")
}

async fn call(scene: &Scene, lane: Lane) -> Result<(), CallError> {
    let call = Call::new(Caller::operator(Front::Cli), Target::tool("s__do"), None);
    scene.0.send_in(lane, call).await.map(drop)
}

/// The eras that calls came in.
fn calls(peer: &Peer) -> Vec<&'static str> {
    let calls = peer.of("tools/call");
    calls.iter().map(|seen| if is_modern(seen) { "modern" } else { "legacy" }).collect()
}

#[tokio::test]
async fn each_caller_is_served_in_its_era() {
    let peer = Peer::new(both).await;
    let scene = Scene::new(&peer);
    for lane in [LEGACY, MODERN, LEGACY, Lane::ANY] {
        call(&scene, lane).await.unwrap();
    }
    assert_eq!(calls(&peer), ["legacy", "modern", "legacy", "modern"]);
    assert_eq!(peer.of("initialize").len(), 1);
    let session =
        peer.of("tools/call").first().unwrap().header("mcp-session-id").unwrap().to_owned();
    assert_eq!(session, "session-0");
    assert_eq!(scene.0.server.about().unwrap().protocol, "2026-07-28");

    // Only the second connection is closed, and opened again for the next legacy caller.
    assert!(scene.0.server.disconnect_lanes());
    assert!(!scene.0.server.disconnect_lanes());
    peer.receives("DELETE", 1).await;
    call(&scene, MODERN).await.unwrap();
    assert_eq!(peer.of("initialize").len(), 1);
    call(&scene, LEGACY).await.unwrap();
    assert_eq!((peer.of("initialize").len(), peer.of("server/discover").len()), (2, 1));
}

#[tokio::test]
async fn a_server_of_one_era_gets_one_connection_and_is_not_asked_for_another_each_time() {
    let peer = Peer::new(modern).await;
    let scene = Scene::new(&peer);
    for lane in [LEGACY, MODERN, LEGACY] {
        call(&scene, lane).await.unwrap();
    }
    assert_eq!(calls(&peer), ["modern"; 3]);
    assert_eq!(peer.of("initialize").len(), 1, "it was asked once");

    let peer = Peer::new(legacy).await;
    let scene = Scene::new(&peer);
    for lane in [LEGACY, MODERN, LEGACY] {
        call(&scene, lane).await.unwrap();
    }
    assert_eq!((calls(&peer).len(), peer.of("initialize").len()), (3, 1));
}

#[tokio::test]
async fn the_settings_choose_the_era_before_any_caller() {
    for (era, expected) in [(Era::Legacy, "legacy"), (Era::Modern, "modern")] {
        let peer = Peer::new(both).await;
        let settings = settings(&format!("{}/mcp", peer.origin));
        let scene = Scene::of(HttpSettings { era, ..settings });
        for lane in [LEGACY, MODERN] {
            call(&scene, lane).await.unwrap();
        }
        assert_eq!(calls(&peer), [expected; 2]);
    }
}

#[tokio::test]
async fn a_session_that_the_server_has_ended_is_opened_again() {
    let is_lost = Arc::new(AtomicBool::new(false));
    let lost = Arc::clone(&is_lost);
    let peer = Peer::new(move |seen| {
        let is_call = seen.method() == "tools/call" && !is_modern(seen);
        if is_call && lost.swap(false, Ordering::Relaxed) {
            Answer::status(404)
        } else {
            both(seen)
        }
    })
    .await;
    let scene = Scene::new(&peer);
    call(&scene, LEGACY).await.unwrap();
    is_lost.store(true, Ordering::Relaxed);
    call(&scene, LEGACY).await.unwrap();
    assert_eq!(calls(&peer), ["legacy"; 3]);
    assert_eq!(peer.of("initialize").len(), 2);
}

#[tokio::test]
async fn a_tool_that_differs_between_the_eras_is_called_in_the_era_that_was_listed() {
    let peer = Peer::new(|seen| {
        if seen.method() == "tools/list" && !is_modern(seen) {
            let other = json!({"tools": [{"name": "do", "description": "deletes everything",
                "inputSchema": {"type": "object"}}]});
            return Answer::json(seen.result(&other));
        }
        both(seen)
    })
    .await;
    let scene = Scene::new(&peer);
    for _ in 0..2 {
        call(&scene, LEGACY).await.unwrap();
    }
    assert_eq!(calls(&peer), ["modern"; 2]);
}

#[tokio::test]
async fn a_subscription_is_made_and_ended_in_the_era_of_its_client() {
    let peer = Peer::new(|seen| {
        let is_subscription = seen.method().starts_with("resources/");
        if is_subscription { Answer::json(seen.result(&json!({}))) } else { both(seen) }
    })
    .await;
    let scene = Scene::new(&peer);
    let hub = &scene.0.hub;
    let id = ItemId { server: "s".parse().unwrap(), item: "f://x".to_owned() };
    let target = Target::exact(Kind::Resource, id.clone());
    let call = Call::new(Caller::operator(Front::Cli), target, None);
    let attempt = hub.begin(&call).in_lane(LEGACY);
    let (session, from) = (hub.session(), ApprovalFrom::Memory);
    attempt.side(&session, call, SideOp::Subscribe, from, None).await.unwrap();
    let made = peer.of("resources/subscribe");
    assert!(made.len() == 1 && made.iter().all(|seen| !is_modern(seen)));
    assert!(peer.of("subscriptions/listen").is_empty());

    // The next connection of that era is told again.
    assert!(scene.0.server.disconnect_lanes());
    self::call(&scene, LEGACY).await.unwrap();
    peer.receives("resources/subscribe", 2).await;
    hub.unsubscribe(&id.server, &id.item).await.unwrap();
    assert!(peer.of("resources/unsubscribe").iter().all(|seen| !is_modern(seen)));
    assert_eq!(peer.of("resources/unsubscribe").len(), 1);
}
