//! HTTP with server-sent events.

use crate::harness::{Harness, call, initialize, member};
use capstan_testkit::http::{HttpConnection, post, request};

/// Opens a stream; the address to post to.
pub(crate) async fn open(harness: &Harness, path: &str) -> (HttpConnection, String) {
    let mut peer = harness.peer().await;
    peer.send(&request("GET", path).with("Accept", "text/event-stream").text()).await;
    assert_eq!(peer.head().await.get("content-type"), Some("text/event-stream"));
    let endpoint = peer.event().await.unwrap();
    let page = endpoint.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
    assert!(page.starts_with("/messages?sessionId="), "{page}");
    (peer, page)
}

async fn told(peer: &mut HttpConnection) -> String {
    let event = peer.event().await.unwrap();
    event.strip_prefix("event: message\ndata: ").unwrap().to_owned()
}

#[tokio::test]
async fn what_is_posted_is_answered_on_the_stream() {
    let harness = Harness::new().await;
    for (path, prefix) in [("/sse", "files__"), ("/servers/files/sse", "")] {
        let (mut stream, page) = open(&harness, path).await;
        let early = harness.ask(&post(&page, &call(1, "x"))).await;
        assert_eq!(early.head.status, 202);
        assert_eq!(member(&told(&mut stream).await, "error.code"), "-32600");

        harness.ask(&post(&page, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#)).await;
        assert_eq!(told(&mut stream).await, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);

        let hello = harness.ask(&post(&page, &initialize("2024-11-05"))).await;
        assert_eq!((hello.head.status, hello.body.as_str()), (202, ""));
        let hello = told(&mut stream).await;
        assert_eq!(member(&hello, "result.protocolVersion"), r#""2024-11-05""#);

        harness.ask(&post(&page, &call(2, &format!("{prefix}talk")))).await;
        assert!(told(&mut stream).await.contains("notifications/progress"));
        assert!(told(&mut stream).await.contains("talk done"));
    }
}

#[tokio::test]
async fn what_is_posted_to_nobody_or_is_no_message_is_refused() {
    let harness = Harness::new().await;
    let (_stream, page) = open(&harness, "/sse").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let cases = [
        (post("/messages", ping), 400),
        (post("/messages?sessionId=", ping), 400),
        (post("/messages?sessionId=x", ping), 400),
        (post("/messages?sessionId=AAAAAAAAAAAAAAAAAAAAAAAA", ping), 404),
        (post(&page, "{"), 400),
        (post(&page, "[]"), 400),
        (post(&page, ping).with("Content-Type", "text/plain"), 415),
        (request("GET", "/sse").with("Accept", "application/json"), 406),
    ];
    for (ask, status) in cases {
        assert_eq!(harness.ask(&ask).await.head.status, status, "{}", ask.text());
    }
    // Its page is not an id of the other transport.
    let id = page.split_once('=').unwrap().1;
    let other = post("/mcp", ping).with("Mcp-Session-Id", id);
    assert_eq!(harness.ask(&other).await.head.status, 404);
}

#[tokio::test]
async fn with_the_stream_everything_ends() {
    let harness = Harness::new().await;
    let (mut stream, page) = open(&harness, "/sse").await;
    harness.ask(&post(&page, &initialize("2024-11-05"))).await;
    told(&mut stream).await;
    for id in 1..=3 {
        harness.ask(&post(&page, &call(id, "files__wait"))).await;
    }
    harness.server.waits(3).await;
    drop(stream);
    harness.server.waits(0).await;
    assert_eq!(harness.ask(&post(&page, &call(4, "files__say"))).await.head.status, 404);
}
