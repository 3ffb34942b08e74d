//! Servers that die, and what becomes of the calls that they had.

use std::collections::HashSet;
use std::time::Duration;

use capstan_hub::ports::{Backend as _, Listing};
use capstan_mcp::StdioSettings;
use capstan_model::{CallError, ErrorCode};
use capstan_testkit::alive;
use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::scene::{Scene, shell, until};

pub(crate) fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_write_in_flight_when_the_server_dies_is_not_sent_again() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era]);
        let error = scene.call("crash", "{}").await.unwrap_err();
        assert_eq!((error.code(), error.retryable()), (ErrorCode::OutcomeUnknown, false));
        let CallError::OutcomeUnknown { reason, .. } = error else { panic!("{error:?}") };
        assert_eq!(reason, "it exited with code 70", "{era}");
        assert_eq!(scene.state(), "failed: it exited with code 70");
        scene.call("echo", "{}").await.unwrap();
        assert_eq!(scene.received(r#""name":"crash""#).len(), 1, "{era}");
    }
}

#[tokio::test]
async fn a_read_in_flight_when_the_server_dies_is_tried_once_more() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era]);
        let error = scene.call("crash_read", "{}").await.unwrap_err();
        assert_eq!((error.code(), error.retryable()), (ErrorCode::Transient, true));
        assert_eq!(scene.received(r#""name":"crash_read""#).len(), 2, "{era}");
    }
}

#[tokio::test]
async fn a_server_that_died_is_started_anew_for_the_next_call() {
    let scene = Scene::new(&[]);
    assert_eq!(scene.text("count", "{}").await, "1");
    assert_eq!(scene.text("count", "{}").await, "2");
    for _ in 0..3 {
        scene.call("crash", "{}").await.unwrap_err();
        assert_eq!(scene.text("count", "{}").await, "1");
    }
    assert_eq!(scene.state(), "connected");
}

#[tokio::test]
async fn a_death_fails_every_call_in_flight_and_counts_as_one_failure() {
    let scene = Scene::new(&[]);
    let waiting = join_all((0..20).map(|_| scene.call("hang", "{}")));
    let crash = async {
        until(|| scene.received(r#""name":"hang""#).len() == 20).await;
        scene.call("crash", "{}").await
    };
    let (waited, crashed) = tokio::join!(waiting, crash);
    for result in waited.into_iter().chain([crashed]) {
        assert_eq!(result.unwrap_err().code(), ErrorCode::OutcomeUnknown);
    }
    // Twenty failures in a row would have to wait for half a minute.
    timeout(Duration::from_secs(10), scene.call("echo", "{}")).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_dies_while_nobody_asks_is_noticed_at_once() {
    let scene = Scene::of(shell("*'\"tools/list\"'*) answer \"$TOOLS\" ;;"));
    let pid = scene.pid().await;
    assert_eq!(scene.state(), "connected");
    kill(pid);
    until(|| scene.state() == "failed: it was killed by signal 9 (SIGKILL)").await;
    assert_ne!(scene.pid().await, pid);
    assert_eq!(scene.state(), "connected");
}

#[tokio::test]
async fn what_a_server_says_before_it_ends_is_heard() {
    let arms = r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*) answer '{"content":[]}'; exit 0 ;;"#;
    for _ in 0..10 {
        let scene = Scene::of(shell(arms));
        for _ in 0..2 {
            assert_eq!(scene.call("do", "{}").await.unwrap(), r#"{"content":[]}"#);
            until(|| scene.state() == "failed: it exited with code 0").await;
        }
    }
}

/// Holes 7.
#[tokio::test]
async fn a_server_that_ends_after_each_call_is_given_up_for_a_while() {
    let arms = r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"'$$'"}]}'; exit 0 ;;"#;
    let scene = Scene::of(shell(arms));
    let mut started = HashSet::new();
    let refused = loop {
        match scene.call("do", "{}").await {
            Ok(answer) => assert!(started.insert(answer), "one process answered twice"),
            Err(error) => break error,
        }
        until(|| scene.state().starts_with("failed: it exited with code 0")).await;
    };
    assert_eq!(started.len(), 5);
    let told = "it exited with code 0; it failed 5 times in a row and is tried again in ";
    assert!(refused.to_string().contains(told), "{refused}");
    assert!(scene.state().contains(told), "{}", scene.state());
    for _ in 0..100 {
        scene.call("do", "{}").await.unwrap_err();
    }
}

/// Holes 7.
#[tokio::test]
async fn a_server_that_we_stop_has_not_failed() {
    let scene = Scene::of(shell("*'\"tools/list\"'*) answer \"$TOOLS\" ;;"));
    let mut pids = HashSet::new();
    for _ in 0..8 {
        let pid = scene.pid().await;
        assert!(pids.insert(pid));
        scene.server.disconnect();
        assert_eq!(scene.state(), "idle");
        until(|| !alive(pid)).await;
    }
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_ended() {
    let arms = r#"
    *'"tools/list"'*) answer "$TOOLS" ;;
    *'"tools/call"'*) exec >&-; sleep 600 ;;"#;
    let scene = Scene::of(shell(arms));
    let pid = scene.pid().await;
    let error = scene.call("do", "{}").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutcomeUnknown);
    assert_eq!(scene.state(), "failed: it closed its output");
    until(|| !alive(pid)).await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_ended_when_there_is_something_to_tell_it() {
    let arms = r#"*'"tools/list"'*) exec <&-; sleep 600 ;;"#;
    let scene = Scene::of(StdioSettings { timeout: Duration::from_millis(500), ..shell(arms) });
    let pid = scene.pid().await;
    let error = scene.names(Listing::Tools).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    until(|| scene.state() == "failed: it closed its input").await;
    until(|| !alive(pid)).await;
}

/// A server of which resources can be watched, and which writes down what it is told.
const TOLD: &str = r#"
*'"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"sh","version":"'$$'"}}' ;;
*'"tools/list"'*) answer "$TOOLS" ;;
*'"tools/call"'*) answer '{"content":[]}' ;;
*'"resources/'*|*'"logging/'*) printf '%s\n' "$line" >> TRACE; answer '{}' ;;"#;

#[tokio::test]
async fn a_server_that_is_started_anew_is_told_again_what_is_wanted_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("told");
    let scene = Scene::of(shell(&TOLD.replace("TRACE", trace.to_str().unwrap())));
    let (hub, server) = (&scene.hub, scene.server.name());
    // Nothing is started for it.
    hub.set_level(server, "info").await.unwrap();
    hub.unsubscribe(server, "x:none").await.unwrap();
    assert_eq!(scene.state(), "idle");
    for uri in ["x:a", "x:b", "x:c"] {
        scene.subscribe(uri).await;
    }
    hub.unsubscribe(server, "x:b").await.unwrap();
    hub.set_level(server, "debug").await.unwrap();
    kill(scene.pid().await);
    until(|| scene.state() != "connected").await;
    std::fs::write(&trace, "").unwrap();
    scene.call("do", "{}").await.unwrap();
    let told = std::fs::read_to_string(&trace).unwrap();
    let said: Vec<&str> =
        told.lines().filter_map(|line| line.split_once("params")).map(|(_, rest)| rest).collect();
    assert_eq!(said, [r#"":{"level":"debug"}}"#, r#"":{"uri":"x:a"}}"#, r#"":{"uri":"x:c"}}"#]);
}
