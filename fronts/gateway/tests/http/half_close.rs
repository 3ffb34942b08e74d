//! Clients that close their side and wait, and clients that are gone (Holes 12).

use std::time::Duration;

use capstan_wire::Json;

use crate::harness::{Harness, call, member};
use capstan_testkit::http::{HttpRequest, post, request};

async fn legacy(harness: &Harness, tool: &str) -> HttpRequest {
    let id = harness.session("2025-11-25").await;
    post("/mcp", &call(1, tool)).with("Mcp-Session-Id", &id)
}

fn modern(tool: &str) -> HttpRequest {
    let version = "2026-07-28";
    let prefix = "io.modelcontextprotocol";
    let meta = format!(
        r#""_meta":{{"progressToken":"t","{prefix}/protocolVersion":"{version}","{prefix}/clientCapabilities":{{}}}}"#
    );
    let params = format!(r#"{{"name":"{tool}","arguments":{{}},{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let ask = post("/mcp", &body).with("MCP-Protocol-Version", version);
    ask.with("Mcp-Method", "tools/call").with("Mcp-Name", tool)
}

#[tokio::test]
async fn an_answer_that_is_there_at_once_comes_as_always() {
    let harness = Harness::new().await;
    for ask in
        [legacy(&harness, "files__say").await, modern("files__say"), request("GET", "/health")]
    {
        let mut peer = harness.peer().await;
        peer.send(&ask.text()).await;
        peer.half_close().await;
        let answer = peer.answer().await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        assert!(answer.head.get("content-length").is_some());
        assert!(peer.is_closed().await);
    }
}

#[tokio::test]
async fn an_answer_that_takes_long_comes_in_the_form_that_the_client_accepts() {
    let harness = Harness::new().await;
    for (accept, kind) in [
        ("application/json, text/event-stream", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("application/json", "application/json"),
    ] {
        for ask in [legacy(&harness, "files__wait").await, modern("files__wait")] {
            let mut peer = harness.peer().await;
            peer.send(&ask.with("Accept", accept).text()).await;
            peer.half_close().await;
            harness.server.waits(1).await;
            // The head comes before the answer, to find out whether the client is there.
            let head = peer.head().await;
            assert_eq!((head.status, head.get("content-type")), (200, Some(kind)));
            harness.server.go();
            let answer = if kind == "application/json" {
                let mut body = Vec::new();
                while let Some(chunk) = peer.chunk().await {
                    body.extend(chunk);
                }
                String::from_utf8(body).unwrap()
            } else {
                peer.event().await.unwrap()
            };
            let json = answer.split_once("data: ").map_or(answer.as_str(), |(_, json)| json);
            assert_eq!(member(json.trim(), "id"), "1");
            assert!(json.contains("wait done"), "{answer}");
            harness.server.waits(0).await;
        }
    }
}

#[tokio::test]
async fn a_stream_goes_on_for_a_client_that_closes_its_side() {
    let harness = Harness::new().await;
    for ask in [legacy(&harness, "files__slow").await, modern("files__slow")] {
        let mut peer = harness.peer().await;
        peer.send(&ask.text()).await;
        assert!(peer.event_after_head().await.contains("notifications/progress"));
        peer.half_close().await;
        harness.server.waits(1).await;
        // It is looked after in the meantime.
        assert_eq!(peer.chunk().await.as_deref(), Some(&b":\n\n"[..]));
        harness.server.go();
        assert!(peer.event().await.unwrap().contains("slow done"));
        harness.server.waits(0).await;
    }
}

#[tokio::test]
async fn a_client_that_closes_or_resets_its_connection_cancels_its_call() {
    let harness = Harness::limited(|limits| limits.resume = Duration::from_millis(50)).await;
    for accept in ["application/json, text/event-stream", "application/json"] {
        for resets in [true, false] {
            for ask in [legacy(&harness, "files__wait").await, modern("files__wait")] {
                let mut peer = harness.peer().await;
                peer.send(&ask.with("Accept", accept).text()).await;
                harness.server.waits(1).await;
                if resets {
                    peer.resets();
                }
                drop(peer);
                harness.server.waits(0).await;
            }
        }
    }
    // Also when it had only closed its side before.
    let mut peer = harness.peer().await;
    peer.send(&modern("files__wait").text()).await;
    peer.half_close().await;
    harness.server.waits(1).await;
    peer.head().await;
    peer.resets();
    drop(peer);
    harness.server.waits(0).await;
}

#[tokio::test]
async fn a_batch_is_answered_or_cancelled_like_a_single_call() {
    let harness = Harness::limited(|limits| limits.resume = Duration::from_millis(50)).await;
    let id = harness.session("2025-03-26").await;
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let batch = format!("[{ping},{},{}]", call(1, "files__wait"), call(2, "files__wait"));
    let batch = post("/mcp", &batch).with("Mcp-Session-Id", &id);
    for accept in ["application/json, text/event-stream", "application/json"] {
        for resets in [true, false] {
            let mut peer = harness.peer().await;
            peer.send(&batch.clone().with("Accept", accept).text()).await;
            harness.server.waits(2).await;
            if resets {
                peer.resets();
            }
            drop(peer);
            harness.server.waits(0).await;
        }
    }
    let mut peer = harness.peer().await;
    peer.send(&batch.with("Accept", "application/json").text()).await;
    peer.half_close().await;
    harness.server.waits(2).await;
    let head = peer.head().await;
    assert_eq!((head.status, head.get("content-type")), (200, Some("application/json")));
    harness.server.go();
    harness.server.waits(1).await;
    harness.server.go();
    let mut body = Vec::new();
    while let Some(chunk) = peer.chunk().await {
        body.extend(chunk);
    }
    let body = String::from_utf8(body).unwrap();
    assert!(Json::parse(body.clone()).is_ok() && body.trim().starts_with('['), "{body}");
    assert_eq!(body.matches(r#""jsonrpc""#).count(), 3, "{body}");
    assert_eq!(body.matches("wait done").count(), 2, "{body}");
}

#[tokio::test]
async fn a_body_that_is_not_whole_is_not_waited_for() {
    let harness = Harness::new().await;
    let mut peer = harness.peer().await;
    peer.send(&post("/mcp", "{}").with("Content-Length", "10").text()).await;
    peer.half_close().await;
    assert_eq!(peer.answer().await.head.status, 400);
}
