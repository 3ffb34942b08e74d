//! Logging in and out.

use capstan_hub::ports::VaultKind;
use capstan_login::{Grant, LoginError, LoginRequest, OAuthSettings, Revoke};
use serde_json::json;

use crate::stage::{
    Answer, Page, Peer, Seen, Stage, Visitor, call, json_answer, log_in, metadata, unauthorized,
    wish,
};

/// An authorization server that grants everything, and a server that accepts its token.
pub(crate) fn granting(origin: &str, seen: &Seen) -> Option<Answer> {
    match seen.path.as_str() {
        "/token" => Some(json_answer(
            200,
            &json!({
                "access_token": "t0ken-1", "token_type": "Bearer", "expires_in": 3600,
                "refresh_token": "refr3sh-1", "scope": "read",
            }),
        )),
        "/mcp" if seen.header("authorization") == Some("Bearer t0ken-1") => {
            Some((200, Vec::new(), "ok".to_owned()))
        }
        "/mcp" => Some(unauthorized()),
        "/revoke" => Some((200, Vec::new(), String::new())),
        _ => metadata(origin, seen),
    }
}

#[tokio::test]
async fn a_login_leads_to_a_token_that_the_server_accepts() {
    let stage = Stage::new(granting).await;
    let (login, person) = (stage.login(), Visitor::willing());
    let client = stage.client(&login);
    assert_eq!(call(&client).await.unwrap().status, 401);
    let done = log_in(&login, &person).await.unwrap();
    assert_eq!((done.scopes, done.renews), (vec!["read".to_owned()], true));
    assert_eq!(done.issuer, Some(format!("{}/as", stage.peer.origin)));
    assert_eq!(call(&client).await.unwrap().status, 200);
    let sent = &stage.peer.seen("/token")[0];
    assert_eq!(sent.field("code").as_deref(), Some("c0de"));
    assert_eq!(sent.field("resource"), Some(format!("{}/mcp", stage.peer.origin)));
    assert!(sent.field("code_verifier").is_some_and(|verifier| verifier.len() == 43));
    let registered = &stage.peer.seen("/register")[0].body;
    assert!(registered.contains("\"application_type\":\"native\""), "{registered}");
    let pages = person.pages(1).await;
    assert!(
        pages[0].starts_with("HTTP/1.1 200") && pages[0].contains("You are logged in"),
        "{pages:?}"
    );
    assert!(pages[0].contains("referrer-policy: no-referrer") && !pages[0].contains("c0de"));
    let shown = person.shown();
    assert!(shown[0].contains("scopes: [\"read\"]"), "the scopes are shown first: {shown:?}");
}

/// C08: what is asked, in this order.
#[tokio::test]
async fn c08_both_well_known_documents_are_fetched() {
    let stage = Stage::new(granting).await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    let paths: Vec<String> =
        stage.peer.seen("/.well-known").into_iter().map(|seen| seen.path).collect();
    assert_eq!(
        paths,
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server/as"]
    );
}

/// C07: configured endpoints are used as they are.
#[tokio::test]
async fn c07_a_manual_login_asks_nobody_where_to_go() {
    let stage = Stage::new(granting).await;
    let oauth = OAuthSettings {
        client_id: Some("mine".to_owned()),
        auth_url: Some(format!("{}/authorize", stage.peer.origin)),
        token_url: Some(format!("{}/token", stage.peer.origin)),
        scopes: Some(vec!["read".to_owned(), "write".to_owned()]),
        ..OAuthSettings::default()
    };
    let person = Visitor::new(|page| {
        assert_eq!(page.of("client_id"), "mine");
        assert_eq!(page.of("scope"), "read write");
        assert_eq!(page.of("code_challenge_method"), "S256");
        vec![page.answer("code=c0de")]
    });
    log_in(&stage.login_with(oauth), &person).await.unwrap();
    assert!(stage.peer.seen("/.well-known").is_empty() && stage.peer.seen("/register").is_empty());
    assert_eq!(stage.peer.seen("/token")[0].field("client_id").as_deref(), Some("mine"));
}

/// C10: a fixed port, and one that is in use.
#[tokio::test]
async fn c10_the_callback_uses_the_port_that_is_chosen() {
    let stage = Stage::new(granting).await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    let request = LoginRequest { port: Some(port), ..wish() };
    let busy = stage.login().log_in(&request, &Visitor::willing()).await.unwrap_err();
    assert!(matches!(busy, LoginError::Port { port: told, .. } if told == port), "{busy}");
    drop(free);
    let person = Visitor::new(move |page| {
        assert_eq!(page.of("redirect_uri"), format!("http://127.0.0.1:{port}/callback"));
        vec![page.answer("code=c0de")]
    });
    stage.login().log_in(&request, &person).await.unwrap();
}

/// C73: the address is pasted while the callback waits.
#[tokio::test]
async fn c73_a_pasted_address_counts_as_the_callback() {
    let stage = Stage::new(granting).await;
    let mut person = Visitor::new(|_| Vec::new());
    person.line = Box::new(|url| {
        let page = Page::read(url);
        Some(format!("{}?code=c0de&state={}", page.of("redirect_uri"), page.of("state")))
    });
    log_in(&stage.login(), &person).await.unwrap();
    assert_eq!(stage.peer.seen("/token")[0].field("code").as_deref(), Some("c0de"));
}

#[tokio::test]
async fn a_registered_client_is_used_again_and_registered_anew_when_it_is_rejected() {
    let stage = Stage::new(|origin, seen| {
        let rejects = seen.field("client_id").as_deref() == Some("client-1")
            && seen.field("code").as_deref() == Some("late");
        match seen.path.as_str() {
            "/token" if rejects => Some(json_answer(401, &json!({ "error": "invalid_client" }))),
            "/register" if seen.body.contains("again") => None,
            _ => granting(origin, seen),
        }
    })
    .await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    assert_eq!(stage.peer.seen("/register").len(), 1, "it is kept");
    assert_eq!(stage.vault.values(VaultKind::Client).len(), 1);
    let late = Visitor::new(|page| vec![page.answer("code=late")]);
    let refused = log_in(&stage.login(), &late).await.unwrap_err();
    assert!(matches!(&refused, LoginError::Refused { code, .. } if code == "invalid_client"));
    assert_eq!(stage.peer.seen("/register").len(), 2, "it was rejected once");
}

#[tokio::test]
async fn a_code_for_another_device_is_waited_for_at_the_pace_of_the_server() {
    let stage = Stage::new(|origin, seen| match seen.path.as_str() {
        "/device" => Some(json_answer(
            200,
            &json!({
                "device_code": "d3vice", "user_code": "ABCD-EFGH", "interval": 5, "expires_in": 600,
                "verification_uri": "https://example.com/device",
            }),
        )),
        "/token" if seen.field("device_code").is_some() => None,
        _ => granting(origin, seen),
    })
    .await;
    let oauth = OAuthSettings { grant: Grant::Device, ..OAuthSettings::default() };
    let person = Visitor::new(|_| Vec::new());
    let refused = log_in(&stage.login_with(oauth), &person).await.unwrap_err();
    assert!(matches!(refused, LoginError::Unusable { .. }), "{refused}");

    let stage = Stage::new(device).await;
    let request = LoginRequest { browser: false, ..wish() };
    let login = stage.login();
    login.log_in(&request, &person).await.unwrap();
    assert!(person.shown().iter().any(|step| step.contains("ABCD-EFGH")));
    assert_eq!(stage.peer.seen("/token").len(), 3);
    assert_eq!(call(&stage.client(&login)).await.unwrap().status, 200);
}

/// Grants at the third request, after it was asked to slow down.
fn device(origin: &str, seen: &Seen) -> Option<Answer> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    match seen.path.as_str() {
        "/device" => Some(json_answer(
            200,
            &json!({
                "device_code": "d3vice", "user_code": "ABCD-EFGH", "interval": 5, "expires_in": 600,
                "verification_uri": "https://example.com/device",
            }),
        )),
        "/token" => match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 => Some(json_answer(400, &json!({ "error": "authorization_pending" }))),
            1 => Some(json_answer(400, &json!({ "error": "slow_down" }))),
            _ => granting(origin, seen),
        },
        _ => granting(origin, seen),
    }
}

#[tokio::test]
async fn a_logout_removes_the_tokens_and_revokes_them_if_asked() {
    let stage = Stage::new(granting).await;
    let login = stage.login();
    log_in(&login, &Visitor::willing()).await.unwrap();
    let done = login.log_out(Revoke::Yes).await.unwrap();
    assert!(done.was_logged_in && done.revoked == Some(Ok(())));
    let revoked: Vec<_> =
        stage.peer.seen("/revoke").iter().map(|seen| seen.field("token")).collect();
    assert_eq!(revoked, [Some("refr3sh-1".to_owned()), Some("t0ken-1".to_owned())]);
    assert!(stage.vault.values(VaultKind::Tokens).is_empty());
    assert_eq!(call(&stage.client(&login)).await.unwrap().status, 401);
    assert!(!login.log_out(Revoke::No).await.unwrap().was_logged_in);
}

#[tokio::test]
async fn two_accounts_at_one_address_are_told_apart() {
    let stage = Stage::new(granting).await;
    let (own, work) = (stage.login(), stage.login().named("work").unwrap());
    log_in(&work, &Visitor::willing()).await.unwrap();
    assert!(own.status().await.unwrap().is_none());
    assert!(work.status().await.unwrap().is_some());
    assert_eq!(call(&stage.client(&own)).await.unwrap().status, 401);
    assert_eq!(call(&stage.client(&work)).await.unwrap().status, 200);
    log_in(&own, &Visitor::willing()).await.unwrap();
    let names = |all: Vec<(Option<String>, _)>| all.into_iter().map(|(name, _)| name).collect();
    let all: Vec<Option<String>> = names(own.all().await.unwrap());
    assert_eq!(all, [None, Some("work".to_owned())]);
    work.log_out(Revoke::No).await.unwrap();
    let all: Vec<Option<String>> = names(work.all().await.unwrap());
    assert_eq!(all, [None]);
}

#[tokio::test]
async fn a_server_without_a_login_gets_no_other_request() {
    let peer = Peer::new(|_, _| Some((200, Vec::new(), "ok".to_owned()))).await;
    let stage = Stage { peer, vault: std::sync::Arc::default(), clock: std::sync::Arc::default() };
    let client = stage.client(&stage.login());
    for _ in 0..3 {
        assert_eq!(call(&client).await.unwrap().status, 200);
    }
    let seen = stage.peer.seen("/");
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter().all(|seen| seen.header("authorization").is_none() && seen.method == "POST")
    );
}
