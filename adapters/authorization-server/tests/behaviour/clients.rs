//! Metadata, registration, and clients with a metadata document.

use std::time::Duration;

use capstan_authorization_server::Endpoint;
use serde_json::json;
use tokio::time::advance;

use crate::site::{CALLBACK, ISSUER, Site, body, error, get, header, query, set, text};

const DOCUMENT: &str = "https://app.example/client.json";

#[tokio::test]
async fn the_metadata_comes_from_the_configuration_whatever_the_host() {
    let site = Site::new().await;
    let mut request = get("");
    set(&mut request, "host", "evil.test");
    set(&mut request, "x-forwarded-host", "evil.test");
    let answer = site.send(Endpoint::Metadata, request).await;
    assert_eq!(header(&answer, "content-type"), "application/json");
    assert_eq!(header(&answer, "access-control-allow-origin"), "*");
    let metadata = body(&answer);
    assert_eq!(metadata["issuer"], ISSUER);
    assert!(!metadata.to_string().contains("evil.test"));
    assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(metadata["authorization_response_iss_parameter_supported"], true);
    assert_eq!(metadata["client_id_metadata_document_supported"], true);
    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint", "jwks_uri"] {
        assert!(metadata[name].as_str().unwrap().starts_with(ISSUER), "{name}");
    }
}

/// C36: Claude and `ChatGPT` register, others do not.
#[tokio::test]
async fn redirect_patterns_gate_registration() {
    let site = Site::new().await;
    for good in [
        CALLBACK,
        "https://chat.openai.com/aip/g-1/oauth/callback",
        "http://127.0.0.1:1234/cb",
        "http://localhost:1234/cb",
    ] {
        let answer = site.try_register(&json!({ "redirect_uris": [good] })).await;
        assert_eq!(answer.status, 201, "{good}: {}", text(&answer));
        let client = body(&answer);
        assert_eq!(client["token_endpoint_auth_method"], "none");
        assert!(client.get("client_secret").is_none());
    }
    for bad in [
        json!(["https://evil.test/cb"]),
        json!(["http://evil.test/cb"]),
        json!([CALLBACK, "https://evil.test/cb"]),
        json!([format!("{CALLBACK}#frag")]),
        json!(["https://chat.openai.com/aip/a/b/oauth/callback"]),
        json!(["javascript:alert(1)"]),
        json!([]),
        json!(vec![CALLBACK; 17]),
    ] {
        let answer = site.try_register(&json!({ "redirect_uris": bad })).await;
        assert_eq!((answer.status.as_u16(), error(&answer)), (400, "invalid_redirect_uri".into()));
    }
    assert_eq!(site.try_register(&json!({})).await.status, 400);
}

#[tokio::test]
async fn a_registration_offers_only_what_there_is() {
    let site = Site::new().await;
    let with = |name: &str, value| json!({ "redirect_uris": [CALLBACK], name: value });
    let editor = json!(["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"]);
    let answer = body(&site.try_register(&with("grant_types", editor)).await);
    assert_eq!(answer["grant_types"], json!(["authorization_code"]));
    let post = json!("client_secret_post");
    let answer = body(&site.try_register(&with("token_endpoint_auth_method", post)).await);
    assert_eq!(answer["token_endpoint_auth_method"], "none");
    for (name, value) in [
        ("grant_types", json!(["client_credentials"])),
        ("response_types", json!(["token"])),
        ("redirect_uris", json!("https://claude.ai")),
        ("client_name", json!(7)),
    ] {
        let answer = site.try_register(&with(name, value)).await;
        assert_eq!(error(&answer), "invalid_client_metadata", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn registrations_are_limited_in_rate_and_number_and_are_forgotten() {
    let site = Site::new().await;
    for _ in 0..60 {
        site.register(CALLBACK).await;
    }
    let limited = site.try_register(&json!({ "redirect_uris": [CALLBACK] })).await;
    assert_eq!(limited.status, 429);
    while site.store.with(|state| state.clients.len()) < 1000 {
        advance(Duration::from_hours(1)).await;
        for _ in 0..60 {
            drop(site.try_register(&json!({ "redirect_uris": [CALLBACK] })).await);
        }
    }
    advance(Duration::from_hours(1)).await;
    let full = site.try_register(&json!({ "redirect_uris": [CALLBACK] })).await;
    assert_eq!(full.status, 503);
    advance(Duration::from_hours(8 * 24)).await;
    site.server.clean_up().await.unwrap();
    assert_eq!(site.store.with(|state| state.clients.len()), 0);
    site.register(CALLBACK).await;
}

#[tokio::test]
async fn a_client_can_be_known_by_its_document() {
    let site = Site::new().await;
    let document = json!({
        "client_id": DOCUMENT, "client_name": "App",
        "redirect_uris": [CALLBACK, "https://evil.test/cb", "http://localhost/callback"],
    });
    site.documents.0.lock().unwrap().push((DOCUMENT.to_owned(), document.to_string()));
    let page = site.open(&query(DOCUMENT, CALLBACK)).await;
    assert_eq!(page.status, 200, "{}", text(&page));
    assert!(text(&page).contains("app.example"), "the page shows who publishes the app");
    assert!(site.store.with(|state| state.clients.is_empty()), "nothing is saved before a yes");
    let local = site.open(&query(DOCUMENT, "http://localhost:4567/callback")).await;
    assert_eq!(local.status, 200);
    for other in ["https://claude.ai/other", "https://evil.test/cb"] {
        assert_eq!(site.open(&query(DOCUMENT, other)).await.status, 400, "{other}");
    }
    let tokens = site.tokens(DOCUMENT).await;
    let access = tokens["access_token"].as_str().unwrap();
    assert!(site.server.tokens().check(access).await.is_ok());
}

#[tokio::test]
async fn a_document_that_cannot_be_used_is_an_unknown_client() {
    let site = Site::new().await;
    let foreign = json!({ "client_id": "https://other.test/c", "redirect_uris": [CALLBACK] });
    site.documents.0.lock().unwrap().push((DOCUMENT.to_owned(), foreign.to_string()));
    for id in [
        DOCUMENT,
        "https://app.example/missing.json",
        "http://app.example/client.json",
        "https://app.example/client.json?x",
        "https://app.example",
        "file:///etc/passwd",
    ] {
        let answer = site.open(&query(id, CALLBACK)).await;
        assert_eq!(answer.status, 400, "{id}");
        assert!(text(&answer).contains("invalid_client"), "{id}");
    }
}

#[tokio::test]
async fn preflight_requests_of_clients_in_a_browser_are_answered() {
    let site = Site::new().await;
    for (endpoint, expected) in
        [(Endpoint::Token, 204), (Endpoint::Register, 204), (Endpoint::Authorize, 405)]
    {
        let mut request = get("");
        request.method = capstan_http::Method::OPTIONS;
        let answer = site.send(endpoint, request).await;
        assert_eq!(answer.status, expected, "{endpoint:?}");
        let is_open = header(&answer, "access-control-allow-origin") == "*";
        assert_eq!(is_open, expected == 204);
        assert_eq!(header(&answer, "access-control-allow-credentials"), "");
    }
}
