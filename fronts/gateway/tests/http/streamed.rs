//! Large answers that are streamed to the client.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use capstan_hub::Outcome;
use capstan_model::{CallError, ErrorCode};
use capstan_wire::Json;
use tokio::sync::mpsc::UnboundedSender;

use crate::harness::{Harness, call, member};
use capstan_testkit::http::{HttpConnection, HttpRequest, post, request};

/// The beginning of the server's reply.
const BEGIN: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"be"#;

type More = UnboundedSender<Result<Bytes, CallError>>;

fn say(more: &More, text: &str) {
    more.send(Ok(Bytes::copy_from_slice(text.as_bytes()))).unwrap();
}

fn broken() -> CallError {
    CallError::OutcomeUnknown { server: "files".parse().unwrap(), reason: "it fell".to_owned() }
}

async fn legacy(harness: &Harness, tool: &str) -> HttpRequest {
    let id = harness.session("2025-11-25").await;
    post("/mcp", &call(3, tool)).with("Mcp-Session-Id", &id)
}

fn modern(tool: &str) -> HttpRequest {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = format!(r#"{{"name":"{tool}","arguments":{{}},"_meta":{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{params}}}"#);
    let asked = post("/mcp", &body).with("MCP-Protocol-Version", "2026-07-28");
    asked.with("Mcp-Method", "tools/call").with("Mcp-Name", tool)
}

/// Reads on until so much of the body has come; what came.
async fn read(peer: &mut HttpConnection, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let chunk = peer.chunk().await.unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    text
}

/// Reads on until no more comes.
async fn drain(peer: &mut HttpConnection) -> usize {
    let mut size = 0;
    while let Some(chunk) = peer.chunk().await {
        size += chunk.len();
    }
    size
}

#[tokio::test]
async fn a_client_reads_the_beginning_before_there_is_an_end() {
    let harness = Harness::new().await;
    let more = harness.comes(BEGIN);
    let mut peer = harness.peer().await;
    peer.send(&legacy(&harness, "files__big").await.text()).await;
    let head = peer.head().await;
    assert_eq!((head.status, head.get("content-type")), (200, Some("application/json")));
    let begin = read(&mut peer, "be").await;
    say(&more, r#"gin"}],"isError":"#);
    let middle = read(&mut peer, r#""isError":"#).await;
    say(&more, "true }, \"x\":1}");
    drop(more);
    let end = read(&mut peer, "}}").await;
    assert_eq!(peer.chunk().await, None);
    let expected = r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"begin"}],"isError":true }}"#;
    assert_eq!(begin + &middle + &end, expected);
    let entry = harness.entry().await;
    assert_eq!(entry.outcome, Outcome::ToolError);
    assert_eq!(entry.answer_bytes, expected.len() - r#"{"jsonrpc":"2.0","id":3,"result":}"#.len());
    // The connection goes on.
    assert!(peer.ask(&legacy(&harness, "files__say").await).await.body.contains("say done"));
}

#[tokio::test]
async fn a_modern_client_gets_what_is_missing_at_the_end_and_nothing_twice() {
    for (end, expected) in [
        ("\"}]}}", r#""}],"resultType":"complete"}}"#),
        ("\"}],\"resultType\":\"complete\"}}", r#""}],"resultType":"complete"}}"#),
    ] {
        let harness = Harness::new().await;
        let more = harness.comes(BEGIN);
        say(&more, end);
        drop(more);
        let answer = harness.ask(&modern("files__big")).await;
        assert!(answer.body.ends_with(expected), "{}", answer.body);
        assert!(Json::parse(answer.body).is_ok());
    }
}

#[tokio::test]
async fn an_answer_that_breaks_is_cut_and_never_ended() {
    let huge = "y".repeat(11 << 20);
    let cases: [(&str, Option<CallError>, ErrorCode); 4] = [
        ("\"}],}}", None, ErrorCode::ServerError),
        ("\"}]}", None, ErrorCode::ServerError),
        ("more", Some(broken()), ErrorCode::OutcomeUnknown),
        (&huge, None, ErrorCode::ServerError),
    ];
    for (text, error, code) in cases {
        let harness = Harness::new().await;
        let more = harness.comes(BEGIN);
        let mut peer = harness.peer().await;
        peer.send(&legacy(&harness, "files__big").await.text()).await;
        assert_eq!(peer.head().await.status, 200);
        read(&mut peer, "be").await;
        say(&more, text);
        if let Some(error) = error {
            more.send(Err(error)).unwrap();
        }
        drop(more);
        drain(&mut peer).await;
        // Behind the last chunk of an answer that has ended the connection would stay.
        assert!(peer.is_closed().await);
        assert_eq!(harness.entry().await.outcome, Outcome::Failed(code));
    }
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_ends_its_call() {
    let harness = Harness::new().await;
    let more = harness.comes(BEGIN);
    let mut peer = harness.peer().await;
    peer.send(&legacy(&harness, "files__big").await.text()).await;
    peer.head().await;
    read(&mut peer, "be").await;
    drop(peer);
    tokio::time::timeout(Duration::from_secs(20), more.closed()).await.unwrap();
    assert_eq!(harness.entry().await.outcome, Outcome::Abandoned);
    let metrics = harness.ask(&request("GET", "/metrics")).await.body;
    assert!(metrics.contains("capstan_calls_total{outcome=\"abandoned\"} 1"), "{metrics}");
    assert!(metrics.contains("capstan_calls_in_flight 0"), "{metrics}");
}

#[tokio::test]
async fn an_answer_that_is_taken_back_in_the_middle_is_cut() {
    let harness = Harness::new().await;
    let id = harness.session("2025-11-25").await;
    let said = |body: &str| post("/mcp", body).with("Mcp-Session-Id", &id);
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
    for how in [said(cancelled), request("DELETE", "/mcp").with("Mcp-Session-Id", &id)] {
        let more = harness.comes(BEGIN);
        let mut peer = harness.peer().await;
        peer.send(&said(&call(3, "files__big")).text()).await;
        assert_eq!(peer.head().await.status, 200);
        read(&mut peer, "be").await;
        // Its id is taken for as long as it comes.
        let again = harness.ask(&said(&call(3, "files__say"))).await;
        assert!(again.body.contains("still running"), "{}", again.body);
        harness.ask(&how).await;
        drain(&mut peer).await;
        assert!(peer.is_closed().await);
        tokio::time::timeout(Duration::from_secs(20), more.closed()).await.unwrap();
    }
}

#[tokio::test]
async fn only_who_takes_json_and_was_told_nothing_gets_an_answer_as_it_comes() {
    let harness = Harness::new().await;
    for (tool, accept, expected) in [
        ("files__say", "application/json, text/event-stream", true),
        ("files__say", "application/json", true),
        ("files__say", "text/event-stream", false),
        ("files__talk", "application/json, text/event-stream", false),
        ("files__talk", "application/json", false),
    ] {
        let asked = legacy(&harness, tool).await.with("Accept", accept);
        harness.ask(&asked).await;
        let wishes = harness.server.wishes.lock().unwrap().pop();
        assert_eq!(wishes, Some(expected), "{tool} {accept}");
    }
    let id = harness.session("2025-03-26").await;
    let batch = format!("[{}]", call(2, "files__say"));
    harness.ask(&post("/mcp", &batch).with("Mcp-Session-Id", &id)).await;
    assert_eq!(harness.server.wishes.lock().unwrap().pop(), Some(false));
}

#[tokio::test]
async fn a_client_that_reads_nothing_stops_the_server() {
    const PIECE: usize = 64 * 1024;
    let harness = Harness::new().await;
    let more = harness.comes(BEGIN);
    let mut peer = harness.peer().await;
    peer.send(&legacy(&harness, "files__big").await.text()).await;
    peer.head().await;
    // More than the system holds for us on the way, and less than the limit.
    let piece = "y".repeat(PIECE);
    for _ in 0..(9 << 20) / PIECE {
        say(&more, &piece);
    }
    // Nothing can be waited for: that nothing happens is what is looked for.
    let (mut before, mut taken) = (1, 0);
    while before != taken {
        tokio::time::sleep(Duration::from_millis(100)).await;
        (before, taken) = (taken, harness.server.taken.load(Ordering::Relaxed));
    }
    assert!(taken < 9 << 20, "all of it is held");
    say(&more, "\"}]}}");
    drop(more);
    assert!(drain(&mut peer).await > 9 << 20);
}

#[tokio::test]
async fn an_answer_whose_length_is_too_large_becomes_an_error_and_is_never_begun() {
    let harness = Harness::new().await;
    for asked in [modern("files__big"), legacy(&harness, "files__big").await] {
        let more = harness.comes(BEGIN);
        *harness.server.length.lock().unwrap() = Some(11 << 20);
        say(&more, &"y".repeat(11 << 20));
        let mut peer = harness.peer().await;
        let answer = peer.ask(&asked).await;
        assert_eq!(answer.head.status, 200);
        assert!(Json::parse(answer.body.clone()).is_ok() && answer.body.len() < 10_000);
        assert!(answer.body.contains(r#""isError":true"#), "{}", answer.body);
        // The connection goes on.
        assert!(peer.ask(&legacy(&harness, "files__say").await).await.body.contains("say done"));
    }
}

#[tokio::test]
async fn an_answer_of_unknown_length_that_becomes_too_large_is_an_error_and_never_begun() {
    let harness = Harness::new().await;
    let forms = ["application/json, text/event-stream", "application/json", "text/event-stream"];
    for accept in forms {
        for asked in [modern("files__big"), legacy(&harness, "files__big").await] {
            let more = harness.comes(BEGIN);
            *harness.server.length.lock().unwrap() = None;
            let mut peer = harness.peer().await;
            peer.send(&asked.with("Accept", accept).text()).await;
            for _ in 0..11 {
                say(&more, &"y".repeat(1 << 20));
            }
            let answer = peer.answer().await;
            assert_eq!(answer.head.status, 200, "{accept}");
            let body = if accept == "text/event-stream" {
                assert_eq!(answer.head.get("content-type"), Some("text/event-stream"));
                let data = answer.body.lines().find_map(|line| line.strip_prefix("data: {"));
                format!("{{{}", data.unwrap())
            } else {
                assert_eq!(answer.head.get("content-type"), Some("application/json"));
                answer.body
            };
            assert_eq!(member(&body, "id"), "3", "{body}");
            assert_eq!(member(&body, "result.isError"), "true", "{body}");
            assert!(body.contains("max_answer") && body.len() < 10_000, "{body}");
            // The server need not send the rest, and the connection goes on.
            tokio::time::timeout(Duration::from_secs(20), more.closed()).await.unwrap();
            let next = peer.ask(&legacy(&harness, "files__say").await).await;
            assert!(next.body.contains("say done"), "{accept}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_unknown_length_arrives_byte_for_byte() {
    let harness = Harness::new().await;
    let more = harness.comes(BEGIN);
    *harness.server.length.lock().unwrap() = None;
    for piece in ["gin\"}],\"n\": 1.00", ",\"isError\":false }", ",\"x\":1}"] {
        say(&more, piece);
    }
    drop(more);
    let answer = harness.ask(&legacy(&harness, "files__big").await).await;
    let expected = r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"begin"}],"n": 1.00,"isError":false }}"#;
    assert_eq!(answer.body, expected);
    assert_eq!(harness.entry().await.outcome, Outcome::Answered);
}
