//! Streamable HTTP with a handshake and a session.

use capstan_hub::ports::{Backend, Listing, Reply};
use capstan_wire::Json;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Step};
use crate::scene::{Scene, done, legacy, settings};

#[tokio::test]
async fn a_legacy_server_gets_its_session_revision_and_credentials_with_every_message() {
    let peer = Peer::new(legacy).await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.call("do", json!({"a": 1})).await.unwrap(), "done");
    assert_eq!(scene.about().await.unwrap().protocol, "2025-11-25");
    assert_eq!(scene.state(), "connected");
    for kind in ["notifications/initialized", "tools/list", "tools/call"] {
        let seen = peer.of(kind).remove(0);
        assert_eq!(seen.header("mcp-session-id"), Some("session-0"), "{kind}");
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"), "{kind}");
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"), "{kind}");
        assert_eq!(seen.header("mcp-method"), None, "{kind}");
    }
    let hello = peer.of("initialize").remove(0);
    assert_eq!(
        (hello.header("mcp-session-id"), hello.header("mcp-protocol-version")),
        (None, None)
    );
    assert!(peer.seen().iter().all(|seen| seen.header("x-key") == Some("s3cr3t-key")));
}

#[tokio::test]
async fn closing_ends_the_session_at_the_server() {
    let peer = Peer::new(legacy).await;
    let scene = Scene::new(&peer);
    scene.tools().await.unwrap();
    scene.server.close().await;
    let goodbye = peer.of("DELETE");
    assert_eq!(goodbye.len(), 1);
    assert_eq!(goodbye[0].header("mcp-session-id"), Some("session-0"));
    assert!(scene.call("do", json!({})).await.unwrap_err().contains("it was stopped"));
}

#[tokio::test]
async fn a_lost_session_is_begun_anew_and_the_call_sent_once_more() {
    for (status, body) in [
        (404, Answer::status(404)),
        (404, Answer::json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"?"}}"#)),
        (
            400,
            Answer::json(
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}"#,
            ),
        ),
    ] {
        let peer = Peer::new(move |seen| {
            let old = seen.header("mcp-session-id") == Some("session-0");
            if seen.method() == "tools/call" && old {
                body.clone().coded(status)
            } else {
                legacy(seen)
            }
        })
        .await;
        let scene = Scene::new(&peer);
        assert_eq!(scene.call("do", json!({})).await.unwrap(), "done", "{status}");
        let sessions: Vec<_> = peer.of("tools/call");
        let sessions: Vec<_> = sessions.iter().map(|seen| seen.header("mcp-session-id")).collect();
        assert_eq!(sessions, [Some("session-0"), Some("session-1")]);
        assert_eq!(peer.of("initialize").len(), 2);
    }
}

#[tokio::test]
async fn a_session_that_is_lost_again_and_again_is_not_begun_for_ever() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => Answer::status(404),
        _ => legacy(seen),
    })
    .await;
    let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
    assert_eq!(error, "transient: server `s` is not usable: its session has ended");
    assert_eq!(peer.of("tools/call").len(), 2);
}

#[tokio::test]
async fn answers_come_as_json_or_as_events_with_progress_before_them() {
    let peer = Peer::new(|seen| {
        if seen.method() != "tools/call" {
            return legacy(seen);
        }
        let params = json!({"progressToken": seen.body["id"], "progress": 1});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        Answer::events(vec![
            Step::Send(": hello\n\n".to_owned()),
            Step::event(&progress.to_string()),
            Step::Send(format!("event: message\ndata: {}\r\n\r\n", seen.result(&done()))),
        ])
    })
    .await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert_eq!(scene.person.seen(), ["s: 1 of None, None"]);
}

#[tokio::test]
async fn a_question_on_a_stream_is_answered_by_a_post_of_its_own() {
    let answered = std::sync::Arc::new(tokio::sync::Notify::new());
    let go_on = std::sync::Arc::clone(&answered);
    let peer = Peer::new(move |seen| {
        if seen.body.get("result").is_some() {
            go_on.notify_one();
        }
        if seen.method() != "tools/call" {
            return legacy(seen);
        }
        let params = json!({"message": "sure?", "requestedSchema": {"type": "object"}});
        let question =
            json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params});
        Answer::events(vec![
            Step::event(&question.to_string()),
            Step::Until(std::sync::Arc::clone(&go_on)),
            Step::event(&seen.result(&done())),
        ])
    })
    .await;
    let yes = Reply::Accept(Some(Json::parse(r#"{"ok":true}"#.to_owned()).unwrap()));
    let scene = Scene::with_reply(settings(&format!("{}/mcp", peer.origin)), yes);
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    let seen = scene.person.seen();
    assert!(seen.len() == 1 && seen[0].starts_with("s asks: sure? "), "{seen:?}");
    let reply = peer.seen().into_iter().find(|seen| seen.body.get("result").is_some()).unwrap();
    let expected = json!({"action": "accept", "content": {"ok": true}});
    assert_eq!((&reply.body["id"], &reply.body["result"]), (&json!("q1"), &expected));
    assert_eq!(reply.header("mcp-session-id"), Some("session-0"));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => Answer::events(vec![Step::Hold]),
        _ => legacy(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    scene.tools().await.unwrap();
    tokio::select! {
        result = scene.call("do", json!({})) => panic!("{result:?}"),
        _ = peer.receives("tools/call", 1) => {}
    }
    let cancelled = peer.receives("notifications/cancelled", 1).await.remove(0);
    assert_eq!(cancelled.body["params"]["requestId"], peer.of("tools/call")[0].body["id"]);
}

#[tokio::test]
async fn calls_that_are_taken_back_at_the_very_end_are_cancelled_too() {
    // More than are posted at the same time.
    const CALLS: usize = 40;
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => Answer::events(vec![Step::Hold]),
        _ => legacy(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    scene.tools().await.unwrap();
    tokio::select! {
        result = join_all((0..CALLS).map(|_| scene.call("do", json!({})))) => panic!("{result:?}"),
        _ = peer.receives("tools/call", CALLS) => {}
    }
    scene.server.close().await;
    assert_eq!(peer.of("notifications/cancelled").len(), CALLS);
    assert_eq!(peer.seen().last().unwrap().verb, "DELETE");
}

#[tokio::test]
async fn a_server_that_speaks_unasked_makes_its_list_be_read_again() {
    let change = std::sync::Arc::new(tokio::sync::Notify::new());
    let told = std::sync::Arc::clone(&change);
    let peer = Peer::new(move |seen| match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => Answer::events(vec![
            Step::Until(std::sync::Arc::clone(&told)),
            Step::event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
            Step::Hold,
        ]),
        ("POST", "tools/list") if seen.before > 0 => {
            Answer::json(seen.result(&json!({"tools": [{"name": "new", "inputSchema": {}}]})))
        }
        _ => legacy(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.tools().await.unwrap(), ["do", "look"]);
    let listening = peer.receives("GET", 1).await.remove(0);
    assert_eq!(listening.header("accept"), Some("text/event-stream"));
    assert_eq!(listening.header("mcp-session-id"), Some("session-0"));
    change.notify_one();
    while scene.tools().await.unwrap() != ["new"] {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn older_revisions_are_spoken_too_and_unknown_ones_are_not() {
    for (revision, expected) in
        [("2025-03-26", true), ("2025-06-18", true), ("1999-01-01", false), ("2026-07-28", false)]
    {
        let peer = Peer::new(move |seen| match seen.method() {
            "initialize" => Answer::json(
                seen.result(&json!({"protocolVersion": revision, "capabilities": {"tools": {}}})),
            ),
            _ => legacy(seen),
        })
        .await;
        let scene = Scene::new(&peer);
        assert_eq!(scene.listing(Listing::Tools).await.is_ok(), expected, "{revision}");
        if expected {
            let list = peer.of("tools/list").remove(0);
            assert_eq!(list.header("mcp-protocol-version"), Some(revision));
            assert_eq!(list.header("mcp-session-id"), None, "it gave none");
        }
    }
}

#[tokio::test]
async fn a_batch_of_an_old_server_and_an_error_without_an_id_find_their_request() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/list" => Answer::json(format!("[{}]", seen.result(&crate::scene::tools()))),
        "tools/call" => {
            Answer::json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}"#)
        }
        _ => legacy(seen),
    })
    .await;
    let error = Scene::new(&peer).call("do", Value::Object(serde_json::Map::new())).await;
    assert_eq!(error.unwrap_err(), "invalid_input: server `s` answered with error -32602: bad");
}
