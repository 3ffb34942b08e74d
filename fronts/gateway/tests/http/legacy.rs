//! Streamable HTTP with a handshake.

use capstan_hub::ports::{Listener as _, Listing};
use capstan_wire::Json;

use crate::harness::{BIG, Harness, call, initialize, member, settings};
use capstan_testkit::http::{post, request};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn a_session_is_needed_known_and_ends() {
    let harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let ping = post("/mcp", PING).with("Mcp-Session-Id", &id);
    let answer = harness.ask(&ping).await;
    assert_eq!(
        (answer.head.status, answer.body.as_str()),
        (200, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
    );
    assert_eq!(answer.head.get("content-type"), Some("application/json"));

    assert_eq!(harness.ask(&post("/mcp", PING)).await.head.status, 400);
    for unknown in ["x", "", "AAAAAAAAAAAAAAAAAAAAAAAA", "########################"] {
        let answer = harness.ask(&ping.clone().with("Mcp-Session-Id", unknown)).await;
        assert_eq!(answer.head.status, 404, "{unknown}");
        assert_eq!(member(&answer.body, "id"), "1");
    }
    let elsewhere = post("/servers/files/mcp", PING).with("Mcp-Session-Id", &id);
    assert_eq!(harness.ask(&elsewhere).await.head.status, 404);

    let delete = request("DELETE", "/mcp").with("Mcp-Session-Id", &id);
    assert_eq!(harness.ask(&delete).await.head.status, 204);
    assert_eq!(harness.ask(&ping).await.head.status, 404);
    assert_eq!(harness.ask(&delete).await.head.status, 404);
    assert_eq!(harness.ask(&delete.without("Mcp-Session-Id")).await.head.status, 400);
}

#[tokio::test]
async fn the_version_header_must_be_known_when_it_is_there() {
    let harness = Harness::new().await;
    let id = harness.session("2025-06-18").await;
    let ping = post("/mcp", PING).with("Mcp-Session-Id", &id);
    for (version, status) in
        [("2025-06-18", 200), ("2025-03-26", 200), ("1999-01-01", 400), ("", 400), ("é", 400)]
    {
        let answer = harness.ask(&ping.clone().with("MCP-Protocol-Version", version)).await;
        assert_eq!(answer.head.status, status, "{version}");
    }
}

#[tokio::test]
async fn notifications_and_replies_are_accepted() {
    let harness = Harness::new().await;
    let id = harness.session("2025-06-18").await;
    for message in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
    ] {
        let told = post("/mcp", message);
        let answer = harness.ask(&told.clone().with("Mcp-Session-Id", &id)).await;
        assert_eq!((answer.head.status, answer.body.as_str()), (202, ""), "{message}");
        assert_eq!(harness.ask(&told).await.head.status, 400, "{message}");
    }
}

#[tokio::test]
async fn an_answer_is_json_unless_something_comes_before_it() {
    let harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let mut peer = harness.peer().await;
    let say = post("/mcp", &call(1, "files__say")).with("Mcp-Session-Id", &id);
    let answer = peer.ask(&say).await;
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    assert!(answer.body.contains("say done"), "{}", answer.body);

    let talk = post("/mcp", &call(2, "files__talk")).with("Mcp-Session-Id", &id);
    peer.send(&talk.text()).await;
    let head = peer.head().await;
    assert_eq!(head.get("content-type"), Some("text/event-stream"));
    assert_eq!(head.get("cache-control"), Some("no-cache"));
    assert_eq!(head.get("x-accel-buffering"), Some("no"));
    let first = peer.event().await.unwrap();
    assert!(first.contains("notifications/progress") && first.contains(r#""progressToken":"t""#));
    assert!(peer.event().await.unwrap().contains("talk done"));
    assert_eq!(peer.event().await, None);

    // The connection is good for more.
    let only_json = talk.clone().with("Accept", "application/json");
    assert!(peer.ask(&only_json).await.body.contains("talk done"));
    let only_events = say.with("Accept", "text/event-stream");
    let answer = peer.ask(&only_events).await;
    assert!(answer.body.contains("-1\ndata: {"), "{}", answer.body);
}

#[tokio::test]
async fn a_large_answer_comes_whole() {
    let harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let mut peer = harness.peer().await;
    let big = post("/mcp", &call(1, "files__big")).with("Mcp-Session-Id", &id);
    for _ in 0..3 {
        let answer = peer.ask(&big).await;
        assert!(answer.head.get("content-length").is_some());
        assert!(answer.body.len() > BIG && answer.body.ends_with("}}"));
        assert_eq!(member(&answer.body, "id"), "1");
    }
}

#[tokio::test]
async fn one_server_has_its_own_endpoint_with_its_own_names() {
    let harness = Harness::new().await;
    let path = "/servers/files/mcp";
    let answer = harness.ask(&post(path, &initialize("2025-11-25"))).await;
    let id = answer.head.get("mcp-session-id").unwrap().to_owned();
    let say = post(path, &call(1, "say")).with("Mcp-Session-Id", &id);
    assert!(harness.ask(&say).await.body.contains("say done"));
}

#[tokio::test]
async fn the_newest_stream_takes_over_and_ends_with_the_session() {
    let harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let open =
        request("GET", "/mcp").with("Mcp-Session-Id", &id).with("Accept", "text/event-stream");
    let (mut first, mut second) = (harness.peer().await, harness.peer().await);
    first.send(&open.text()).await;
    assert_eq!(first.head().await.status, 200);
    second.send(&open.text()).await;
    assert_eq!(second.head().await.status, 200);
    assert_eq!(first.event().await, None);

    let delete = request("DELETE", "/mcp").with("Mcp-Session-Id", &id);
    assert_eq!(harness.ask(&delete).await.head.status, 204);
    assert_eq!(second.event().await, None);

    assert_eq!(harness.ask(&open).await.head.status, 404);
    assert_eq!(harness.ask(&open.clone().without("Mcp-Session-Id")).await.head.status, 400);
    assert_eq!(harness.ask(&open.with("Accept", "application/json")).await.head.status, 406);
}

#[tokio::test]
async fn what_a_server_logs_between_calls_is_for_the_only_client_that_it_can_be_for() {
    let log = |harness: &Harness, level: &str| {
        let params = Json::parse(format!(r#"{{"level":"{level}","data":"x"}}"#)).unwrap();
        harness.gateway.told(&"files".parse().unwrap(), "notifications/message", Some(&params));
    };
    let listen = |id: &str| {
        request("GET", "/mcp").with("Mcp-Session-Id", id).with("Accept", "text/event-stream")
    };
    let harness = Harness::new().await;
    let id = harness.session("2025-06-18").await;
    let level =
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}"#;
    harness.ask(&post("/mcp", level).with("Mcp-Session-Id", &id)).await;
    let mut peer = harness.peer().await;
    peer.send(&listen(&id).text()).await;
    assert_eq!(peer.head().await.status, 200);
    for level in ["info", "error"] {
        log(&harness, level);
    }
    let event = peer.event().await.unwrap();
    assert!(event.contains(r#"{"level":"error","data":"x"}"#), "{event}");

    // With another client it could be for either.
    let other = harness.session("2025-06-18").await;
    log(&harness, "error");
    let delete = request("DELETE", "/mcp").with("Mcp-Session-Id", &other);
    assert_eq!(harness.ask(&delete).await.head.status, 204);
    log(&harness, "alert");
    let event = peer.event().await.unwrap();
    assert!(event.contains("alert"), "{event}");

    // Where others are let in, it may be for one of those.
    let mut settings = settings();
    settings.allowed_hosts = vec!["example.com".to_owned()];
    let harness = Harness::with(settings).await;
    let id = harness.session("2025-06-18").await;
    let mut peer = harness.peer().await;
    peer.send(&listen(&id).text()).await;
    assert_eq!(peer.head().await.status, 200);
    log(&harness, "error");
    harness.gateway.list_changed(&"files".parse().unwrap(), Listing::Tools);
    let delete = request("DELETE", "/mcp").with("Mcp-Session-Id", &id);
    assert_eq!(harness.ask(&delete).await.head.status, 204);
    while let Some(event) = peer.event().await {
        assert!(!event.contains("notifications/message"), "{event}");
    }
}

#[tokio::test]
async fn a_request_that_its_client_cancels_ends_at_the_server() {
    let harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let mut peer = harness.peer().await;
    let wait = post("/mcp", &call(5, "files__wait")).with("Mcp-Session-Id", &id);
    peer.send(&wait.text()).await;
    harness.server.waits(1).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    let answer = harness.ask(&post("/mcp", cancel).with("Mcp-Session-Id", &id)).await;
    assert_eq!(answer.head.status, 202);
    harness.server.waits(0).await;
    assert_eq!(peer.answer().await.head.status, 202);
}

#[tokio::test]
async fn a_client_that_takes_no_events_is_asked_nothing_and_waits_for_nobody() {
    let harness = Harness::new().await;
    let hello = initialize("2025-11-25")
        .replace(r#""capabilities":{}"#, r#""capabilities":{"elicitation":{}}"#);
    let id =
        harness.ask(&post("/mcp", &hello)).await.head.get("mcp-session-id").unwrap().to_owned();
    let ask = post("/mcp", &call(1, "files__ask")).with("Mcp-Session-Id", &id);
    let answer = harness.ask(&ask.with("Accept", "application/json")).await;
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    assert!(answer.body.contains(r#"\"action\":\"decline\""#), "{}", answer.body);
}
