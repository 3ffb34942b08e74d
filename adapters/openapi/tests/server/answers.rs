//! What comes back, and what does not.

use std::time::Duration;

use capstan_model::CallError;
use capstan_openapi::OpenApiSettings;
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::web::{Sent, reply};

fn as_it_is(_: &mut OpenApiSettings, _: &str) {}

async fn answered(text: String, tool: &str, arguments: Value) -> Result<Value, CallError> {
    let scene = Scene::with("harbour.yaml", move |_| text.clone(), as_it_is).await;
    scene.call(tool, arguments).await
}

fn ship() -> Value {
    json!({ "berth": "b", "ship": "s" })
}

#[tokio::test]
async fn what_comes_back_is_told_by_its_kind() {
    let object = r#"{"name": "Ann", "n": 1.50}"#;
    for (text, content, structure) in [
        (
            reply(200, "application/json; charset=utf-8", object),
            json!({ "type": "text", "text": object }),
            json!({ "name": "Ann", "n": 1.50 }),
        ),
        // The document promises an object.
        (
            reply(200, "application/problem+json", "[1]"),
            json!({ "type": "text", "text": "[1]" }),
            json!({}),
        ),
        (reply(200, "text/html", "<b>"), json!({ "type": "text", "text": "<b>" }), json!({})),
        (
            reply(204, "text/plain", ""),
            json!({ "type": "text", "text": "HTTP status 204" }),
            json!({}),
        ),
        (
            reply(200, "image/png", "hi"),
            json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" }),
            json!({}),
        ),
        (
            reply(200, "application/zip", "hi"),
            json!({ "type": "resource", "resource": { "uri": "openapi:harbour_getShip",
            "mimeType": "application/zip", "blob": "aGk=" } }),
            json!({}),
        ),
    ] {
        let told = answered(text, "harbour_getShip", ship()).await.unwrap();
        assert_eq!((&told["content"][0], &told["structuredContent"]), (&content, &structure));
        assert_eq!(told["isError"], json!(false));
    }
    let told = answered(reply(200, "text/plain", "x"), "setText", json!({ "body": "b" })).await;
    assert_eq!(told.unwrap().get("structuredContent"), None);
}

#[tokio::test]
async fn structured_content_keeps_every_digit() {
    let long = r#"{"n":1.00000000000000000001,"id":12345678901234567890123}"#;
    let scene =
        Scene::with("harbour.yaml", |_| reply(200, "application/json", long), as_it_is).await;
    let told = scene.call_text("harbour_getShip", &ship().to_string()).await.unwrap();
    assert!(told.as_str().contains(&format!(r#""structuredContent":{long}"#)), "{told}");
}

#[tokio::test]
async fn a_refusal_is_an_answer_with_its_status_and_words() {
    for status in [400, 401, 404, 429, 500, 503] {
        let text = reply(status, "application/json", r#"{"detail":"no hunter2hunter2"}"#);
        let told = answered(text, "harbour_getShip", ship()).await.unwrap();
        assert_eq!(told["isError"], json!(true));
        let words = format!("HTTP status {status}\n\n{{\"detail\":\"no ***\"}}");
        assert_eq!(told["content"][0]["text"], json!(words));
        assert_eq!(told.get("structuredContent"), None);
    }
}

#[tokio::test]
async fn our_own_secrets_are_masked_in_whatever_repeats_them() {
    let echo = |sent: &Sent| {
        let body = json!({ "key": sent.header("x-api-key"), "n": 1 }).to_string();
        reply(200, "application/json", &body)
    };
    let scene = Scene::with("harbour.yaml", echo, as_it_is).await;
    let told = scene.call("harbour_getShip", ship()).await.unwrap();
    assert_eq!(told["structuredContent"], json!({ "key": "***", "n": 1 }));
    assert!(!told.to_string().contains("hunter2"), "{told}");
}

#[tokio::test]
async fn a_redirect_is_followed_within_the_origin_only() {
    let to =
        |place: &str| format!("HTTP/1.1 307 X\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
    let inside = move |sent: &Sent| {
        if sent.line.starts_with("GET /v1/berths") {
            to("/moved?x=1")
        } else {
            reply(200, "text/plain", "there")
        }
    };
    let scene = Scene::with("harbour.yaml", inside, as_it_is).await;
    let told = scene.call("harbour_getShip", ship()).await.unwrap();
    assert_eq!(told["content"][0]["text"], "there");
    assert_eq!(scene.web.last().line, "GET /moved?x=1 HTTP/1.1");

    for place in ["https://evil.example/", "//evil.example/", "http://169.254.169.254/latest"] {
        let error = answered(to(place), "harbour_getShip", ship()).await.unwrap_err();
        assert!(matches!(error, CallError::LedElsewhere { .. }), "{place}: {error}");
        assert!(error.to_string().contains("the request was sent"), "{place}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let change = |settings: &mut OpenApiSettings, _: &str| settings.answer = 10;
    let long = reply(200, "text/plain", "0123456789a");
    let scene = Scene::with("harbour.yaml", move |_| long.clone(), change).await;
    let error = scene.call("harbour_getShip", ship()).await.unwrap_err();
    assert!(matches!(error, CallError::AnswerTooLarge { limit: 10, .. }), "{error}");
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_may_have_happened() {
    let hang_up = || String::new();
    let error = answered(hang_up(), "addNote", json!({ "text": "x" })).await.unwrap_err();
    assert!(matches!(error, CallError::OutcomeUnknown { .. }), "{error}");
}

#[tokio::test]
async fn a_call_that_takes_too_long_says_so() {
    let head = "HTTP/1.1 200 X\r\ncontent-length: 5\r\n\r\n".to_owned();
    let change = |settings: &mut OpenApiSettings, _: &str| {
        settings.timeout = Duration::from_millis(200);
    };
    let scene = Scene::with("harbour.yaml", move |_| head.clone(), change).await;
    let error = scene.call("addNote", json!({ "text": "x" })).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { may_have_run: true, .. }), "{error}");
}
