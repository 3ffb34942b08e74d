//! Batches of messages.

use crate::harness::{Harness, call, initialize, member};
use capstan_testkit::http::post;

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const TOLD: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn only_clients_of_2025_03_26_send_several_messages_at_once() {
    let harness = Harness::new().await;
    for version in ["2025-11-25", "2025-06-18", "2024-11-05"] {
        let id = harness.session(version).await;
        let batch = post("/mcp", &format!("[{PING}]")).with("Mcp-Session-Id", &id);
        let answer = harness.ask(&batch).await;
        assert_eq!(answer.head.status, 400, "{version}");
        assert_eq!(member(&answer.body, "error.code"), "-32600", "{version}");
    }
    assert_eq!(harness.ask(&post("/mcp", &format!("[{PING}]"))).await.head.status, 400);
}

#[tokio::test]
async fn a_list_of_messages_is_answered_by_a_list() {
    let harness = Harness::new().await;
    let id = harness.session("2025-03-26").await;
    let send =
        async |text: &str| harness.ask(&post("/mcp", text).with("Mcp-Session-Id", &id)).await;
    let (say, again) = (call(1, "files__say"), initialize("2025-03-26"));
    let answer = send(&format!("[{PING},{TOLD},{say},7,{again}]")).await;
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    assert!(answer.body.starts_with('[') && answer.body.ends_with(']'), "{}", answer.body);
    for part in [r#""id":"p","result":{}"#, "say done", r#""id":null,"error""#, r#""id":0,"error""#]
    {
        assert!(answer.body.contains(part), "{part}: {}", answer.body);
    }
    assert_eq!(answer.body.matches("jsonrpc").count(), 4);

    assert_eq!(send(&format!("[{TOLD},{TOLD}]")).await.head.status, 202);
    for (bad, code) in [("[]", "-32600"), ("[1,", "-32700"), ("[[]", "-32700")] {
        let answer = send(bad).await;
        assert_eq!(
            (answer.head.status, member(&answer.body, "error.code")),
            (400, code.to_owned())
        );
    }
}

#[tokio::test]
async fn a_list_of_messages_becomes_events_when_something_comes_before_an_answer() {
    let harness = Harness::new().await;
    let id = harness.session("2025-03-26").await;
    let batch = format!("[{PING},{}]", call(1, "files__talk"));
    let answer = harness.ask(&post("/mcp", &batch).with("Mcp-Session-Id", &id)).await;
    assert_eq!(answer.head.get("content-type"), Some("text/event-stream"));
    assert_eq!(answer.body.matches("\ndata: {").count(), 3, "{}", answer.body);
    let progress = answer.body.find("notifications/progress").unwrap();
    assert!(progress < answer.body.find("talk done").unwrap());
}
