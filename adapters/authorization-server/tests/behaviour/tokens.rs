//! Codes, access tokens and refresh tokens.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_authorization_server::{Endpoint, Refused, Settings, Signing};
use capstan_hub::ports::{ClientStore as _, Clock as _, GrantStore as _, UserStore as _};
use capstan_model::Secret;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::advance;

use crate::site::{
    CALLBACK, ISSUER, Site, body, changed, error, form_request, get, header, param, query,
    redemption, settings, submit,
};

/// The claims of a token, unverified.
fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

fn word<'a>(tokens: &'a Value, name: &str) -> &'a str {
    tokens[name].as_str().unwrap()
}

#[tokio::test]
async fn a_code_becomes_an_access_token_for_the_gateway() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let code = site.code(&client).await;
    let answer = site.redeem(&client, &code).await;
    assert_eq!(header(&answer, "cache-control"), "no-store");
    assert_eq!(header(&answer, "access-control-allow-origin"), "*");
    let tokens = body(&answer);
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 3600);
    assert_eq!(tokens["scope"], "read");
    let token = word(&tokens, "access_token");
    let header = jsonwebtoken::decode_header(token).unwrap();
    assert_eq!(header.typ.as_deref(), Some("at+jwt"));
    let claims = claims(token);
    assert_eq!(claims["iss"], ISSUER);
    assert_eq!(claims["aud"], "https://mcp.example.com/mcp");
    assert_eq!(claims["sub"], "ann");
    assert_eq!(claims["groups"], json!(["dev", "ops", "via-oauth"]));
    let identity = site.server.tokens().check(token).await.unwrap();
    assert_eq!((identity.subject.as_str(), identity.client), ("ann", client));
    assert_eq!(identity.roles, ["dev", "ops", "via-oauth"]);
}

#[tokio::test]
async fn of_twenty_that_redeem_one_code_one_succeeds() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let code = site.code(&client).await;
    let answers = join_all((0..20).map(|_| site.redeem(&client, &code))).await;
    let successes: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(successes.len(), 1);
    let tokens = body(successes[0]);
    assert!(site.server.tokens().check(word(&tokens, "access_token")).await.is_ok());
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!((refused.status.as_u16(), error(refused)), (400, "invalid_grant".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_that_is_used_twice_takes_its_tokens_with_it() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let code = site.code(&client).await;
    let tokens = body(&site.redeem(&client, &code).await);
    // A thief without the verifier achieves nothing, not even a logout.
    let mut wrong = redemption(&client, &code);
    wrong[4].1 = "xBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_eq!(site.post(Endpoint::Token, &wrong).await.status, 400);
    let token = word(&tokens, "access_token");
    assert!(site.server.tokens().check(token).await.is_ok());
    // Nor does a client that sends its request again at once.
    assert_eq!(error(&site.redeem(&client, &code).await), "invalid_grant");
    assert!(site.server.tokens().check(token).await.is_ok());
    advance(Duration::from_secs(11)).await;
    assert_eq!(error(&site.redeem(&client, &code).await), "invalid_grant");
    assert_eq!(site.server.tokens().check(token).await, Err(Refused::Invalid));
    let refreshed = site.refresh(&client, word(&tokens, "refresh_token")).await;
    assert_eq!(error(&refreshed), "invalid_grant");
    assert!(site.events.0.lock().unwrap().iter().any(|event| event.contains("Reused")));
}

#[tokio::test]
async fn a_code_is_bound_to_its_client_redirect_address_and_verifier() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let other = site.register(CALLBACK).await;
    for (name, value) in [
        ("client_id", other.as_str()),
        ("redirect_uri", "https://claude.ai/api/mcp/other"),
        ("code_verifier", "xBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        ("code_verifier", "short"),
        ("code", "madeup"),
    ] {
        let code = site.code(&client).await;
        let mut form = redemption(&client, &code);
        form.iter_mut().find(|(key, _)| *key == name).unwrap().1 = value;
        let answer = site.post(Endpoint::Token, &form).await;
        assert_eq!((answer.status.as_u16(), error(&answer)), (400, "invalid_grant".to_owned()));
        // The failed attempt used the code up.
        assert_eq!(
            site.redeem(&client, &code).await.status,
            if name == "code" { 200 } else { 400 }
        );
    }
    for name in ["client_id", "redirect_uri", "code_verifier", "code", "grant_type"] {
        let code = site.code(&client).await;
        let form: Vec<_> =
            redemption(&client, &code).into_iter().filter(|(key, _)| *key != name).collect();
        assert_eq!(error(&site.post(Endpoint::Token, &form).await), "invalid_request", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_is_valid_for_a_minute() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let (early, late) = (site.code(&client).await, site.code(&client).await);
    advance(Duration::from_secs(59)).await;
    assert_eq!(site.redeem(&client, &early).await.status, 200);
    advance(Duration::from_secs(2)).await;
    assert_eq!(error(&site.redeem(&client, &late).await), "invalid_grant");
}

#[tokio::test]
async fn a_token_is_for_this_gateway_whatever_resource_of_it_was_asked_for() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let asked = changed(&client, "resource", Some("https://mcp.example.com/servers/files/mcp"));
    let sent = site.answer(&asked, &[("decision", "allow")]).await;
    let code = param(&sent, "code").unwrap();
    let tokens = body(&site.redeem(&client, &code).await);
    assert_eq!(claims(word(&tokens, "access_token"))["aud"], "https://mcp.example.com/mcp");
    // The token endpoint does not change it.
    let refresh = [
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", word(&tokens, "refresh_token")),
        ("resource", "https://other.test/mcp"),
    ];
    assert_eq!(error(&site.post(Endpoint::Token, &refresh).await), "invalid_target");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_token_is_replaced_and_its_reuse_revokes_the_family() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let first = word(&tokens, "refresh_token");
    let second = body(&site.refresh(&client, first).await);
    let third = body(&site.refresh(&client, word(&second, "refresh_token")).await);
    advance(Duration::from_secs(11)).await;
    let reused = site.refresh(&client, first).await;
    assert_eq!((reused.status.as_u16(), error(&reused)), (400, "invalid_grant".to_owned()));
    let newest = word(&third, "refresh_token");
    assert_eq!(error(&site.refresh(&client, newest).await), "invalid_grant");
    let access = site.server.tokens().check(word(&third, "access_token")).await;
    assert_eq!(access, Err(Refused::Invalid));
    assert!(site.events.0.lock().unwrap().iter().any(|event| event.contains("Reused")));
}

#[tokio::test]
async fn two_that_refresh_at_once_do_not_log_each_other_out() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let token = word(&tokens, "refresh_token");
    let answers = join_all([site.refresh(&client, token), site.refresh(&client, token)]).await;
    let successes: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(successes.len(), 1);
    let next = body(successes[0]);
    assert_eq!(site.refresh(&client, word(&next, "refresh_token")).await.status, 200);
}

#[tokio::test]
async fn a_refresh_is_bound_to_its_client_and_cannot_widen_scopes() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let other = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let token = word(&tokens, "refresh_token");
    assert_eq!(error(&site.refresh(&other, token).await), "invalid_grant");
    assert_eq!(error(&site.refresh(&client, "madeup").await), "invalid_grant");
    let with = |scope| {
        [
            ("grant_type", "refresh_token"),
            ("client_id", client.as_str()),
            ("refresh_token", token),
            ("scope", scope),
        ]
    };
    assert_eq!(error(&site.post(Endpoint::Token, &with("read write")).await), "invalid_scope");
    assert_eq!(site.post(Endpoint::Token, &with("read")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn tokens_expire_as_configured() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let access = word(&tokens, "access_token");
    advance(Duration::from_secs(3599)).await;
    assert!(site.server.tokens().check(access).await.is_ok());
    advance(Duration::from_secs(2)).await;
    assert_eq!(site.server.tokens().check(access).await, Err(Refused::Invalid));
    advance(Duration::from_secs(2_592_000 - 3601)).await;
    site.server.clean_up().await.unwrap();
    let late = site.refresh(&client, word(&tokens, "refresh_token")).await;
    assert_eq!(error(&late), "invalid_grant");
}

#[tokio::test]
async fn tokens_of_others_are_refused() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let good = word(&tokens, "access_token");
    let kid = jsonwebtoken::decode_header(good).unwrap().kid.unwrap();
    let keys = body(&site.send(Endpoint::Keys, get("")).await);
    let public = keys["keys"][0]["x"].as_str().unwrap();
    // The public key as a secret, and other tricks with the algorithm.
    let forge = |typ: &str, alg, key: &[u8]| {
        let mut header = jsonwebtoken::Header::new(alg);
        (header.typ, header.kid) = (Some(typ.to_owned()), Some(kid.clone()));
        let key = jsonwebtoken::EncodingKey::from_secret(key);
        jsonwebtoken::encode(&header, &claims(good), &key).unwrap()
    };
    let parts: Vec<&str> = good.split('.').collect();
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0";
    for bad in [
        forge("at+jwt", jsonwebtoken::Algorithm::HS256, public.as_bytes()),
        forge("at+jwt", jsonwebtoken::Algorithm::HS256, b""),
        format!("{none}.{}.", parts[1]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{good}x"),
        good.replacen(parts[1], &parts[1].to_ascii_uppercase(), 1),
        "x".repeat(9000),
        String::new(),
    ] {
        assert_eq!(site.server.tokens().check(&bad).await, Err(Refused::Invalid), "{bad}");
    }
    // A token of another issuer with another key.
    let stranger = Site::new().await;
    assert_eq!(stranger.server.tokens().check(good).await, Err(Refused::Invalid));
}

#[tokio::test]
async fn another_kind_of_token_is_no_access_token() {
    let secret = "s".repeat(32);
    let hs256 = Settings { signing: Signing::Secret(Secret::new(secret.clone())), ..settings() };
    let site = Site::with(hs256, Arc::default()).await;
    let client = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let good = word(&tokens, "access_token");
    assert!(site.server.tokens().check(good).await.is_ok());
    assert_eq!(body(&site.send(Endpoint::Keys, get("")).await), json!({ "keys": [] }));
    let header = jsonwebtoken::decode_header(good).unwrap();
    let sign = |typ: Option<&str>, change: &dyn Fn(&mut Value)| {
        let mut header = header.clone();
        header.typ = typ.map(str::to_owned);
        let mut claims = claims(good);
        change(&mut claims);
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&header, &claims, &key).unwrap()
    };
    let now = site.clock.now().as_second();
    for (bad, case) in [
        (sign(Some("JWT"), &|_| {}), "an id token"),
        (sign(None, &|_| {}), "no type"),
        (sign(Some("at+jwt"), &|c| c["aud"] = "https://other.test/mcp".into()), "audience"),
        (sign(Some("at+jwt"), &|c| c["iss"] = "https://other.test".into()), "issuer"),
        (sign(Some("at+jwt"), &|c| c["exp"] = (now - 1).into()), "expired"),
        (sign(Some("at+jwt"), &|c| c["nbf"] = (now + 60).into()), "not yet"),
        (sign(Some("at+jwt"), &|c| drop(c.as_object_mut().unwrap().remove("exp"))), "no exp"),
        (sign(Some("at+jwt"), &|c| c["grant"] = "madeup".into()), "grant"),
    ] {
        assert_eq!(site.server.tokens().check(&bad).await, Err(Refused::Invalid), "{case}");
    }
}

#[tokio::test]
async fn a_revoked_token_is_gone_and_others_cannot_revoke_it() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let other = site.register(CALLBACK).await;
    let tokens = site.tokens(&client).await;
    let (access, refresh) = (word(&tokens, "access_token"), word(&tokens, "refresh_token"));
    for token in [access, refresh, "madeup"] {
        let form = [("token", token), ("client_id", other.as_str())];
        assert_eq!(site.post(Endpoint::Revoke, &form).await.status, 200);
    }
    assert!(site.server.tokens().check(access).await.is_ok());
    let form = [("token", refresh), ("client_id", client.as_str())];
    assert_eq!(site.post(Endpoint::Revoke, &form).await.status, 200);
    assert_eq!(site.server.tokens().check(access).await, Err(Refused::Invalid));
    assert_eq!(error(&site.refresh(&client, refresh).await), "invalid_grant");
}

#[tokio::test]
async fn introspection_describes_own_tokens_only() {
    let site = Site::new().await;
    let (client, other) = (site.register(CALLBACK).await, site.register(CALLBACK).await);
    let (own, foreign) = (site.tokens(&client).await, site.tokens(&other).await);
    let ask = async |with: &str, token: &str| {
        let mut request = form_request(&[("token", token)]);
        crate::site::set(&mut request, "authorization", &format!("Bearer {with}"));
        site.send(Endpoint::Introspect, request).await
    };
    let access = word(&own, "access_token");
    let described = body(&ask(access, access).await);
    assert_eq!((&described["active"], &described["sub"]), (&json!(true), &json!("ann")));
    let refresh = body(&ask(access, word(&own, "refresh_token")).await);
    assert_eq!(refresh["active"], true);
    for token in [word(&foreign, "access_token"), word(&foreign, "refresh_token"), "madeup"] {
        assert_eq!(body(&ask(access, token).await), json!({ "active": false }));
    }
    assert_eq!(ask("madeup", access).await.status, 401);
    let bare = site.post(Endpoint::Introspect, &[("token", access)]).await;
    assert_eq!(bare.status, 401);
}

#[tokio::test]
async fn parameters_of_the_token_endpoint_are_in_the_body_only() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let code = site.code(&client).await;
    let mut request = form_request(&redemption(&client, &code));
    request.query = "code_verifier=x".to_owned();
    assert_eq!(site.send(Endpoint::Token, request).await.status, 400);
    let mut json = form_request(&redemption(&client, &code));
    crate::site::set(&mut json, "content-type", "application/json");
    assert_eq!(site.send(Endpoint::Token, json).await.status, 400);
    assert_eq!(site.send(Endpoint::Token, get("")).await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn codes_cannot_be_guessed_quickly() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let code = site.code(&client).await;
    for _ in 0..60 {
        assert_eq!(site.redeem(&client, "madeup").await.status, 400);
    }
    let limited = site.redeem(&client, &code).await;
    assert_eq!((limited.status.as_u16(), header(&limited, "retry-after")), (429, "60"));
    advance(Duration::from_secs(61)).await;
    assert_eq!(site.redeem(&client, "madeup").await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn keys_are_replaced_and_old_tokens_stay_valid_until_they_expire() {
    let store = Arc::default();
    let mut settings = settings();
    settings.access_token_ttl = Duration::from_hours(2);
    let site = Site::with(settings.clone(), store).await;
    let client = site.register(CALLBACK).await;
    advance(Duration::from_hours(90 * 24 - 1)).await;
    site.server.clean_up().await.unwrap();
    let client = if site.store.with(|state| state.clients.contains_key(&client)) {
        client
    } else {
        site.register(CALLBACK).await
    };
    let old = site.tokens(&client).await;
    advance(Duration::from_mins(61)).await;
    site.server.clean_up().await.unwrap();
    let new = site.tokens(&client).await;
    let kid = |tokens: &Value| {
        jsonwebtoken::decode_header(word(tokens, "access_token")).unwrap().kid.unwrap()
    };
    assert_ne!(kid(&old), kid(&new));
    let check = async |tokens: &Value| {
        site.server.tokens().check(word(tokens, "access_token")).await.is_ok()
    };
    assert!(check(&old).await && check(&new).await);
    let keys = body(&site.send(Endpoint::Keys, get("")).await);
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    assert!(!keys.to_string().contains("\"d\""), "no private key is published");
    advance(Duration::from_hours(3)).await;
    site.server.clean_up().await.unwrap();
    let keys = body(&site.send(Endpoint::Keys, get("")).await);
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn gateways_that_share_a_store_accept_each_others_tokens_and_forms() {
    let first =
        Site::with(Settings { signing: Signing::EdDsa, ..settings() }, Arc::default()).await;
    let eddsa = Settings { signing: Signing::EdDsa, ..settings() };
    let second = Site::with(eddsa, Arc::clone(&first.store)).await;
    let client = first.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let page = first.open(&asked).await;
    let form = submit(&page, &asked, &[("decision", "allow")]);
    let sent = second.send(Endpoint::Authorize, form).await;
    let code = param(&sent, "code").unwrap();
    let tokens = body(&first.redeem(&client, &code).await);
    let access = word(&tokens, "access_token");
    assert!(second.server.tokens().check(access).await.is_ok());
    assert_eq!(second.refresh(&client, word(&tokens, "refresh_token")).await.status, 200);
}

#[tokio::test]
async fn a_local_user_who_was_removed_gets_no_more_tokens() {
    let site = Site::with_users().await;
    let client = site.register(CALLBACK).await;
    let form = [("decision", "allow"), ("user", "ann"), ("password", "correct horse")];
    let sent = site.answer(&query(&client, CALLBACK), &form).await;
    let code = param(&sent, "code").unwrap();
    let tokens = body(&site.redeem(&client, &code).await);
    site.store.remove_user("ann").await.unwrap();
    let refreshed = site.refresh(&client, word(&tokens, "refresh_token")).await;
    assert_eq!(error(&refreshed), "invalid_grant");
    site.store.revoke_subject("ann").await.unwrap();
    let access = site.server.tokens().check(word(&tokens, "access_token")).await;
    assert_eq!(access, Err(Refused::Invalid));
}

#[tokio::test]
async fn refresh_tokens_of_another_program_are_imported_once() {
    let site = Site::new().await;
    let state = json!({
        "clients": { "mcp_old": {
            "client_id": "mcp_old", "client_name": "Claude", "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code"], "created_at_unix": 0,
        }},
        "refresh_tokens": {
            "good": { "token": "good", "client_id": "mcp_old", "subject": "ann",
                "roles": ["dev"], "expires_at_unix": 9_999_999 },
            "late": { "token": "late", "client_id": "mcp_old", "subject": "ann",
                "roles": [], "expires_at_unix": -1 },
            "lost": { "token": "lost", "client_id": "gone", "subject": "ann",
                "roles": [], "expires_at_unix": 9_999_999 },
        },
    });
    let text = state.to_string();
    let again = async || site.server.import(&text).await.unwrap();
    let first = again().await;
    assert_eq!((first.clients, first.tokens), (1, 1));
    let refreshed = site.refresh("mcp_old", "good").await;
    assert_eq!(refreshed.status, 200);
    let second = again().await;
    assert_eq!((second.clients, second.tokens), (0, 0));
    assert_eq!(error(&site.refresh("mcp_old", "good").await), "invalid_grant");
    for bad in ["late", "lost"] {
        assert_eq!(error(&site.refresh("mcp_old", bad).await), "invalid_grant", "{bad}");
    }
    site.store.remove_client("mcp_old").await.unwrap();
    assert_eq!(again().await.clients, 0, "what was revoked does not come back");
    assert!(site.server.import("7").await.is_err());
}
