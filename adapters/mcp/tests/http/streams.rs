//! Streams that break off.

use std::collections::HashSet;
use std::time::Duration;

use capstan_mcp::HttpSettings;
use serde_json::json;
use tokio::time::Instant;

use crate::peer::{Answer, Peer, Seen, Step};
use crate::scene::{Scene, done, legacy, settings};

/// A legacy server whose answer to a call begins like this and goes on at the `GET` like that.
async fn broken(begin: Vec<Step>, go_on: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Peer {
    Peer::new(move |seen| match (seen.verb.as_str(), seen.method()) {
        ("POST", "tools/call") => Answer::events(begin.clone()),
        ("GET", _) if seen.header("last-event-id").is_some() => go_on(seen),
        _ => legacy(seen),
    })
    .await
}

fn primed(retry: &str) -> Step {
    Step::Send(format!("id: e1\n{retry}data:\n\n"))
}

/// The reply to the only call that was made: its id is known by what came before it.
fn reply() -> Step {
    let reply = json!({"jsonrpc": "2.0", "id": 4, "result": done()});
    Step::Send(format!("id: e2\ndata: {reply}\n\n"))
}

#[tokio::test]
async fn a_stream_is_taken_up_where_it_broke_off_after_the_wait_that_the_server_asks_for() {
    for end in [vec![], vec![Step::Cut]] {
        let mut steps = vec![primed("retry: 300\n")];
        steps.extend(end);
        let peer = broken(steps, |_| Answer::events(vec![reply()])).await;
        let scene = Scene::new(&peer);
        scene.tools().await.unwrap();
        let begun = Instant::now();
        assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
        assert!(begun.elapsed() >= Duration::from_millis(300));
        let resumed: Vec<Seen> = peer.of("GET");
        let resumed: Vec<&Seen> =
            resumed.iter().filter(|seen| seen.header("last-event-id").is_some()).collect();
        assert_eq!(resumed.len(), 1);
        assert_eq!(resumed[0].header("last-event-id"), Some("e1"));
        assert_eq!(resumed[0].header("mcp-session-id"), Some("session-0"));
        assert_eq!(peer.of("tools/call").len(), 1, "the call itself is never sent twice");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_taken_up_at_once_where_the_server_does_not_say_when() {
    let peer = broken(vec![primed(""), Step::Cut], |_| Answer::events(vec![reply()])).await;
    let scene = Scene::new(&peer);
    scene.tools().await.unwrap();
    let begun = Instant::now();
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn callers_of_a_server_that_dies_while_it_answers_know_it_soon() {
    let peer = broken(vec![primed(""), Step::Hold], |_| Answer::status(500)).await;
    let scene = Scene::new(&peer);
    let death = async {
        peer.receives("tools/call", 1).await;
        peer.die();
        Instant::now()
    };
    let (called, died) = tokio::join!(scene.call("do", json!({})), death);
    assert!(called.as_ref().is_err_and(|e| e.starts_with("outcome_unknown")), "{called:?}");
    assert!(died.elapsed() < Duration::from_secs(2), "{:?}", died.elapsed());
}

#[tokio::test]
async fn a_stream_that_is_cut_behind_every_event_is_not_taken_up_without_a_wait() {
    let event =
        || Step::Send("id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n".to_owned());
    let peer = broken(vec![event(), Step::Cut], move |_| Answer::events(vec![event()])).await;
    let url = format!("{}/mcp", peer.origin);
    let scene = Scene::of(HttpSettings { timeout: Duration::from_millis(1500), ..settings(&url) });
    scene.call("do", json!({})).await.unwrap_err();
    let resumed = peer.of("GET").iter().filter(|s| s.header("last-event-id").is_some()).count();
    assert!((1..=3).contains(&resumed), "{resumed}");
}

#[tokio::test]
async fn a_stream_that_breaks_off_again_and_again_is_given_up() {
    let peer = broken(vec![primed("retry: 1\n")], |_| Answer::events(vec![])).await;
    let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
    assert!(error.starts_with("outcome_unknown"), "{error}");
    let resumed =
        peer.of("GET").iter().filter(|seen| seen.header("last-event-id").is_some()).count();
    assert_eq!(resumed, 5);
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_loses_a_write_and_repeats_a_read() {
    let half = || vec![Step::Send("data: {\"jsonrpc\":\"2.0\"".to_owned())];
    for (steps, go_on) in [(half(), 200), (vec![Step::Cut], 200), (vec![primed("retry: 1\n")], 405)]
    {
        let peer = broken(steps, move |_| Answer::status(go_on)).await;
        let scene = Scene::new(&peer);
        let error = scene.call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("outcome_unknown"), "{error}");
        assert_eq!(peer.of("tools/call").len(), 1);
        let error = scene.call("look", json!({})).await.unwrap_err();
        assert!(error.starts_with("transient"), "{error}");
        assert_eq!(peer.of("tools/call").len(), 3);
    }
}

#[tokio::test]
async fn a_trickle_does_not_put_the_deadline_off() {
    let trickle =
        || (0..100).flat_map(|_| [Step::Send(":".into()), Step::Wait(Duration::from_millis(50))]);
    let peer = Peer::new(move |seen| match seen.method() {
        "tools/call" => Answer::events(trickle().collect()),
        _ => legacy(seen),
    })
    .await;
    let url = format!("{}/mcp", peer.origin);
    let scene = Scene::of(HttpSettings { timeout: Duration::from_millis(400), ..settings(&url) });
    let begun = Instant::now();
    let error = scene.call("do", json!({})).await.unwrap_err();
    assert_eq!(error, "transient: server `s` did not answer within 400ms");
    assert!(begun.elapsed() < Duration::from_secs(3));
    peer.receives("notifications/cancelled", 1).await;
}

#[tokio::test]
async fn an_answer_without_end_is_an_error_and_not_a_full_memory() {
    let megabyte = "x".repeat(1024 * 1024);
    for kind in ["application/json", "text/event-stream"] {
        let piece = megabyte.clone();
        let peer = Peer::new(move |seen| match seen.method() {
            "tools/call" => {
                let mut answer = Answer::typed(kind, "data: ");
                answer.steps.extend((0..20).map(|_| Step::Send(piece.clone())));
                answer
            }
            _ => legacy(seen),
        })
        .await;
        let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("server_error") && error.contains("16777216"), "{error}");
    }
}

#[tokio::test]
async fn connections_are_used_again_whatever_the_answers_look_like() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" if seen.before % 2 == 0 => {
            Answer::events(vec![Step::event(&seen.result(&done()))])
        }
        _ => legacy(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    for _ in 0..10 {
        scene.call("do", json!({})).await.unwrap();
    }
    let used: HashSet<usize> = peer.seen().iter().map(|seen| seen.connection).collect();
    // The stream of an answer may still be ending while the next call begins.
    assert!(used.len() <= 3, "{used:?}");
}
