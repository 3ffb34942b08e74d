//! Streams that break, and clients that resume them.

use std::time::Duration;

use capstan_hub::ports::Listener as _;
use capstan_wire::Json;

use crate::harness::{Harness, call, initialize};
use capstan_testkit::http::{HttpConnection, HttpRequest, post, request};

const RESUMABLE: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// Resumes a stream after the event with this id.
fn back(session: &str, last: &str) -> HttpRequest {
    let open = request("GET", "/mcp").with("Accept", "text/event-stream");
    open.with("Mcp-Session-Id", session).with("Last-Event-ID", last)
}

/// The id of an event.
#[track_caller]
fn id(event: &str) -> String {
    let line = event.lines().find_map(|line| line.strip_prefix("id: "));
    line.unwrap().to_owned()
}

/// Calls a tool that reports progress and waits; the connection, and the id of that report.
async fn begin(harness: &Harness, session: &str, tool: &str) -> (HttpConnection, String) {
    let mut peer = harness.peer().await;
    peer.send(&post("/mcp", &call(1, tool)).with("Mcp-Session-Id", session).text()).await;
    let progress = peer.event_after_head().await;
    assert!(progress.contains("notifications/progress"), "{progress}");
    harness.server.waits(1).await;
    (peer, id(&progress))
}

#[tokio::test]
async fn a_call_whose_stream_broke_goes_on_and_its_answer_is_there_for_who_comes_back() {
    for version in RESUMABLE {
        let harness = Harness::new().await;
        let session = harness.session(version).await;
        let (broken, last) = begin(&harness, &session, "files__slow").await;
        drop(broken);
        let mut again = harness.peer().await;
        again.send(&back(&session, &last).text()).await;
        assert_eq!(again.head().await.status, 200, "{version}");
        harness.server.go();
        assert!(again.event().await.unwrap().contains("slow done"), "{version}");
        assert_eq!(again.event().await, None, "{version}");
        // That may have been lost too.
        let answer = harness.ask(&back(&session, &last)).await;
        assert_eq!(answer.body.matches("slow done").count(), 1, "{version}");
        assert!(!answer.body.contains("progress"), "{version}: {}", answer.body);
    }
}

#[tokio::test]
async fn who_comes_back_while_the_old_connection_seems_to_live_takes_the_stream_over() {
    let harness = Harness::new().await;
    let session = harness.session("2025-11-25").await;
    let (mut old, last) = begin(&harness, &session, "files__slow").await;
    let mut new = harness.peer().await;
    new.send(&back(&session, &last).text()).await;
    assert_eq!(new.head().await.status, 200);
    assert_eq!(old.event().await, None);
    harness.server.go();
    assert!(new.event().await.unwrap().contains("slow done"));
}

#[tokio::test]
async fn a_client_of_2025_11_25_learns_at_once_where_to_come_back_and_when() {
    for (version, primed) in RESUMABLE.map(|version| (version, version == "2025-11-25")) {
        let harness = Harness::new().await;
        let session = harness.session(version).await;
        let mut peer = harness.peer().await;
        let talk = post("/mcp", &call(1, "files__talk")).with("Mcp-Session-Id", &session);
        peer.send(&talk.text()).await;
        peer.head().await;
        let first = peer.any_event().await.unwrap();
        assert_eq!(first == "id: c1-0\nretry: 1000\ndata:", primed, "{version}: {first}");
        assert_eq!(first.contains("progress"), !primed, "{version}: {first}");
        if primed {
            let all = harness.ask(&back(&session, &id(&first))).await;
            assert!(all.body.contains("progress") && all.body.contains("talk done"));
        }
    }
}

#[tokio::test]
async fn nobody_gets_what_is_not_theirs_or_is_not_there() {
    let harness = Harness::new().await;
    let (ann, bob) = (harness.session("2025-11-25").await, harness.session("2025-11-25").await);
    let (broken, last) = begin(&harness, &ann, "files__slow").await;
    drop(broken);
    let track = last.split_once('-').unwrap().0;
    let other = format!("s{}", last.strip_prefix('c').unwrap());
    let later = format!("{track}-9");
    for bad in ["", "x", "c", "c-1", "c1", "c1-", "c1-x", "c99-1", "C1-1", &later] {
        let answer = harness.ask(&back(&ann, bad)).await;
        assert_eq!(answer.head.status, 400, "{bad}: {}", answer.body);
    }
    assert_eq!(harness.ask(&back(&bob, &last)).await.head.status, 400);
    assert_eq!(harness.ask(&back("AAAAAAAAAAAAAAAAAAAAAAAA", &last)).await.head.status, 404);
    // A stream of another kind begins anew, and says nothing of this one.
    let mut standing = harness.peer().await;
    standing.send(&back(&bob, &other).text()).await;
    assert_eq!(standing.head().await.status, 200);
    harness.server.go();
    let mut anns = harness.peer().await;
    anns.send(&back(&ann, &last).text()).await;
    assert_eq!(anns.head().await.status, 200);
    assert!(anns.event().await.unwrap().contains("slow done"));
    let delete = request("DELETE", "/mcp").with("Mcp-Session-Id", &bob);
    assert_eq!(harness.ask(&delete).await.head.status, 204);
    assert_eq!(standing.event().await, None);
}

#[tokio::test]
async fn a_call_that_nobody_comes_back_to_or_that_is_cancelled_ends_at_the_server() {
    let harness = Harness::limited(|limits| limits.resume = Duration::from_millis(50)).await;
    let session = harness.session("2025-11-25").await;
    let (broken, last) = begin(&harness, &session, "files__slow").await;
    drop(broken);
    harness.server.waits(0).await;
    assert_eq!(harness.ask(&back(&session, &last)).await.head.status, 400);

    let harness = Harness::new().await;
    let session = harness.session("2025-11-25").await;
    let (broken, _) = begin(&harness, &session, "files__slow").await;
    drop(broken);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    harness.ask(&post("/mcp", cancel).with("Mcp-Session-Id", &session)).await;
    harness.server.waits(0).await;

    let session = harness.session("2025-11-25").await;
    let (broken, _) = begin(&harness, &session, "files__slow").await;
    drop(broken);
    harness.ask(&request("DELETE", "/mcp").with("Mcp-Session-Id", &session)).await;
    harness.server.waits(0).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_to_be_kept_is_refused_to_who_comes_back_for_it() {
    let harness = Harness::new().await;
    let session = harness.session("2025-11-25").await;
    let (mut peer, last) = begin(&harness, &session, "files__heavy").await;
    harness.server.go();
    assert!(peer.event().await.unwrap().contains("xxxx"), "it comes whole to who stays");
    assert_eq!(harness.ask(&back(&session, &last)).await.head.status, 400);
}

#[tokio::test]
async fn what_is_told_while_a_standing_stream_is_broken_is_told_to_who_comes_back() {
    let harness = Harness::new().await;
    let hello = initialize("2025-11-25")
        .replace(r#""capabilities":{}"#, r#""capabilities":{"elicitation":{}}"#);
    let session = harness.ask(&post("/mcp", &hello)).await;
    let session = session.head.get("mcp-session-id").unwrap().to_owned();
    let tell = |number: u32| {
        let params = Json::parse(format!(r#"{{"elicitationId":"e{number}"}}"#)).unwrap();
        let server = "files".parse().unwrap();
        harness.gateway.told(&server, "notifications/elicitation/complete", Some(&params));
    };
    let mut standing = harness.peer().await;
    let open = back(&session, "x").without("Last-Event-ID");
    standing.send(&open.text()).await;
    assert_eq!(standing.head().await.status, 200);
    tell(1);
    let first = standing.event().await.unwrap();
    assert!(first.contains("e1"), "{first}");
    drop(standing);
    tell(2);
    tell(3);
    let mut again = harness.peer().await;
    again.send(&back(&session, &id(&first)).text()).await;
    assert_eq!(again.head().await.status, 200);
    assert!(again.event().await.unwrap().contains("e2"));
    assert!(again.event().await.unwrap().contains("e3"));
    tell(4);
    assert!(again.event().await.unwrap().contains("e4"));
}

#[tokio::test]
async fn revisions_that_cannot_come_back_get_no_ids() {
    let harness = Harness::new().await;
    let session = harness.session("2024-11-05").await;
    let talk = post("/mcp", &call(1, "files__talk")).with("Mcp-Session-Id", &session);
    let answer = harness.ask(&talk).await;
    assert!(answer.body.starts_with("event: message\ndata: {"), "{}", answer.body);
    assert!(!answer.body.contains("\nid:"), "{}", answer.body);
}
