//! Limits of sizes and times.

use std::time::Duration;

use crate::harness::{Harness, call, initialize, member};
use capstan_testkit::http::{post, request};

const SOON: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_however_it_comes() {
    let harness = Harness::limited(|limits| limits.body = 1000).await;
    let filled = |length: usize| {
        let frame = r#"{"jsonrpc":"2.0","id":1,"method":""}"#.len();
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(length - frame))
    };
    // Fits, and is refused for another reason.
    assert_eq!(harness.ask(&post("/mcp", &filled(1000))).await.head.status, 400);
    assert_eq!(harness.ask(&post("/mcp", &filled(1001))).await.head.status, 413);

    // Refused by its head: the body is never sent.
    let huge = post("/mcp", "").with("Content-Length", "999999999999");
    assert_eq!(harness.ask(&huge).await.head.status, 413);

    let mut peer = harness.peer().await;
    let chunked = post("/mcp", "").with("Transfer-Encoding", "chunked");
    peer.send(&chunked.text()).await;
    for _ in 0..3 {
        peer.send(&format!("190\r\n{}\r\n", " ".repeat(400))).await;
    }
    assert_eq!(peer.answer().await.head.status, 413);
}

#[tokio::test]
async fn a_body_in_many_pieces_is_read_whole() {
    let harness = Harness::new().await;
    let text = initialize("2025-11-25");
    let mut peer = harness.peer().await;
    let chunked = post("/mcp", "").with("Transfer-Encoding", "chunked");
    peer.send(&chunked.text()).await;
    for piece in text.as_bytes().chunks(7) {
        let piece = std::str::from_utf8(piece).unwrap();
        peer.send(&format!("{:x}\r\n{piece}\r\n", piece.len())).await;
    }
    peer.send("0\r\n\r\n").await;
    assert_eq!(peer.answer().await.head.status, 200);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let harness = Harness::new().await;
    let many =
        (0..200).fold(request("GET", "/health"), |ask, at| ask.with(&format!("X-{at}"), "x"));
    assert_eq!(harness.ask(&many).await.head.status, 431);
    let long = request("GET", "/health").with("X-Long", &"x".repeat(40 * 1024));
    assert_eq!(harness.ask(&long).await.head.status, 431);
}

#[tokio::test]
async fn a_client_that_does_not_go_on_is_cut() {
    let harness = Harness::limited(|limits| limits.head_wait = SOON).await;
    let mut silent = harness.peer().await;
    assert!(silent.is_closed().await);
    let mut half = harness.peer().await;
    half.send("GET /health HTTP/1.1\r\nHost: lo").await;
    assert!(half.is_closed().await);

    let harness = Harness::limited(|limits| limits.idle_connection = SOON).await;
    let mut idle = harness.peer().await;
    assert_eq!(idle.ask(&request("GET", "/health")).await.head.status, 200);
    assert!(idle.is_closed().await);

    let harness = Harness::limited(|limits| limits.body_wait = SOON).await;
    let mut slow = harness.peer().await;
    slow.send(&post("/mcp", "").with("Content-Length", "10").text()).await;
    assert_eq!(slow.answer().await.head.status, 408);
}

#[tokio::test]
async fn between_requests_a_connection_may_rest_longer_than_a_head_may_take() {
    let harness = Harness::limited(|limits| limits.head_wait = SOON).await;
    let mut resting = harness.peer().await;
    for _ in 0..3 {
        assert_eq!(resting.ask(&request("GET", "/health")).await.head.status, 200);
        assert!(harness.peer().await.is_closed().await);
    }
}

#[tokio::test]
async fn a_request_that_takes_long_is_not_cut() {
    let harness = Harness::limited(|limits| {
        (limits.head_wait, limits.idle_connection) = (SOON, SOON);
        limits.idle_session = SOON;
    })
    .await;
    let id = harness.session("2025-11-25").await;
    let mut peer = harness.peer().await;
    peer.send(&post("/mcp", &call(1, "files__wait")).with("Mcp-Session-Id", &id).text()).await;
    harness.server.waits(1).await;
    // Other connections come and go in the meantime, each after its limit.
    for _ in 0..3 {
        assert!(harness.peer().await.is_closed().await);
    }
    harness.server.go();
    assert!(peer.answer().await.body.contains("wait done"));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_and_its_calls_end() {
    let harness = Harness::limited(|limits| {
        limits.stall = SOON;
        limits.keep_alive = Duration::from_millis(1);
    })
    .await;
    let id = harness.session("2025-03-26").await;
    // More than sockets hold, and a call that would never end behind it.
    let big: Vec<String> = (1..=32).map(|id| call(id, "files__big")).collect();
    let batch =
        format!("[{},{},{}]", call(50, "files__talk"), big.join(","), call(51, "files__wait"));
    let mut peer = harness.peer().await;
    peer.send(&post("/mcp", &batch).with("Mcp-Session-Id", &id).text()).await;
    harness.server.waits(1).await;
    harness.server.waits(0).await;
    drop(peer);
}

#[tokio::test]
async fn sessions_have_a_limit_and_the_idle_ones_end() {
    let harness = Harness::limited(|limits| limits.sessions = 2).await;
    let first = harness.session("2025-11-25").await;
    harness.session("2025-11-25").await;
    let third = harness.ask(&post("/mcp", &initialize("2025-11-25"))).await;
    assert_eq!(third.head.status, 503);
    assert_eq!(member(&third.body, "id"), "0");
    assert!(third.body.contains("error"), "{}", third.body);
    harness.ask(&request("DELETE", "/mcp").with("Mcp-Session-Id", &first)).await;
    harness.session("2025-11-25").await;

    let harness = Harness::limited(|limits| limits.idle_session = SOON).await;
    let open = |id: &str| request("GET", "/mcp").with("Mcp-Session-Id", id).text();
    let (used, idle) = (harness.session("2025-11-25").await, harness.session("2025-11-25").await);
    let mut stream = harness.peer().await;
    stream.send(&open(&used)).await;
    assert_eq!(stream.head().await.status, 200);
    let ping = post("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let ping = |id: &str| ping.clone().with("Mcp-Session-Id", id);
    // Looking at a session keeps it, so that only the number of them is looked at.
    while !harness.ask(&request("GET", "/metrics")).await.body.contains("\ncapstan_sessions 1\n") {}
    assert_eq!(harness.ask(&ping(&idle)).await.head.status, 404);
    assert_eq!(harness.ask(&ping(&used)).await.head.status, 200);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let harness = Harness::limited(|limits| limits.connections = 1).await;
    let mut first = harness.peer().await;
    assert_eq!(first.ask(&request("GET", "/health")).await.head.status, 200);
    let mut second = harness.peer().await;
    second.send(&request("GET", "/health").text()).await;
    drop(first);
    assert_eq!(second.answer().await.head.status, 200);
}

#[tokio::test]
async fn nothing_that_is_sent_brings_it_down() {
    let harness = Harness::new().await;
    let id = harness.session("2025-03-26").await;
    let deep = |open: &str, count: usize| open.repeat(count);
    let bodies = [
        deep("[", 100_000),
        deep(r#"{"a":"#, 100_000),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}"#, deep("[", 9)),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9999999999999999999,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":"x"}"#.to_owned(),
        r#"[null,{},[],"x",1]"#.to_owned(),
        "\u{feff}".to_owned(),
    ];
    for body in bodies {
        for version in ["2025-03-26", "2026-07-28"] {
            let ask = post("/mcp", &body).with("Mcp-Session-Id", &id);
            let status = harness.ask(&ask.with("MCP-Protocol-Version", version)).await.head.status;
            assert!((200..500).contains(&status), "{status} {version} {body:.80}");
        }
    }
    let host = "Host: localhost\r\n";
    let heads = [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        format!("GET http://[::1 HTTP/1.1\r\n{host}\r\n"),
        format!("GET * HTTP/1.1\r\n{host}\r\n"),
        format!("CONNECT localhost:1 HTTP/1.1\r\n{host}\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}Transfer-Encoding: chunked, x\r\n\r\n"),
        format!("GET /health HTTP/9.9\r\n{host}\r\n"),
    ];
    for head in heads {
        let mut peer = harness.peer().await;
        peer.send(&head).await;
        let status = peer.head().await.status;
        assert!((400..500).contains(&status), "{status} {head:?}");
    }
    assert_eq!(harness.ask(&request("GET", "/health")).await.head.status, 200);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_session_costs_little_memory() {
    const SESSIONS: u64 = 2000;
    let memory = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    };
    let harness = Harness::new().await;
    let mut peer = harness.peer().await;
    let hello = post("/mcp", &initialize("2025-11-25"));
    for _ in 0..100 {
        assert_eq!(peer.ask(&hello).await.head.status, 200);
    }
    let before = memory();
    for _ in 0..SESSIONS {
        assert_eq!(peer.ask(&hello).await.head.status, 200);
    }
    let growth = memory() - before;
    assert!(growth < SESSIONS * 8, "{growth} KiB for {SESSIONS} sessions");
}
