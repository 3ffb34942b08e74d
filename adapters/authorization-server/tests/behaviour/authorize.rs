//! Requests at the authorization endpoint.

use capstan_authorization_server::Endpoint;
use capstan_hub::ports::ClientStore as _;

use crate::site::{
    CALLBACK, ISSUER, Site, changed, form_request, get, header, param, query, set, submit, text,
};

/// A page with status 400 that sends the browser nowhere.
#[track_caller]
fn assert_shown(response: &capstan_authorization_server::Response, case: &str) {
    assert_eq!(response.status, 400, "{case}: {}", text(response));
    assert_eq!(header(response, "location"), "", "{case}");
    assert!(header(response, "content-type").starts_with("text/html"), "{case}");
}

#[tokio::test]
async fn only_the_registered_redirect_address_gets_an_answer() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    assert_eq!(site.open(&query(&client, CALLBACK)).await.status, 200);
    for other in [
        format!("{CALLBACK}/x"),
        format!("{CALLBACK}/"),
        format!("{CALLBACK}#frag"),
        format!("{CALLBACK}?x=1"),
        CALLBACK.replace("auth", "AUTH"),
        CALLBACK.replace("/mcp/", "/%6dcp/"),
        CALLBACK.replace("/mcp/", "/./mcp/"),
        "https://evil.test/cb".to_owned(),
        "https://chat.openai.com/aip/x/oauth/callback".to_owned(),
        String::new(),
    ] {
        assert_shown(&site.open(&query(&client, &other)).await, &other);
    }
    assert_shown(&site.open(&changed(&client, "redirect_uri", None)).await, "missing");
}

#[tokio::test]
async fn a_program_on_the_users_machine_may_listen_on_another_port() {
    let site = Site::new().await;
    let client = site.register("http://127.0.0.1:33418/cb").await;
    let page = site.open(&query(&client, "http://127.0.0.1:50000/cb")).await;
    assert_eq!(page.status, 200);
    assert!(text(&page).contains("127.0.0.1:50000"), "the page shows host and port");
    for other in [
        "http://127.0.0.1:33418.evil.test/cb",
        "http://127.0.0.1:33418@evil.test/cb",
        "http://localhost:33418/cb",
        "http://127.0.0.1:50000/other",
    ] {
        assert_shown(&site.open(&query(&client, other)).await, other);
    }
}

#[tokio::test]
async fn a_pattern_that_the_operator_removed_lets_nobody_in_any_more() {
    let site = Site::new().await;
    let client = site.register("http://localhost/cb").await;
    let mut settings = crate::site::settings();
    settings.redirect_patterns = vec![CALLBACK.to_owned()];
    let later = Site::with(settings, site.store).await;
    assert_shown(&later.open(&query(&client, "http://localhost/cb")).await, "removed");
}

#[tokio::test]
async fn a_repeated_parameter_is_refused() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let twice = format!("{}&redirect_uri=https%3A%2F%2Fevil.test", query(&client, CALLBACK));
    assert_shown(&site.open(&twice).await, "redirect_uri");
    let twice = format!("{}&client_id=other", query(&client, CALLBACK));
    assert_shown(&site.open(&twice).await, "client_id");
}

#[tokio::test]
async fn pkce_with_s256_is_required() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    for (name, value) in [
        ("code_challenge", None),
        ("code_challenge", Some("short")),
        ("code_challenge_method", None),
        ("code_challenge_method", Some("plain")),
        ("code_challenge_method", Some("s256")),
    ] {
        let answer = site.open(&changed(&client, name, value)).await;
        assert_shown(&answer, name);
        assert!(text(&answer).contains("invalid_request"), "{name}");
    }
}

#[tokio::test]
async fn access_to_other_resources_is_not_granted() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    for other in ["https://other.test/mcp", "https://mcp.example.com.evil.test/mcp", "/mcp"] {
        let answer = site.open(&changed(&client, "resource", Some(other))).await;
        assert_shown(&answer, other);
        assert!(text(&answer).contains("invalid_target"), "{other}");
    }
    let own = changed(&client, "resource", Some("https://mcp.example.com/mcp"));
    assert_eq!(site.open(&own).await.status, 200);
}

#[tokio::test]
async fn unknown_and_expired_clients_get_a_page() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    assert_shown(&site.open(&query("mcp_madeup", CALLBACK)).await, "unknown");
    assert_shown(&site.open(&changed(&client, "client_id", None)).await, "missing");
    assert!(site.store.remove_client(&client).await.unwrap());
    assert_shown(&site.open(&query(&client, CALLBACK)).await, "removed");
}

#[tokio::test]
async fn answers_to_the_client_name_the_issuer_and_the_state() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let granted = site.answer(&asked, &[("decision", "allow")]).await;
    let denied = site.answer(&asked, &[("decision", "deny")]).await;
    let kind = site.open(&changed(&client, "response_type", Some("token"))).await;
    let silent = site.open(&changed(&client, "prompt", Some("none"))).await;
    for (answer, expected) in [
        (&granted, None),
        (&denied, Some("access_denied")),
        (&kind, Some("unsupported_response_type")),
        (&silent, Some("interaction_required")),
    ] {
        assert_eq!(answer.status, 303);
        assert!(header(answer, "location").starts_with(&format!("{CALLBACK}?")));
        assert_eq!(param(answer, "iss").as_deref(), Some(ISSUER));
        assert_eq!(param(answer, "state").as_deref(), Some("st&te"));
        assert_eq!(param(answer, "error").as_deref(), expected);
        assert_eq!(param(answer, "code").is_some(), expected.is_none());
    }
}

#[tokio::test]
async fn only_the_trusted_proxy_names_users() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let mut elsewhere = get(&asked);
    elsewhere.peer = "10.2.0.1".parse().unwrap();
    assert_eq!(site.send(Endpoint::Authorize, elsewhere).await.status, 403);
    for name in ["", "  "] {
        let mut nobody = get(&asked);
        set(&mut nobody, "x-forwarded-user", name);
        assert_eq!(site.send(Endpoint::Authorize, nobody).await.status, 401);
    }
    let mut two = get(&asked);
    two.headers.append("x-forwarded-user", "root".parse().unwrap());
    assert_eq!(site.send(Endpoint::Authorize, two).await.status, 401);
    // The form is not good for another user than the one who saw the page.
    let page = site.open(&asked).await;
    let mut other = submit(&page, &asked, &[("decision", "allow")]);
    set(&mut other, "x-forwarded-user", "bob");
    assert_eq!(site.send(Endpoint::Authorize, other).await.status, 400);
}

#[tokio::test]
async fn other_methods_and_missing_forms_are_refused() {
    let site = Site::new().await;
    let client = site.register(CALLBACK).await;
    let asked = query(&client, CALLBACK);
    let mut put = get(&asked);
    put.method = capstan_http::Method::PUT;
    assert_eq!(site.send(Endpoint::Authorize, put).await.status, 405);
    let mut empty = form_request(&[]);
    empty.query = asked;
    assert_eq!(site.send(Endpoint::Authorize, empty).await.status, 400);
}
