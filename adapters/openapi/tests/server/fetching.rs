//! How a document is had, and where requests go because of it.

use std::sync::Arc;

use capstan_hub::ports::Backend;
use capstan_model::CallError;
use capstan_openapi::{OpenApiSettings, Source};
use serde_json::json;

use crate::scene::{Scene, document, secret};
use crate::web::{Sent, Web, reply};

fn ok(_: &Sent) -> String {
    reply(200, "text/plain", "ok")
}

#[tokio::test]
async fn a_document_in_a_file_is_read_and_needs_a_base() {
    let from_file = |settings: &mut OpenApiSettings, _: &str| {
        settings.source = Source::File(document("harbour.yaml"));
    };
    let scene = Scene::with("harbour.yaml", ok, from_file).await;
    let error = scene.tools().await.unwrap_err().to_string();
    assert!(error.contains("set `openapi.base_url`"), "{error}");
    let with_base = |settings: &mut OpenApiSettings, origin: &str| {
        settings.source = Source::File(document("harbour.yaml"));
        settings.base_url = Some(secret(&format!("{origin}/x")));
    };
    let scene = Scene::with("harbour.yaml", ok, with_base).await;
    let sent = scene.sends("addNote", json!({ "text": "t" })).await;
    assert_eq!(sent.line, "POST /x/notes HTTP/1.1");
    let missing = |settings: &mut OpenApiSettings, _: &str| {
        settings.source = Source::File(document("nobody.yaml"));
    };
    let scene = Scene::with("harbour.yaml", ok, missing).await;
    let error = scene.tools().await.unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("nobody.yaml"), "{error}");
}

#[tokio::test]
async fn a_file_alone_sends_no_secret_anywhere() {
    let key = |settings: &mut OpenApiSettings| {
        settings.headers.clear();
        let token = capstan_model::Credentials::Token(secret("key-of-mine"));
        settings.auth = vec![("a".to_owned(), token)];
    };
    let header = |settings: &mut OpenApiSettings| {
        settings.headers = vec![("X-Any".to_owned(), secret("k hunter2hunter2"))];
    };
    let open = |settings: &mut OpenApiSettings| {
        settings.headers = vec![("X-Any".to_owned(), secret("for all to know"))];
    };
    let changes: [&dyn Fn(&mut OpenApiSettings); 5] = [&key, &header, &key, &header, &open];
    for (number, change) in changes.into_iter().enumerate() {
        let (with_base, expected) = (matches!(number, 2 | 3), number >= 2);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("api.json");
        let web = Arc::new(Web::start(Box::new(ok)).await);
        let scheme = json!({ "type": "apiKey", "in": "header", "name": "X-K" });
        let text = json!({ "openapi": "3.0.0", "servers": [{ "url": web.origin }],
            "components": { "securitySchemes": { "a": scheme } },
            "paths": { "/x": { "get": { "operationId": "x", "responses": {} } } } });
        std::fs::write(&file, text.to_string()).unwrap();
        let scene = Scene::of(web, |settings, origin| {
            settings.source = Source::File(file.clone());
            settings.base_url = with_base.then(|| secret(origin));
            // Else a document in a file could not name this machine.
            settings.addresses.networks = vec!["127.0.0.1".parse().unwrap()];
            change(settings);
        });
        let told = scene.call("x", json!({})).await.map_err(|error| error.to_string());
        assert_eq!(told.is_ok(), expected, "{number}: {told:?}");
        assert_eq!(scene.web.sent().len(), usize::from(expected), "{number}");
        if let Err(error) = told {
            assert!(error.contains("set `openapi.base_url`"), "{error}");
        }
    }
}

/// Holes 1: the address of a document is checked like that of a server.
#[tokio::test]
async fn a_document_at_an_address_that_is_not_public_is_not_fetched() {
    // All lead to the port that listens, in other spellings of this machine.
    for (host, refused) in [
        ("127.1", "127.0.0.1 is an address of this machine"),
        ("0.0.0.0", "0.0.0.0 is an address of this machine"),
        ("LOCALHOST", "`localhost` resolves to "),
    ] {
        let scene = Scene::with("harbour.yaml", ok, |settings, origin| {
            let other = origin.replace("127.0.0.1", host);
            settings.source = Source::Web(secret(&format!("{other}/docs/api")));
        })
        .await;
        let error = scene.tools().await.unwrap_err();
        assert!(matches!(error, CallError::AddressBlocked { .. }), "{host}: {error}");
        assert!(error.to_string().contains(refused) && !error.retryable(), "{host}: {error}");
        assert!(scene.web.sent().is_empty(), "{host}");
    }
}

#[tokio::test]
async fn a_document_in_several_files_is_read_and_says_what_it_could_not_follow() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "api.yaml",
        "openapi: 3.1.0\npaths:\n  /a: { $ref: paths.yaml#/a }\n  /b: { $ref: ../b.yaml }\n",
    );
    write(
        "paths.yaml",
        "a:\n  get: { operationId: a, parameters: [{ $ref: '#/limit' }] }\nlimit: { name: limit, in: query, schema: { type: integer } }\n",
    );
    let from_file = |settings: &mut OpenApiSettings, origin: &str| {
        settings.source = Source::File(folder.path().join("api.yaml"));
        settings.base_url = Some(secret(origin));
    };
    let scene = Scene::with("harbour.yaml", ok, from_file).await;
    assert_eq!(scene.sends("a", json!({ "limit": 3 })).await.line, "GET /a?limit=3 HTTP/1.1");
    let state = scene.state();
    assert!(state.starts_with("degraded: the reference `../b.yaml` "), "{state}");
}

#[tokio::test]
async fn what_is_meant_for_the_interface_is_not_sent_to_where_its_document_is() {
    let elsewhere = Arc::new(Web::start(Box::new(ok)).await);
    let base = format!("{}/y", elsewhere.origin);
    let change = |settings: &mut OpenApiSettings, _: &str| settings.base_url = Some(secret(&base));
    let scene = Scene::with("harbour.yaml", ok, change).await;
    scene.call("addNote", json!({ "text": "t" })).await.unwrap();
    let fetched = scene.web.last();
    assert_eq!(
        (fetched.line.as_str(), fetched.header("x-api-key")),
        ("GET /docs/api HTTP/1.1", None)
    );
    assert_eq!(scene.web.sent().len(), 1);
    let sent = elsewhere.last();
    assert_eq!(sent.line, "POST /y/notes HTTP/1.1");
    assert_eq!(sent.header("x-api-key"), Some("hunter2hunter2"));

    // The same origin is one and the same, and its document may need the key.
    let scene = Scene::new("harbour.yaml").await;
    scene.tools().await.unwrap();
    assert_eq!(scene.web.last().header("x-api-key"), Some("hunter2hunter2"));
}

#[tokio::test]
async fn a_fetched_document_is_kept_and_used_when_it_cannot_be_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let keep = |settings: &mut OpenApiSettings, _: &str| {
        settings.cache = Some(folder.path().to_owned());
    };
    let scene = Scene::with("harbour.yaml", ok, keep).await;
    scene.tools().await.unwrap();
    let again = Scene::of(Arc::clone(&scene.web), keep);
    assert_eq!(again.tools().await.unwrap().len(), 8);
    assert_eq!(scene.web.sent().len(), 1, "what is fresh is not fetched again");

    // An old one is fetched again, and used if that fails.
    let kept = std::fs::read_dir(folder.path().join("openapi")).unwrap().next().unwrap().unwrap();
    let hour = std::time::Duration::from_hours(1);
    let file = std::fs::File::options().write(true).open(kept.path()).unwrap();
    file.set_modified(std::time::SystemTime::now() - hour).unwrap();
    let gone = Arc::new(Web::start(Box::new(|_| reply(500, "text/plain", ""))).await);
    let text = std::fs::read(kept.path()).unwrap();
    let other = Scene::of(Arc::clone(&gone), keep);
    assert!(other.tools().await.is_err(), "another address has nothing kept");
    std::fs::write(kept.path(), text).unwrap();
    file.set_modified(std::time::SystemTime::now() - hour).unwrap();
    let address = format!("{}/docs/api", scene.web.origin);
    drop(again);
    drop(scene);
    let stale = Scene::of(gone, |settings, origin| {
        keep(settings, origin);
        settings.source = Source::Web(secret(&address));
    });
    assert_eq!(stale.tools().await.unwrap().len(), 8);
    assert!(
        stale.state().starts_with("degraded: an older copy of its document is used"),
        "{}",
        stale.state()
    );
}

#[tokio::test]
async fn what_is_no_document_says_what_it_is_instead() {
    for (text, words) in [
        (reply(404, "text/plain", "no"), "HTTP status 404"),
        (reply(200, "text/html", "<html></html>"), "not an OpenAPI document"),
        (reply(200, "text/plain", "openapi: 9.0.0"), "2.0, 3.0 and 3.1"),
        (reply(200, "text/plain", "openapi: 3.0.0\npaths: {}"), "has no operations"),
        (
            reply(200, "text/plain", "openapi: 3.0.0\nservers: [{url: 'https://evil/'}]"),
            "`openapi.base_url`",
        ),
    ] {
        let web = Arc::new(Web::start(Box::new(move |_| text.clone())).await);
        let error = Scene::of(web, |_, _| {}).tools().await.unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[tokio::test]
async fn who_gives_no_key_is_told_which_one_is_wanted() {
    for (scheme, words) in [
        (
            json!({ "type": "apiKey", "in": "query", "name": "k" }),
            "query parameter `k`: set `openapi.auth.a.token`",
        ),
        (
            json!({ "type": "apiKey", "in": "header", "name": "X-K" }),
            "header `X-K`: set `openapi.auth.a.token`",
        ),
        (
            json!({ "type": "http", "scheme": "bearer" }),
            "it requires a token: set `openapi.auth.a.token`",
        ),
    ] {
        let text = json!({ "openapi": "3.0.0", "security": [{ "a": [] }],
            "components": { "securitySchemes": { "a": scheme } },
            "paths": { "/x": { "get": { "responses": {} } } } });
        let answer = move |_: &Sent| reply(200, "application/json", &text.to_string());
        let web = Arc::new(Web::start(Box::new(answer)).await);
        let scene = Scene::of(Arc::clone(&web), |settings, _| settings.headers.clear());
        scene.tools().await.unwrap();
        assert!(scene.state().contains(words), "{}", scene.state());
        let scene = Scene::of(web, |_, _| {});
        scene.tools().await.unwrap();
        assert_eq!(scene.state(), "connected");
    }
}

#[tokio::test]
async fn a_closed_server_ends_its_calls() {
    let head = "HTTP/1.1 200 X\r\ncontent-length: 5\r\n\r\n";
    let scene = Scene::with("harbour.yaml", move |_| head.to_owned(), |_, _| {}).await;
    scene.tools().await.unwrap();
    let call = scene.call("addNote", json!({ "text": "x" }));
    let close = async {
        while scene.web.sent().len() < 2 {
            tokio::task::yield_now().await;
        }
        scene.server.close().await;
    };
    let (told, ()) = tokio::join!(call, close);
    assert!(told.is_err());
}
