//! Which era of the protocol is spoken, and that finding out costs no server its start.

use capstan_mcp::{Era, StdioSettings};

use crate::scene::{Scene, fixture, shell};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Connects, calls a tool, and expects this revision and this many handshakes.
async fn check(args: &[&str], era: Era, revision: &str, handshakes: usize) {
    let scene = Scene::of(StdioSettings { era, ..fixture(args) });
    let about = scene.about().await.unwrap();
    assert_eq!(about.protocol, revision, "{args:?} {era:?}");
    assert_eq!(scene.text("add", r#"{"a":2,"b":3}"#).await, "5", "{args:?} {era:?}");
    assert_eq!(scene.count("initialize"), handshakes, "{args:?} {era:?}");
    assert_eq!(scene.count("notifications/initialized"), handshakes, "{args:?} {era:?}");
    // A probe that stays unanswered cannot be cancelled.
    assert_eq!(scene.count("notifications/cancelled"), 0, "{args:?} {era:?}");
}

#[tokio::test]
async fn the_newest_era_that_a_server_speaks_is_found_out() {
    check(&["--era", "legacy"], Era::Auto, LEGACY, 1).await;
    check(&["--era", "modern"], Era::Auto, MODERN, 0).await;
    check(&["--era", "both"], Era::Auto, MODERN, 0).await;
}

#[tokio::test]
async fn the_settings_can_choose_the_era() {
    check(&["--era", "both"], Era::Legacy, LEGACY, 1).await;
    check(&["--era", "legacy"], Era::Legacy, LEGACY, 1).await;
    check(&["--era", "both"], Era::Modern, MODERN, 0).await;
    check(&["--era", "modern"], Era::Modern, MODERN, 0).await;
}

#[tokio::test]
async fn legacy_servers_may_take_the_probe_as_they_like() {
    check(&["--era", "legacy", "--discover", "empty"], Era::Auto, LEGACY, 1).await;
    check(&["--era", "legacy", "--discover", "silent"], Era::Auto, LEGACY, 1).await;
    check(&["--era", "legacy", "--discover", "die"], Era::Auto, LEGACY, 1).await;
    // A server of both eras that does not answer the probe is spoken to in the legacy one.
    check(&["--discover", "silent"], Era::Auto, LEGACY, 1).await;
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_gets_one_handshake_and_no_word_of_taking_it_back() {
    let slow = ["--start-delay-ms", "1500", "--era"];
    for (era, revision) in [("legacy", LEGACY), ("modern", MODERN), ("both", MODERN)] {
        let scene = Scene::new(&[&slow[..], &[era]].concat());
        assert_eq!(scene.about().await.unwrap().protocol, revision);
        assert_eq!(scene.text("add", r#"{"a":2,"b":3}"#).await, "5", "{era}");
        // Asked beside the probe when that stayed unanswered for a while.
        assert_eq!(scene.count("initialize"), 1, "{era}");
        assert_eq!(scene.count("notifications/cancelled"), 0, "{era}");
    }
}

#[tokio::test]
async fn a_server_without_the_era_that_the_settings_ask_for_is_refused() {
    let scene = Scene::of(StdioSettings { era: Era::Modern, ..fixture(&["--era", "legacy"]) });
    let error = scene.about().await.unwrap_err().to_string();
    assert!(error.contains("does not speak 2026-07-28"), "{error}");
    let scene = Scene::of(StdioSettings { era: Era::Legacy, ..fixture(&["--era", "modern"]) });
    let error = scene.about().await.unwrap_err().to_string();
    assert!(error.contains("refused the handshake"), "{error}");
}

#[tokio::test]
async fn a_revision_that_nobody_knows_is_refused() {
    for version in [r#""1999-01-01""#, r#""""#, "7"] {
        let hello = format!(r#"{{"protocolVersion":{version},"capabilities":{{}}}}"#);
        let scene = Scene::of(shell(&format!("*'\"initialize\"'*) answer '{hello}' ;;")));
        let error = scene.about().await.unwrap_err().to_string();
        assert!(error.contains("Capstan does not support"), "{error}");
    }
}

#[tokio::test]
async fn a_server_says_who_it_is_in_either_era() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new(&["--era", era, "--instructions", "Be kind."]);
        let about = scene.about().await.unwrap();
        assert_eq!(about.instructions.as_deref(), Some("Be kind."), "{era}");
        assert!(about.capabilities.as_ref().unwrap().as_str().contains("listChanged"), "{era}");
    }
    let scene = Scene::new(&["--era", "legacy"]);
    let about = scene.about().await.unwrap();
    assert_eq!(about.title.as_deref(), Some("capstan-fixture"));
}

#[tokio::test]
async fn everything_sent_to_a_modern_server_says_who_asks_and_what_we_can_do() {
    let scene = Scene::new(&["--era", "modern"]);
    scene.call("echo", "{}").await.unwrap();
    let requests = scene.received(r#""id":"#);
    assert!(requests.len() >= 4, "{requests:?}");
    for request in requests {
        for part in [
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
            r#""io.modelcontextprotocol/clientInfo":{"name":"capstan","#,
            r#""io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":"#,
        ] {
            assert!(request.contains(part), "{request}");
        }
    }
}
