//! Renewing tokens: ahead of expiry, after a refusal, and by several processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_hub::ports::VaultKind;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::stage::{
    Answer, Seen, Stage, Visitor, call, json_answer, log_in, metadata, unauthorized,
};

/// An authorization server that replaces the refresh token each time and revokes everything when an
/// old one is used again.
pub(crate) struct Rotating {
    /// The number of the tokens that are valid.
    pub(crate) current: AtomicUsize,
    /// The number of refresh tokens that were used twice.
    pub(crate) reused: AtomicUsize,
    /// The members that an answer has besides the tokens.
    pub(crate) more: Value,
}

impl Rotating {
    pub(crate) fn new(more: Value) -> Arc<Self> {
        Arc::new(Self { current: AtomicUsize::new(1), reused: AtomicUsize::new(0), more })
    }

    pub(crate) fn answer(&self, origin: &str, seen: &Seen) -> Option<Answer> {
        let current = self.current.load(Ordering::SeqCst);
        match seen.path.as_str() {
            "/token" if seen.field("grant_type").as_deref() == Some("refresh_token") => {
                if seen.field("refresh_token") != Some(format!("refresh-{current}")) {
                    self.reused.fetch_add(1, Ordering::SeqCst);
                    return Some(json_answer(400, &json!({ "error": "invalid_grant" })));
                }
                self.current.store(current + 1, Ordering::SeqCst);
                Some(self.tokens(current + 1))
            }
            "/token" => Some(self.tokens(current)),
            "/mcp" if seen.header("authorization") == Some(&format!("Bearer token-{current}")) => {
                Some((200, Vec::new(), "ok".to_owned()))
            }
            "/mcp" => Some(unauthorized()),
            _ => metadata(origin, seen),
        }
    }

    fn tokens(&self, number: usize) -> Answer {
        let mut body = json!({
            "access_token": format!("token-{number}"), "refresh_token": format!("refresh-{number}"),
        });
        body.as_object_mut().unwrap().extend(self.more.as_object().cloned().unwrap_or_default());
        json_answer(200, &body)
    }
}

async fn stage(server: &Arc<Rotating>) -> Stage {
    let server = Arc::clone(server);
    let stage = Stage::new(move |origin, seen| server.answer(origin, seen)).await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    stage
}

fn refreshes(stage: &Stage) -> usize {
    let tokens = stage.peer.seen("/token");
    tokens.iter().filter(|seen| seen.field("refresh_token").is_some()).count()
}

/// Attack oauth-refresh-storm.
#[tokio::test]
async fn fifty_calls_with_an_expired_token_make_one_renewal() {
    let server = Rotating::new(json!({ "expires_in": 3600 }));
    let stage = stage(&server).await;
    let client = stage.client(&stage.login());
    stage.clock.advance(4000);
    let calls = join_all((0..50).map(|_| call(&client))).await;
    assert!(calls.iter().all(|answer| answer.as_ref().unwrap().status == 200));
    assert_eq!(refreshes(&stage), 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let server = Rotating::new(json!({ "expires_in": 3600 }));
    let stage = stage(&server).await;
    let client = stage.client(&stage.login());
    stage.clock.advance(3500);
    call(&client).await.unwrap();
    assert_eq!(refreshes(&stage), 0, "it is valid for more than a minute");
    stage.clock.advance(50);
    assert_eq!(call(&client).await.unwrap().status, 200);
    assert_eq!(refreshes(&stage), 1);
    let refused = stage.peer.seen("/mcp").len();
    assert_eq!(refused, 2, "no request was refused");
}

#[tokio::test]
async fn processes_that_renew_at_once_use_each_refresh_token_once() {
    let server = Rotating::new(json!({ "expires_in": 100 }));
    let stage = stage(&server).await;
    let clients: Vec<_> = (0..4).map(|_| stage.client(&stage.login())).collect();
    for round in 1..=5 {
        stage.clock.advance(200);
        let calls = join_all(clients.iter().cycle().take(40).map(call)).await;
        assert!(calls.iter().all(|answer| answer.as_ref().unwrap().status == 200), "{round}");
        assert_eq!(refreshes(&stage), round, "one for all processes");
    }
    assert_eq!(server.reused.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_token_without_expiry_is_used_until_the_server_refuses_it() {
    let server = Rotating::new(json!({}));
    let stage = stage(&server).await;
    let client = stage.client(&stage.login());
    assert_eq!(call(&client).await.unwrap().status, 200);
    stage.clock.advance(10_000_000);
    assert_eq!(call(&client).await.unwrap().status, 200, "nothing expires by itself");
    assert_eq!(refreshes(&stage), 0);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_the_request_is_sent_again() {
    let refused = Arc::new(AtomicUsize::new(0));
    let (server, count) = (Rotating::new(json!({})), Arc::clone(&refused));
    let own = Arc::clone(&server);
    let stage = Stage::new(move |origin, seen| {
        let is_first = seen.header("authorization") == Some("Bearer token-1");
        if seen.path == "/mcp" && is_first {
            count.fetch_add(1, Ordering::SeqCst);
            return Some(unauthorized());
        }
        own.answer(origin, seen)
    })
    .await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    let client = stage.client(&stage.login());
    for _ in 0..3 {
        assert_eq!(call(&client).await.unwrap().status, 200);
    }
    assert_eq!((refused.load(Ordering::SeqCst), refreshes(&stage)), (1, 1));
}

/// Answers of the token endpoint that are errors, though some have status 200.
fn broken() -> [Answer; 4] {
    [
        json_answer(200, &json!({ "ok": false, "error": "invalid_grant" })),
        json_answer(200, &json!({ "error": "invalid_grant", "error_description": "gone" })),
        json_answer(400, &json!({ "error": "invalid_grant" })),
        json_answer(401, &json!({ "error": "invalid_client" })),
    ]
}

#[tokio::test]
async fn a_rejected_refresh_token_is_given_up_and_a_login_is_needed() {
    for answer in broken() {
        let server = Rotating::new(json!({ "expires_in": 100 }));
        let stage = Stage::new(move |origin, seen| {
            let refreshes = seen.path == "/token" && seen.field("refresh_token").is_some();
            if refreshes { Some(answer.clone()) } else { server.answer(origin, seen) }
        })
        .await;
        log_in(&stage.login(), &Visitor::willing()).await.unwrap();
        let client = stage.client(&stage.login());
        stage.clock.advance(200);
        for _ in 0..3 {
            assert!(matches!(call(&client).await.unwrap().status, 200 | 401));
        }
        assert_eq!(refreshes(&stage), 1, "it is not tried again and again");
        // Another login makes it work again.
        log_in(&stage.login(), &Visitor::willing()).await.unwrap();
        assert_eq!(call(&client).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_token_that_is_still_valid_is_used_while_the_authorization_server_is_down() {
    let server = Rotating::new(json!({ "expires_in": 3600 }));
    let stage = Stage::new(move |origin, seen| {
        let refreshes = seen.path == "/token" && seen.field("refresh_token").is_some();
        if refreshes { Some((503, Vec::new(), String::new())) } else { server.answer(origin, seen) }
    })
    .await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    let before = stage.vault.values(VaultKind::Tokens);
    let client = stage.client(&stage.login());
    stage.clock.advance(3550);
    assert_eq!(call(&client).await.unwrap().status, 200);
    assert_eq!(call(&client).await.unwrap().status, 200);
    assert_eq!(refreshes(&stage), 1, "the next attempt is later");
    assert_eq!(stage.vault.values(VaultKind::Tokens), before, "the old tokens stay");
    stage.clock.advance(100);
    let failed = call(&client).await.unwrap_err();
    assert!(failed.contains("could not be renewed"), "{failed}");
}

#[tokio::test]
async fn a_login_in_another_process_is_used_by_the_next_request() {
    let server = Rotating::new(json!({}));
    let own = Arc::clone(&server);
    let stage = Stage::new(move |origin, seen| own.answer(origin, seen)).await;
    let client = stage.client(&stage.login());
    assert_eq!(call(&client).await.unwrap().status, 401);
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    assert_eq!(call(&client).await.unwrap().status, 200);
}
