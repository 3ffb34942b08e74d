//! Clients that disconnect, and the shutdown of the gateway.

use std::time::Duration;

use capstan_hub::Outcome;

use crate::harness::{Harness, call, initialize, member};
use crate::legacy_sse::open;
use capstan_testkit::http::{post, request};

#[tokio::test]
async fn a_client_that_goes_away_ends_its_calls() {
    let harness = Harness::limited(|limits| limits.resume = Duration::from_millis(50)).await;
    let id = harness.session("2025-11-25").await;
    // Nothing was sent yet.
    let mut silent = harness.peer().await;
    silent.send(&post("/mcp", &call(1, "files__wait")).with("Mcp-Session-Id", &id).text()).await;
    harness.server.waits(1).await;
    drop(silent);
    harness.server.waits(0).await;

    // Something was, and it does not come back for the rest.
    let id = harness.session("2025-03-26").await;
    let batch = format!("[{},{}]", call(2, "files__talk"), call(3, "files__wait"));
    let mut streaming = harness.peer().await;
    streaming.send(&post("/mcp", &batch).with("Mcp-Session-Id", &id).text()).await;
    assert!(streaming.event_after_head().await.contains("notifications/progress"));
    harness.server.waits(1).await;
    drop(streaming);
    harness.server.waits(0).await;
}

#[tokio::test]
async fn when_it_stops_requests_under_way_end_and_streams_close() {
    let mut harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let mut calling = harness.peer().await;
    calling.send(&post("/mcp", &call(1, "files__wait")).with("Mcp-Session-Id", &id).text()).await;
    let mut listening = harness.peer().await;
    listening.send(&request("GET", "/mcp").with("Mcp-Session-Id", &id).text()).await;
    assert_eq!(listening.head().await.status, 200);
    let mut older = harness.peer().await;
    older.send(&request("GET", "/sse").text()).await;
    assert!(older.event_after_head().await.contains("endpoint"));
    let mut idle = harness.peer().await;
    assert_eq!(idle.ask(&request("GET", "/health")).await.head.status, 200);
    harness.server.waits(1).await;

    harness.stop();
    assert_eq!(listening.event().await, None);
    assert_eq!(older.event().await, None);
    assert!(idle.is_closed().await);
    harness.server.go();
    assert!(calling.answer().await.body.contains("wait done"));
    assert!(calling.is_closed().await);
    harness.ended().await;
}

#[tokio::test]
async fn while_calls_end_their_questions_can_be_answered_and_nothing_new_begins() {
    let mut harness = Harness::new().await;
    let able = initialize("2025-11-25")
        .replace(r#""capabilities":{}"#, r#""capabilities":{"elicitation":{}}"#);
    let answer = harness.ask(&post("/mcp", &able)).await;
    let id = answer.head.get("mcp-session-id").unwrap().to_owned();
    let mut asking = harness.peer().await;
    asking.send(&post("/mcp", &call(1, "files__ask")).with("Mcp-Session-Id", &id).text()).await;
    assert!(asking.event_after_head().await.contains("elicitation/create"));
    harness.stop();
    // The gateway has heard it when it is no longer ready.
    while harness.ask(&request("GET", "/ready")).await.head.status == 200 {}
    assert_eq!(harness.ask(&request("GET", "/sse")).await.head.status, 503);
    let new = harness.ask(&post("/mcp", &call(2, "files__say")).with("Mcp-Session-Id", &id)).await;
    assert!(new.body.contains("shutting down"), "{new:?}");
    // Holes 10.
    assert_eq!((new.head.status, member(&new.body, "id").as_str()), (503, "2"));
    assert_eq!(
        (new.head.get("retry-after"), new.head.get("connection")),
        (Some("1"), Some("close"))
    );
    let hello = harness.ask(&post("/mcp", &initialize("2025-11-25"))).await;
    assert_eq!(hello.head.status, 503);
    let told = post("/mcp", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(harness.ask(&told.with("Mcp-Session-Id", &id)).await.head.status, 202);
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}"#;
    let taken = harness.ask(&post("/mcp", reply).with("Mcp-Session-Id", &id)).await;
    assert_eq!(taken.head.status, 202);
    assert!(asking.event().await.unwrap().contains("accept"));
    harness.ended().await;
}

#[tokio::test]
async fn a_call_that_does_not_end_in_time_is_told_so_and_its_server_that_nobody_waits() {
    let mut harness = Harness::limited(|limits| limits.drain = Duration::from_millis(50)).await;
    let id = harness.session("2025-11-25").await;
    let mut calling = harness.peer().await;
    calling.send(&post("/mcp", &call(1, "files__wait")).with("Mcp-Session-Id", &id).text()).await;
    let mut streaming = harness.peer().await;
    streaming.send(&post("/mcp", &call(2, "files__slow")).with("Mcp-Session-Id", &id).text()).await;
    assert!(streaming.event_after_head().await.contains("notifications/progress"));
    let (mut older, page) = open(&harness, "/sse").await;
    harness.ask(&post(&page, &initialize("2024-11-05"))).await;
    older.event().await.unwrap();
    harness.ask(&post(&page, &call(3, "files__wait"))).await;
    harness.server.waits(3).await;
    harness.stop();
    let told = [
        calling.answer().await.body,
        streaming.event().await.unwrap(),
        older.event().await.unwrap(),
    ];
    for told in told {
        assert!(told.contains(r#""code":"outcome_unknown","retryable":false"#), "{told}");
    }
    assert!(calling.is_closed().await && streaming.event().await.is_none());
    assert_eq!(harness.entry().await.outcome, Outcome::Abandoned);
    harness.server.waits(0).await;
    harness.ended().await;
}
