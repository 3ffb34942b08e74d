//! No value is ever more than a value.

use capstan_model::CallError;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::scene::{Scene, secret};

/// What decodes to `text` when escapes are undone once.
fn undone(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut pieces = text.split('%');
    bytes.extend_from_slice(pieces.next().unwrap().as_bytes());
    for piece in pieces {
        let (code, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_value_in_a_path_stays_one_segment() {
    let scene = Scene::new("harbour.yaml").await;
    for (value, written) in [
        ("a/b", "a%2Fb"),
        ("a?x=1#y", "a%3Fx%3D1%23y"),
        ("a\\b", "a%5Cb"),
        ("%2e%2e%2f", "%252e%252e%252f"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("a b", "a%20b"),
        (";x={y}", "%3Bx%3D%7By%7D"),
        ("ü\u{2028}", "%C3%BC%E2%80%A8"),
        ("@evil.example:80", "%40evil.example%3A80"),
        ("//evil.example", "%2F%2Fevil.example"),
    ] {
        let sent =
            scene.sends("putShip", json!({ "berth": "b", "ship": value, "name": "n" })).await;
        assert_eq!(sent.line, format!("PUT /v1/berths/b/ships/{written} HTTP/1.1"));
    }
}

#[tokio::test]
async fn what_could_mean_another_path_is_refused_and_never_sent() {
    let scene = Scene::new("harbour.yaml").await;
    scene.tools().await.unwrap();
    let before = scene.web.sent().len();
    for value in
        ["", ".", "..", "../x", "x/../y", "..\\x", "a/.", "x\r\ny", "a\0b", "\n", "/..", "./x"]
    {
        for arguments in [
            json!({ "berth": "b", "ship": value, "name": "n" }),
            json!({ "berth": value, "ship": "s", "name": "n" }),
        ] {
            let error = scene.call("putShip", arguments).await.unwrap_err();
            assert!(matches!(error, CallError::InvalidArguments { .. }), "{value:?}: {error}");
        }
    }
    let error = scene
        .call("shapes", json!({ "simple": ["."], "label": ["a"], "matrix": ["b"] }))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::InvalidArguments { .. }), "{error}");
    // Behind the dot of its style, one more dot would go up.
    let up = json!({ "simple": ["a"], "label": [""], "matrix": ["b"] });
    assert!(scene.call("shapes", up).await.is_err());
    assert_eq!(scene.web.sent().len(), before);
}

#[tokio::test]
async fn headers_cookies_and_members_add_nothing_of_their_own() {
    let scene = Scene::new("harbour.yaml").await;
    scene.tools().await.unwrap();
    let before = scene.web.sent().len();
    for more in [
        json!({ "X-Trace": "a\r\nX-Evil: 1" }),
        json!({ "X-Trace": "a\nb" }),
        json!({ "X-Trace": "a\0" }),
        json!({ "X-Trace": "é" }),
        json!({ "X-Trace": ["a"] }),
        // Not parameters of this tool, or not a caller's business.
        json!({ "Host": "evil" }),
        json!({ "X-Api-Key": "mine" }),
        json!({ "Authorization": "mine" }),
        json!({ "nobody": 1 }),
        // A member that would pass for another parameter.
        json!({ "free": { "fields": "x" } }),
        json!({ "free": { "page[size]": "99" } }),
        json!({ "page_size": 99 }),
        json!({ "page_size": "5&x=1" }),
        json!({ "filter": { "a": { "b": 1 } } }),
    ] {
        let mut arguments = json!({ "berth": "b", "ship": "s" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let error = scene.call("harbour_getShip", arguments).await.unwrap_err();
        assert!(matches!(error, CallError::InvalidArguments { .. }), "{more}: {error}");
    }
    assert_eq!(scene.web.sent().len(), before);
    let sent = scene
        .sends("harbour_getShip", json!({ "berth": "b", "ship": "s", "lang": "x; admin=1" }))
        .await;
    assert_eq!(sent.header("cookie"), Some("lang=x%3B%20admin%3D1"));
}

#[tokio::test]
async fn what_the_base_says_is_sent_with_every_query_and_nobody_else_says_it() {
    let change = |settings: &mut capstan_openapi::OpenApiSettings, origin: &str| {
        settings.base_url = Some(secret(&format!("{origin}/v2/?fields=mine")));
    };
    let answer = |_: &crate::web::Sent| crate::web::reply(200, "text/plain", "ok");
    let scene = Scene::with("harbour.yaml", answer, change).await;
    let sent =
        scene.sends("harbour_getShip", json!({ "berth": "b", "ship": "s", "flags": ["x"] })).await;
    assert_eq!(sent.line, "GET /v2/berths/b/ships/s?fields=mine&flags=x HTTP/1.1");
    for arguments in [
        json!({ "berth": "b", "ship": "s", "fields": ["other"] }),
        json!({ "berth": "b", "ship": "s", "free": { "fields": "other" } }),
    ] {
        assert!(scene.call("harbour_getShip", arguments).await.is_err());
    }
}

#[tokio::test]
async fn the_name_of_a_key_in_the_query_is_not_a_callers() {
    let change = |settings: &mut capstan_openapi::OpenApiSettings, _: &str| {
        let key = capstan_model::Credentials::Token(secret("key-of-mine"));
        settings.auth = vec![("second".to_owned(), key)];
    };
    let answer = |_: &crate::web::Sent| crate::web::reply(200, "text/plain", "ok");
    let scene = Scene::with("bank.json", answer, change).await;
    let before = scene.sends("spread", json!({ "free": { "third": "x" } })).await;
    assert_eq!(before.line, "GET /spread?third=x&sec%20ond=key-of-mine HTTP/1.1");
    let sent = scene.web.sent().len();
    for arguments in [json!({ "free": { "sec ond": "x" } }), json!({ "sec ond": "x" })] {
        let error = scene.call("spread", arguments.clone()).await.unwrap_err();
        assert!(matches!(error, CallError::InvalidArguments { .. }), "{arguments}: {error}");
    }
    assert_eq!(scene.web.sent().len(), sent);
}

#[test]
fn any_value_is_one_segment_that_means_the_value_or_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = runtime.block_on(Scene::new("harbour.yaml"));
    let value = prop_oneof![
        any::<String>(),
        "[./\\\\%?#&;:@ a-c\\r\\n]{0,8}",
        Just("..".to_owned()),
        "(\\.\\./|%2e|%2f|/){1,4}",
    ];
    proptest!(ProptestConfig::with_cases(256), |(berth in value.clone(), ship in value)| {
        let before = scene.web.sent().len();
        let arguments = json!({ "berth": berth, "ship": ship, "name": "n" });
        let told: Result<Value, CallError> = runtime.block_on(scene.call("putShip", arguments));
        if told.is_err() {
            // The document itself may have been asked for.
            let sent = scene.web.sent();
            let lines: Vec<_> = sent[before..].iter().map(|sent| sent.line.clone()).collect();
            prop_assert!(lines.iter().all(|line| line.starts_with("GET /docs/api ")), "{lines:?}");
            return Ok(());
        }
        let line = scene.web.last().line;
        let path = line.strip_prefix("PUT ").unwrap().strip_suffix(" HTTP/1.1").unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        prop_assert_eq!(parts.len(), 6, "{}", line);
        prop_assert_eq!(&[parts[1], parts[2], parts[4]], &["v1", "berths", "ships"]);
        prop_assert_eq!(undone(parts[3]), berth);
        prop_assert_eq!(undone(parts[5]), ship);
    });
}
