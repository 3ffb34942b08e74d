//! Attacks on the client: hostile servers, authorization servers and browsers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_hub::ports::VaultKind;
use capstan_login::{Grant, LoginError, OAuthSettings};
use capstan_model::Secret;
use serde_json::{Value, json};

use crate::flow::granting;
use crate::stage::{
    Answer, Page, Peer, Seen, Stage, Visitor, call, json_answer, log_in, metadata, unauthorized,
};

/// Metadata of the authorization server with other members.
fn with(origin: &str, seen: &Seen, changes: &Value) -> Option<Answer> {
    let (status, headers, body) = granting(origin, seen)?;
    if seen.path != "/.well-known/oauth-authorization-server/as" {
        return Some((status, headers, body));
    }
    let mut document: Value = serde_json::from_str(&body).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        document.as_object_mut().unwrap().insert(key.clone(), value.clone());
    }
    Some(json_answer(200, &document))
}

async fn refused(changes: Value) -> LoginError {
    let stage = Stage::new(move |origin, seen| with(origin, seen, &changes)).await;
    let error = log_in(&stage.login(), &Visitor::willing()).await.unwrap_err();
    assert!(stage.peer.seen("/token").is_empty(), "nothing was exchanged: {error}");
    error
}

/// Attack oauth-prm-ssrf.
#[tokio::test]
async fn a_challenge_cannot_send_us_into_a_private_network() {
    for target in [
        "http://169.254.169.254/",
        "https://169.254.169.254/latest",
        "https://10.0.0.1/x",
        "file:///etc/passwd",
    ] {
        let stage = Stage::new(move |origin, seen| match seen.path.as_str() {
            "/mcp" => {
                let challenge = format!("Bearer resource_metadata=\"{target}\"");
                Some((401, vec![("www-authenticate", challenge)], String::new()))
            }
            _ => granting(origin, seen),
        })
        .await;
        let login = stage.login();
        assert_eq!(call(&stage.client(&login)).await.unwrap().status, 401);
        let error = log_in(&login, &Visitor::willing()).await.unwrap_err();
        assert!(matches!(error, LoginError::Address { .. }), "{target}: {error}");
    }
}

/// Attack oauth-iss-error-mismatch.
#[tokio::test]
async fn an_error_of_another_issuer_is_not_shown() {
    let stage = Stage::new(granting).await;
    let person = Visitor::new(|page| {
        vec![page.answer(
            "error=access_denied&error_description=call%20555-evil&iss=https%3A%2F%2Fevil.example",
        )]
    });
    let error = log_in(&stage.login(), &person).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, LoginError::Untrusted(_)) && !told.contains("555"), "{told}");
    let pages = person.pages(1).await;
    assert!(pages.iter().all(|page| !page.contains("555")), "{pages:?}");
}

#[tokio::test]
async fn an_error_of_the_right_issuer_is_shown_in_one_clean_line() {
    let stage = Stage::new(granting).await;
    let origin = stage.peer.origin.clone();
    let person = Visitor::new(move |page| {
        let issuer = format!("{origin}/as").replace(':', "%3A").replace('/', "%2F");
        vec![page.answer(&format!(
            "error=access_denied&error_description=no%1b%5B2J%0Amore&iss={issuer}"
        ))]
    });
    let told = log_in(&stage.login(), &person).await.unwrap_err().to_string();
    assert!(
        told.contains("access_denied") && !told.contains('\u{1b}') && !told.contains("more"),
        "{told}"
    );
}

/// Attack oauth-state-wrong.
#[tokio::test]
async fn a_callback_with_another_state_is_ignored_and_the_right_one_still_works() {
    let stage = Stage::new(granting).await;
    let person = Visitor::new(|page: &Page| {
        let known = page.of("state");
        vec![
            page.get("code=evil&state=other"),
            page.get("code=evil"),
            page.get(&format!("code=evil&state={known}&state={known}")),
            page.get(&format!("code=evil&code=c0de&state={known}")),
            page.answer("code=c0de"),
        ]
    });
    log_in(&stage.login(), &person).await.unwrap();
    let tokens = stage.peer.seen("/token");
    assert_eq!((tokens.len(), tokens[0].field("code").as_deref()), (1, Some("c0de")));
    let pages = person.pages(5).await;
    assert!(pages.iter().take(4).all(|page| page.starts_with("HTTP/1.1 400")), "{pages:?}");
}

/// Attack oauth-callback-host.
#[tokio::test]
async fn a_callback_for_another_host_path_or_method_is_refused() {
    let stage = Stage::new(granting).await;
    let person = Visitor::new(|page: &Page| {
        let (right, host) = (page.answer("code=evil"), format!("host: {}", page.callback));
        vec![
            right.replace(&host, "host: evil.test"),
            right.replace(&host, &format!("host: evil.test:{}", page.callback)),
            right.replace(&host, &format!("{host}\r\nhost: evil.test")),
            right.replace("GET /callback", "GET /other"),
            right.replace("GET", "POST"),
            page.answer("code=c0de"),
        ]
    });
    log_in(&stage.login(), &person).await.unwrap();
    assert_eq!(stage.peer.seen("/token")[0].field("code").as_deref(), Some("c0de"));
    let pages = person.pages(6).await;
    let statuses: Vec<&str> = pages.iter().map(|page| page.get(9..12).unwrap()).collect();
    assert_eq!(statuses, ["403", "403", "403", "404", "405", "200"]);
}

/// Attack oauth-token-endpoint-redirect.
#[tokio::test]
async fn a_token_endpoint_that_redirects_gets_no_second_request() {
    let other = Peer::new(|_, _| Some((200, Vec::new(), "{}".to_owned()))).await;
    let target = format!("{}/token", other.origin);
    let stage = Stage::new(move |origin, seen| match seen.path.as_str() {
        "/token" => Some((307, vec![("location", target.clone())], String::new())),
        _ => granting(origin, seen),
    })
    .await;
    let error = log_in(&stage.login(), &Visitor::willing()).await.unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    assert!(other.seen("/").is_empty(), "no credential is sent on");
    assert_eq!(stage.peer.seen("/token").len(), 1);
}

/// Attack oauth-token-endpoint-http.
#[tokio::test]
async fn endpoints_that_are_not_encrypted_or_not_public_are_refused() {
    for (key, url) in [
        ("token_endpoint", "http://auth.example.com/token"),
        ("authorization_endpoint", "http://auth.example.com/authorize"),
        ("registration_endpoint", "http://auth.example.com/register"),
        ("token_endpoint", "javascript:alert(1)"),
        ("authorization_endpoint", "file:///bin/sh"),
    ] {
        let error = refused(json!({ key: url })).await;
        assert!(matches!(error, LoginError::Address { .. }), "{key} {url}: {error}");
    }
    for url in ["https://169.254.169.254/token", "https://10.1.2.3/token"] {
        let stage =
            Stage::new(move |origin, seen| with(origin, seen, &json!({ "token_endpoint": url })))
                .await;
        let error = log_in(&stage.login(), &Visitor::willing()).await.unwrap_err();
        assert!(matches!(error, LoginError::Address { .. }), "{url}: {error}");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_or_without_pkce_is_refused() {
    for changes in [
        json!({ "issuer": "https://evil.example" }),
        json!({ "issuer": "http://127.0.0.1/as/" }),
        json!({ "code_challenge_methods_supported": ["plain"] }),
        json!({ "code_challenge_methods_supported": null }),
    ] {
        let error = refused(changes.clone()).await;
        assert!(matches!(error, LoginError::Untrusted(_)), "{changes}: {error}");
    }
}

#[tokio::test]
async fn an_issuer_that_promises_to_name_itself_must_do_so() {
    let promise = || json!({ "authorization_response_iss_parameter_supported": true });
    let error = refused(promise()).await;
    assert!(matches!(error, LoginError::Untrusted(_)), "{error}");
    let stage = Stage::new(move |origin, seen| with(origin, seen, &promise())).await;
    let origin = stage.peer.origin.clone();
    let person = Visitor::new(move |page| vec![page.answer(&format!("code=c0de&iss={origin}/as"))]);
    log_in(&stage.login(), &person).await.unwrap();
}

/// Attack oauth-creds-bound-issuer.
#[tokio::test]
async fn a_client_and_tokens_of_one_issuer_never_reach_another() {
    let second = Peer::new(|origin, seen| {
        let body = match seen.path.as_str() {
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"],
            }),
            "/register" => json!({ "client_id": "client-of-second" }),
            "/token" => json!({ "access_token": "t0ken-1", "token_type": "bearer" }),
            _ => return None,
        };
        Some(json_answer(200, &body))
    })
    .await;
    let moved = Arc::new(AtomicUsize::new(0));
    let (has_moved, target) = (Arc::clone(&moved), second.origin.clone());
    let stage = Stage::new(move |origin, seen| {
        if seen.path.starts_with("/.well-known/oauth-protected")
            && has_moved.load(Ordering::SeqCst) == 1
        {
            let body =
                json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [target] });
            return Some(json_answer(200, &body));
        }
        granting(origin, seen)
    })
    .await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    moved.store(1, Ordering::SeqCst);
    let done = log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    assert_eq!(done.issuer.as_deref(), Some(second.origin.as_str()));
    let sent = second.seen("/");
    assert!(sent.iter().any(|seen| seen.path == "/register"), "it registers again");
    for seen in sent {
        let whole = format!("{} {} {}", seen.path, seen.headers, seen.body);
        assert!(!whole.contains("client-1") && !whole.contains("refr3sh-1"), "{whole}");
    }
    assert_eq!(stage.vault.values(VaultKind::Tokens).len(), 1, "the tokens of the first are gone");
}

/// Attack oauth-huge-token-response.
#[tokio::test]
async fn a_token_answer_without_end_is_cut() {
    let stage = Stage::new(|origin, seen| match seen.path.as_str() {
        "/token" => {
            Some((200, Vec::new(), format!("{{\"access_token\":\"{}", "x".repeat(8 << 20))))
        }
        _ => granting(origin, seen),
    })
    .await;
    let error = log_in(&stage.login(), &Visitor::willing()).await.unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    assert!(stage.vault.values(VaultKind::Tokens).is_empty());
}

/// A server that wants more scopes, whatever it gets.
fn insatiable(origin: &str, seen: &Seen) -> Option<Answer> {
    match seen.path.as_str() {
        "/mcp" if seen.header("authorization").is_some() => {
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"".to_owned();
            Some((403, vec![("www-authenticate", challenge)], String::new()))
        }
        "/mcp" => Some(unauthorized()),
        "/token" => Some(json_answer(200, &json!({ "access_token": "t", "scope": "read" }))),
        _ => metadata(origin, seen),
    }
}

/// Attack oauth-scope-step-loop.
#[tokio::test]
async fn a_server_that_always_wants_more_scopes_is_given_up() {
    let stage = Stage::new(insatiable).await;
    log_in(&stage.login(), &Visitor::willing()).await.unwrap();
    let mut logins = 0;
    while let Err(needs_login) = call(&stage.client(&stage.login())).await {
        assert!(needs_login.contains("`admin`"), "{needs_login}");
        let person = Visitor::new(|page| {
            assert_eq!(page.of("scope"), "read admin", "the union");
            vec![page.answer("code=c0de")]
        });
        log_in(&stage.login(), &person).await.unwrap();
        logins += 1;
        assert!(logins <= 3, "no end");
    }
    assert_eq!(logins, 3);

    let stage = Stage::new(insatiable).await;
    let oauth = OAuthSettings {
        grant: Grant::ClientCredentials,
        client_id: Some("c".to_owned()),
        client_secret: Some(Secret::new("s3cret".to_owned())),
        ..OAuthSettings::default()
    };
    let client = stage.client(&stage.login_with(oauth));
    assert_eq!(call(&client).await.unwrap().status, 403);
    assert!(stage.peer.seen("/mcp").len() <= 3 && stage.peer.seen("/token").len() <= 3);
}

/// Attack oauth-token-at-rest: what can be printed has no secret.
#[tokio::test]
async fn nothing_that_can_be_printed_has_a_secret() {
    let stage = Stage::new(|origin, seen| match seen.path.as_str() {
        "/token" if seen.field("code").as_deref() == Some("b4d") => Some(json_answer(
            400,
            &json!({ "error": "t0ken-1 refr3sh-1 s3cret", "error_description": "x" }),
        )),
        _ => granting(origin, seen),
    })
    .await;
    let login = stage.login();
    let person = Visitor::willing();
    let done = log_in(&login, &person).await.unwrap();
    let bad = Visitor::new(|page| vec![page.answer("code=b4d")]);
    let error = log_in(&login, &bad).await.unwrap_err();
    let shown = person.shown().join(" ");
    let printed = format!("{done:?} {error:?} {error} {shown} {:?}", login.status().await);
    for secret in ["t0ken-1", "refr3sh-1", "s3cret", "c0de", "b4d"] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
    let verifier = stage.peer.seen("/token")[0].field("code_verifier").unwrap();
    assert!(!printed.contains(&verifier));
}
