//! Everything that can go wrong, each with its code and within its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capstan_http::{Applied, Challenge, Challenged, Credentials, HttpRequest};
use capstan_mcp::settings::LoginCredentials;
use capstan_mcp::{HttpSettings, Prefer};
use capstan_model::Secret;
use serde_json::json;
use tokio::net::TcpListener;

use crate::peer::{Answer, Peer, Step};
use crate::scene::{Scene, legacy, settings};

/// What a call gets whose answer is this.
async fn check(answer: Answer, expected: &str) {
    let peer = Peer::new(move |seen| match seen.method() {
        "tools/call" => answer.clone(),
        _ => legacy(seen),
    })
    .await;
    let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
    assert!(error.starts_with(expected), "{error}\n    is not\n{expected}");
    assert_eq!(peer.of("tools/call").len(), 1, "{error}: sent once");
}

#[tokio::test]
async fn a_status_instead_of_an_answer_has_its_code_and_is_not_retried() {
    let text = |status, text: &str| Answer::typed("text/plain", text).coded(status);
    check(text(401, "log in"), "auth_failure: server `s` refused access: log in").await;
    check(text(403, "never"), "auth_failure: server `s` refused access: never").await;
    let gone = "not_found: server `s` answered with HTTP status 410: Gone";
    check(Answer::status(410), gone).await;
    check(Answer::status(429), "rate_limited: server `s` takes no more calls for now").await;
    let down = "transient: server `s` answered with HTTP status 503: Service Unavailable";
    check(Answer::status(503), down).await;
    check(text(500, "a\nb"), "server_error: server `s` answered with HTTP status 500: a").await;
    let odd = Answer::json(r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"x"}}"#);
    check(odd.coded(422), "invalid_input: server `s` answered with error -32602: x").await;
}

#[tokio::test]
async fn what_is_not_mcp_is_called_so() {
    let html = Answer::typed("text/html", "<html>");
    check(html, "server_error: server `s` sent something that is not MCP: it answered with `text")
        .await;
    check(Answer::status(202), "server_error: server `s` sent something that is not MCP").await;
    check(Answer::json("{"), "server_error: server `s` sent something that is not MCP").await;
    check(
        Answer::json(r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
        "server_error: server `s` sent something that is not MCP: an answer does not contain the reply",
    )
    .await;
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_outcome_unknown() {
    check(Answer::status(200).then(Step::Cut), "outcome_unknown").await;
    check(
        Answer::status(200)
            .with("content-type", "application/json")
            .then(Step::Send("{".into()))
            .then(Step::Cut),
        "outcome_unknown",
    )
    .await;
}

#[tokio::test]
async fn how_long_to_stay_away_is_passed_on() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => Answer::status(429).with("retry-after", "7"),
        _ => legacy(seen),
    })
    .await;
    let error = Scene::new(&peer).try_call("do", json!({})).await.unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("try again in 7s"));
    assert!(error.retryable());
}

#[tokio::test]
async fn a_server_that_refuses_the_configured_key_says_so_and_is_not_asked_for_every_call() {
    let peer = Peer::new(|_| Answer::status(401)).await;
    let scene = Scene::new(&peer);
    for _ in 0..20 {
        let error = scene.call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("auth_failure"), "{error}");
    }
    let state = scene.state();
    assert!(state.starts_with("failed: it refuses the configured credentials"), "{state}");
    assert!(peer.seen().len() <= 4, "{}", peer.seen().len());
}

/// Credentials of a login, of which there is none until somebody logs in.
struct Later(AtomicBool);

impl Credentials for Later {
    fn apply<'a>(&'a self, request: &'a mut HttpRequest) -> Applied<'a> {
        if self.0.load(Ordering::SeqCst) {
            request.add_header("authorization", "Bearer t").unwrap();
        }
        Applied::Ready
    }

    fn challenged<'a>(&'a self, _: Challenge<'a>) -> Challenged<'a> {
        Challenged::Final
    }
}

#[tokio::test]
async fn after_a_login_elsewhere_the_next_call_works() {
    let peer = Peer::new(|seen| match seen.header("authorization") {
        Some(_) => legacy(seen),
        None => Answer::status(401),
    })
    .await;
    let login = Arc::new(Later(AtomicBool::new(false)));
    let credentials: Arc<dyn Credentials> = Arc::<Later>::clone(&login);
    let login_of = Some(LoginCredentials(credentials));
    let scene = Scene::of(HttpSettings { login: login_of, ..settings(&peer.origin) });
    for _ in 0..6 {
        let error = scene.call("do", json!({})).await.unwrap_err();
        assert!(error.starts_with("auth_failure"), "{error}");
        assert!(error.contains("run `capstan login s`"), "{error}");
        assert_eq!(scene.state(), "needs_login: it needs a login");
    }
    login.0.store(true, Ordering::SeqCst);
    scene.call("do", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_login_that_is_no_longer_good_shows_in_the_state() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => Answer::status(401),
        _ => legacy(seen),
    })
    .await;
    let login: Arc<dyn Credentials> = Arc::new(Later(AtomicBool::new(true)));
    let login = Some(LoginCredentials(login));
    let scene = Scene::of(HttpSettings { login, ..settings(&peer.origin) });
    scene.call("do", json!({})).await.unwrap_err();
    assert_eq!(scene.state(), "needs_login: it needs a login");
}

#[tokio::test]
async fn an_address_that_is_not_there_fails_fast_and_names_no_secret() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    for (url, part) in [
        (format!("http://127.0.0.1:{port}/mcp?token=s3cr3t-key"), "refused"),
        ("http://does-not-exist.invalid/mcp".to_owned(), "no connection"),
        ("http://127.0.0.1:1/\u{7f}".to_owned(), "no connection"),
        ("gopher://host/".to_owned(), "not HTTP"),
    ] {
        let limit = Duration::from_secs(10);
        let scene = Scene::of(HttpSettings { prefer: Prefer::HttpThenSse, ..settings(&url) });
        let error = tokio::time::timeout(limit, scene.call("do", json!({}))).await.unwrap();
        let error = error.unwrap_err();
        assert!(error.starts_with("transient") && error.contains(part), "{error}");
        assert!(!error.contains("s3cr3t"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_fails_within_its_start() {
    let half = Answer::typed("application/json", "{").then(Step::Hold);
    let peer = Peer::new(move |_| half.clone()).await;
    let limit = Duration::from_millis(300);
    let scene = Scene::of(HttpSettings { startup_timeout: limit, ..settings(&peer.origin) });
    let error = scene.call("do", json!({})).await.unwrap_err();
    assert!(error.starts_with("transient") && error.contains("within 300ms"), "{error}");
}

#[tokio::test]
async fn a_secret_that_the_server_repeats_is_masked() {
    let peer =
        Peer::new(|_| Answer::typed("text/plain", "bad s3cr3t-key, bad tok3n").coded(500)).await;
    let mut settings = settings(&peer.origin);
    settings.headers.push(("Authorization".to_owned(), Secret::new("Bearer tok3n".to_owned())));
    let error = Scene::of(settings).call("do", json!({})).await.unwrap_err();
    assert!(error.ends_with("HTTP status 500: bad ***, bad ***"), "{error}");
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let mut settings = settings("http://127.0.0.1:1/");
    settings.headers.push(("X-Bad".to_owned(), Secret::new("a\nInjected: yes".to_owned())));
    let error = Scene::of(settings).call("do", json!({})).await.unwrap_err();
    assert!(error.contains("`X-Bad`") && !error.contains("Injected"), "{error}");
}
