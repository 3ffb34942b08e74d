//! The older transport: a stream and an endpoint.

use std::sync::{Arc, Mutex};

use capstan_hub::ports::Backend;
use capstan_mcp::{HttpSettings, Prefer};
use serde_json::json;
use tokio::sync::mpsc;

use crate::peer::{Answer, Peer, Seen, Step};
use crate::scene::{Scene, done, legacy, settings, tools};

/// A server of the older transport at `/sse`: what is posted is answered on the stream.
async fn older() -> Peer {
    let stream: Arc<Mutex<Option<mpsc::UnboundedSender<String>>>> = Arc::default();
    Peer::new(move |seen| match (seen.verb.as_str(), seen.path.as_str()) {
        ("GET", "/sse") => {
            let (sender, feed) = mpsc::unbounded_channel();
            sender.send("event: endpoint\ndata: /messages?id=7\n\n".to_owned()).unwrap();
            *stream.lock().unwrap() = Some(sender);
            Answer::events(vec![Step::Feed(Arc::new(Mutex::new(Some(feed))))])
        }
        ("POST", "/messages?id=7") => {
            if seen.method() == "tools/call" && seen.body.pointer("/params/arguments/end").is_some()
            {
                // The stream ends, and with it the connection.
                stream.lock().unwrap().take();
            } else if let Some(reply) = reply(seen) {
                let event = format!("event: message\ndata: {reply}\n\n");
                stream.lock().unwrap().as_ref().unwrap().send(event).unwrap();
            }
            Answer::typed("text/plain", "Accepted").coded(202)
        }
        _ => Answer::status(405),
    })
    .await
}

fn reply(seen: &Seen) -> Option<String> {
    match seen.method() {
        "initialize" => Some(seen.result(&json!({"protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}))),
        "tools/list" => Some(seen.result(&tools())),
        "tools/call" => Some(seen.result(&done())),
        _ => None,
    }
}

fn scene(peer: &Peer, prefer: Prefer) -> Scene {
    Scene::of(HttpSettings { prefer, ..settings(&format!("{}/sse", peer.origin)) })
}

#[tokio::test]
async fn messages_go_to_the_endpoint_and_replies_come_on_the_stream() {
    let peer = older().await;
    let scene = scene(&peer, Prefer::Sse);
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert_eq!(scene.about().await.unwrap().protocol, "2024-11-05");
    assert!(peer.of("server/discover").is_empty(), "nothing modern is spoken there");
    assert!(peer.seen().iter().all(|seen| seen.header("x-key") == Some("s3cr3t-key")));
    scene.server.close().await;
}

#[tokio::test]
async fn either_transport_is_found_from_either_side() {
    for prefer in [Prefer::HttpThenSse, Prefer::SseThenHttp] {
        let peer = older().await;
        assert_eq!(scene(&peer, prefer).call("do", json!({})).await.unwrap(), "done");
        let peer = Peer::new(legacy).await;
        assert_eq!(scene(&peer, prefer).call("do", json!({})).await.unwrap(), "done");
    }
}

#[tokio::test]
async fn what_worked_is_tried_first_when_the_server_is_reached_again() {
    let peer = older().await;
    let scene = scene(&peer, Prefer::HttpThenSse);
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    let tried = |peer: &Peer| peer.seen().iter().filter(|seen| seen.path == "/sse").count();
    // The probe and the handshake that failed, and the stream.
    let first = tried(&peer);
    assert!(first > 1, "{first}");
    scene.call("do", json!({"end": true})).await.unwrap_err();
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert_eq!(tried(&peer), first + 1, "the stream and nothing else");
    assert_eq!(peer.seen().iter().filter(|seen| seen.verb == "GET").count(), 2);
}

#[tokio::test]
async fn the_other_transport_is_not_tried_where_only_one_is_wanted() {
    let peer = older().await;
    let error = scene(&peer, Prefer::Http).call("do", json!({})).await.unwrap_err();
    assert!(error.contains("HTTP status 405"), "{error}");
    assert!(peer.of("GET").is_empty());
    let peer = Peer::new(legacy).await;
    let error = scene(&peer, Prefer::Sse).call("do", json!({})).await.unwrap_err();
    assert!(error.contains("HTTP status 405"), "{error}");
    assert!(peer.of("POST").is_empty());
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_not_tried_the_other_way() {
    for prefer in [Prefer::HttpThenSse, Prefer::SseThenHttp] {
        let peer = Peer::new(|_| Answer::status(401)).await;
        let scene = scene(&peer, prefer);
        assert!(scene.call("do", json!({})).await.unwrap_err().starts_with("auth_failure"));
        assert_eq!(peer.seen().len(), 1);
    }
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_refused_and_nothing_is_sent_there() {
    let elsewhere = Peer::new(legacy).await;
    let origin = elsewhere.origin.clone();
    let peer = Peer::new(move |seen| match seen.verb.as_str() {
        "GET" => Answer::events(vec![
            Step::Send(format!("event: endpoint\ndata: {origin}/messages\n\n")),
            Step::Hold,
        ]),
        _ => Answer::status(405),
    })
    .await;
    let scene = scene(&peer, Prefer::Sse);
    for _ in 0..30 {
        let error = scene.call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("policy_blocked"), "{error}");
        assert!(error.contains("which is another server"), "{error}");
    }
    assert!(elsewhere.seen().is_empty());
    assert!(peer.seen().len() < 8, "{} requests", peer.seen().len());
}

#[tokio::test]
async fn the_end_of_the_stream_is_noticed_at_once_and_the_next_call_connects_again() {
    let peer = older().await;
    let scene = scene(&peer, Prefer::Sse);
    let error = scene.call("do", json!({"end": true})).await.unwrap_err();
    assert!(error.starts_with("outcome_unknown"), "{error}");
    assert!(error.ends_with("(it closed its stream)"), "{error}");
    assert_eq!(scene.state(), "failed: it closed its stream");
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert_eq!(peer.of("GET").len(), 2);
}
