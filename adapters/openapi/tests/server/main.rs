//! Documents as servers behind a real hub, in front of an interface that checks every byte.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod web;
mod scene;
mod injection;
mod answers;
mod fetching;
mod login;

use capstan_hub::ports::Listing;
use capstan_model::CallError;
use capstan_openapi::{OpenApiSettings, Source};
use capstan_policy::Glob;
use serde_json::{Value, json};

use scene::Scene;
use web::reply;

fn globs(texts: &[&str]) -> Vec<Glob> {
    texts.iter().map(|text| Glob::stars(text)).collect()
}

#[tokio::test]
async fn each_operation_is_a_tool_and_what_cannot_be_offered_is_left_out() {
    let scene = Scene::new("harbour.yaml").await;
    assert_eq!(scene.state(), "idle");
    assert_eq!(
        scene.tools().await.unwrap(),
        [
            "harbour_getShip",
            "putShip",
            "delete_berths_berth_ships_ship",
            "addNote",
            "addParts",
            "setText",
            "setPicture",
            "shapes"
        ]
    );
    let state = scene.state();
    let expected =
        "degraded: 2 operations are left out: GET /odd?x=1: its path cannot be sent, and";
    assert!(state.starts_with(expected), "{state}");
    for other in [Listing::Prompts, Listing::Resources, Listing::Templates] {
        assert!(scene.listing(other).await.unwrap().is_empty());
    }
    let about = scene.about().await.unwrap();
    assert_eq!((about.title.as_deref(), about.version.as_deref()), (Some("Harbour"), Some("7")));
}

#[tokio::test]
async fn a_tool_says_what_its_operation_says() {
    let scene = Scene::new("harbour.yaml").await;
    let tool = scene.tool("harbour_getShip").await;
    assert_eq!(tool["title"], "Get a ship");
    assert_eq!(
        tool["description"],
        "Get a ship\n\nWhere a ship lies, and what it carries.\n\nGET /berths/{berth}/ships/{ship}"
    );
    assert_eq!(tool["annotations"], json!({ "readOnlyHint": true }));
    let schema = &tool["inputSchema"];
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["required"], json!(["ship", "berth"]));
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    // What the configuration or the wire says, no caller does.
    assert_eq!(
        names,
        [
            "ship",
            "fields",
            "flags",
            "words",
            "pipes",
            "filter",
            "free",
            "where",
            "X-Trace",
            "lang",
            "page_size",
            "berth"
        ]
    );
    assert_eq!(
        schema["properties"]["page_size"],
        json!({ "type": "integer", "minimum": 1, "maximum": 50 })
    );
    assert_eq!(tool["outputSchema"]["type"], "object");
    assert_eq!(tool["outputSchema"]["properties"]["name"], json!({ "type": ["string", "null"] }));
    let gone = scene.tool("delete_berths_berth_ships_ship").await;
    assert_eq!(gone["annotations"]["destructiveHint"], json!(true));
    assert_eq!(gone["annotations"]["idempotentHint"], json!(true));
    let put = scene.tool("putShip").await;
    assert_eq!(put["annotations"]["idempotentHint"], json!(true));
    // What only comes back is not asked for, and what contains itself ends.
    assert_eq!(
        put["inputSchema"]["properties"],
        json!({ "ship": { "type": "string" }, "berth": { "type": "string" },
            "name": { "type": "string", "maxLength": 20 }, "size": { "enum": ["small", "large"] },
            "sister": {} })
    );
}

#[tokio::test]
async fn an_operation_that_takes_too_many_bytes_is_left_out_or_tells_less() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.json");
    let parts: Value = (0..20).map(|n| (n.to_string(), json!({ "$ref": "#/n" }))).collect();
    let word = "x".repeat(100_000);
    let input = json!({ "content": { "application/json": { "schema": { "properties": parts } } } });
    let output: Value = json!({ "200": { "content": { "application/json": { "schema":
        { "type": "object", "properties": (0..20).map(|n| (format!("{n}{word}"), json!({})))
            .collect::<Value>() } } } } });
    let document = json!({ "openapi": "3.0.0", "n": { "enum": [word] }, "paths": {
        "/a": { "post": { "operationId": "large", "requestBody": input } },
        "/b": { "get": { "operationId": "told", "responses": output } },
        "/c": { "get": { "operationId": "small" } } } });
    std::fs::write(&file, document.to_string()).unwrap();
    let change = |settings: &mut OpenApiSettings, origin: &str| {
        settings.source = Source::File(file.clone());
        settings.base_url = Some(scene::secret(origin));
    };
    let scene = Scene::with("harbour.yaml", |_| reply(200, "application/json", "{}"), change).await;
    assert_eq!(scene.tools().await.unwrap(), ["told", "small"]);
    let state = scene.state();
    assert!(state.contains("POST /a: its definition is too large"), "{state}");
    assert_eq!(scene.tool("told").await.get("outputSchema"), None);
}

#[tokio::test]
async fn version_3_1_is_encoded_as_the_document_says() {
    let scene = Scene::new("harbour.yaml").await;
    let ship = |more: Value| {
        let mut arguments = json!({ "berth": "b", "ship": 7 });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    for (arguments, line) in [
        (json!({}), ""),
        (json!({ "fields": ["a", "b&c"] }), "?fields=a&fields=b%26c"),
        (json!({ "flags": ["a,b", "c"] }), "?flags=a%2Cb,c"),
        (json!({ "words": ["a", "b"] }), "?words=a%20b"),
        (json!({ "pipes": ["a|", "b"] }), "?pipes=a%7C%7Cb"),
        (json!({ "filter": { "k]": "v=1" } }), "?filter%5Bk%5D%5D=v%3D1"),
        (json!({ "free": { "k": "v" } }), "?k=v"),
        (json!({ "where": { "a": [1] } }), "?where=%7B%22a%22%3A%5B1%5D%7D"),
        (json!({ "page_size": 5 }), "?page%5Bsize%5D=5"),
    ] {
        let sent = scene.sends("harbour_getShip", ship(arguments)).await;
        assert_eq!(sent.line, format!("GET /v1/berths/b/ships/7{line} HTTP/1.1"));
        assert_eq!(sent.header("x-api-key"), Some("hunter2hunter2"));
    }
    let sent =
        scene.sends("harbour_getShip", ship(json!({ "X-Trace": "t 1", "lang": "a;b" }))).await;
    assert_eq!((sent.header("x-trace"), sent.header("cookie")), (Some("t 1"), Some("lang=a%3Bb")));
    let shapes = json!({ "simple": ["a", "b/c"], "label": ["d", "e"], "matrix": ["f", "g"] });
    let sent = scene.sends("shapes", shapes).await;
    assert_eq!(sent.line, "GET /v1/shapes/a,b%2Fc/.d,e/;matrix=f;matrix=g HTTP/1.1");
}

#[tokio::test]
async fn bodies_are_written_as_the_document_says() {
    let scene = Scene::new("harbour.yaml").await;
    let arguments =
        json!({ "berth": "b", "ship": "x", "name": "Ann\"", "sister": { "name": "Eve" } });
    let sent = scene.sends("putShip", arguments).await;
    assert_eq!(sent.line, "PUT /v1/berths/b/ships/x HTTP/1.1");
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.body, r#"{"name":"Ann\"","sister":{"name":"Eve"}}"#);

    let sent = scene.sends("addNote", json!({ "text": "a&b=c\r\n", "tags": ["x", "y z"] })).await;
    assert_eq!(sent.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(sent.body, "text=a%26b%3Dc%0D%0A&tags=x&tags=y%20z");

    // No digit is lost on the way.
    let long = r#"{"berth":"b","ship":"x","name":"n","sister":{"n":1.00000000000000000001}}"#;
    let sent = scene.sends_text("putShip", long).await;
    assert_eq!(sent.body, r#"{"name":"n","sister":{"n":1.00000000000000000001}}"#);
    let long =
        r#"{"berth":"b","ship":12345678901234567890123,"where":{"n":1.00000000000000000001}}"#;
    let sent = scene.sends_text("harbour_getShip", long).await;
    let query = "where=%7B%22n%22%3A1.00000000000000000001%7D";
    let line = format!("GET /v1/berths/b/ships/12345678901234567890123?{query} HTTP/1.1");
    assert_eq!(sent.line, line);

    let sent = scene.sends("addNote", json!({})).await;
    assert_eq!((sent.header("content-type"), sent.body.as_str()), (None, ""));

    let sent = scene.sends("addParts", json!({ "text": "--x\r\nContent-Type: evil" })).await;
    let kind = sent.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n--x\r\nContent-Type: \
         evil\r\n--{boundary}--\r\n"
    );
    assert_eq!(sent.body, expected);

    let bytes = json!({ "text": "t", "scan": "aGk=", "pages": ["YQ==", "Yg=="] });
    let sent = scene.sends("addParts", bytes).await;
    let name = |name| format!("form-data; name=\"{name}\"; filename=\"{name}\"\r\n");
    let kind = "Content-Type: application/octet-stream\r\n\r\n";
    assert!(sent.body.contains("; name=\"text\"\r\n\r\nt\r\n"), "{sent:?}");
    for (field, value) in [("scan", "hi"), ("pages", "a"), ("pages", "b")] {
        let part = format!("{}{kind}{value}\r\n", name(field));
        assert!(sent.body.contains(&part), "{part} {sent:?}");
    }
    let bad = json!({ "text": "t", "scan": "no base64!" });
    let error = scene.call("addParts", bad).await.unwrap_err().to_string();
    assert!(error.contains("`scan` is not base64"), "{error}");

    let sent = scene.sends("setText", json!({ "body": "hello" })).await;
    assert_eq!((sent.header("content-type"), sent.body.as_str()), (Some("text/plain"), "hello"));
    let sent = scene.sends("setPicture", json!({ "body": "aGk=" })).await;
    assert_eq!((sent.header("content-type"), sent.body.as_str()), (Some("image/png"), "hi"));
    let error = scene.call("setPicture", json!({ "body": "no base64!" })).await.unwrap_err();
    assert!(matches!(error, CallError::InvalidArguments { .. }), "{error}");
}

#[tokio::test]
async fn version_3_0_is_read_with_its_own_words() {
    let scene = Scene::new("library.json").await;
    assert_eq!(scene.tools().await.unwrap(), ["listBooks", "listBooks_2", "patch_books"]);
    let list = scene.tool("listBooks").await;
    assert_eq!(
        list["inputSchema"]["properties"]["limit"],
        json!({ "type": "integer", "exclusiveMinimum": 0, "default": 10, "description": "How many" })
    );
    assert_eq!(list["inputSchema"]["properties"]["q"]["type"], json!(["string", "null"]));
    // A list is no object, and structured content must be one.
    assert_eq!(list.get("outputSchema"), None);
    let add = scene.tool("listBooks_2").await;
    assert_eq!(
        add["inputSchema"]["properties"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["title", "body_title", "pages"]
    );
    let sent = scene.sends("listBooks_2", json!({ "title": "t", "body_title": "b" })).await;
    assert_eq!(
        (sent.line.as_str(), sent.body.as_str()),
        ("POST /books?title=t HTTP/1.1", r#"{"title":"b"}"#)
    );
    let sent = scene.sends("patch_books", json!({ "body": [1, 2] })).await;
    assert_eq!(sent.body, "[1,2]");
}

#[tokio::test]
async fn version_2_0_is_read_with_its_own_words() {
    let scene = Scene::new("garage.json").await;
    assert_eq!(scene.tools().await.unwrap(), ["getCar", "wash", "addCar"]);
    let get = scene.tool("getCar").await;
    assert_eq!(
        get["inputSchema"]["properties"]["sort"],
        json!({ "type": "string", "enum": ["up", "down"] })
    );
    assert_eq!(get["outputSchema"]["properties"]["doors"], json!({ "type": ["integer", "null"] }));
    let arguments = json!({ "plate": "B 1", "parts": ["a", "b"], "also": ["c", "d"] });
    let sent = scene.sends("getCar", arguments).await;
    assert_eq!(sent.line, "GET /api/cars/B%201?parts=a%7Cb&also=c&also=d HTTP/1.1");
    let sent = scene.sends("wash", json!({ "plate": "x", "with": "soap & water" })).await;
    assert_eq!(sent.body, "with=soap%20%26%20water");
    let sent = scene.sends("addCar", json!({ "plate": "x", "doors": 3 })).await;
    assert_eq!(
        (sent.line.as_str(), sent.body.as_str()),
        ("POST /api/cars HTTP/1.1", r#"{"plate":"x","doors":3}"#)
    );
}

#[tokio::test]
async fn operations_are_chosen_by_tag_and_pattern() {
    let cases: [[&[&str]; 4]; 6] = [
        [&["notes"], &[], &[], &["addNote", "addParts", "setText", "setPicture"]],
        [&["notes"], &["POST *"], &[], &["addNote", "addParts"]],
        [&[], &["* /shapes/*", "harbour.getShip"], &[], &["harbour_getShip", "shapes"]],
        [&[], &["set*"], &["setPicture"], &["setText"]],
        [&["notes", "shapes"], &[], &["* /notes*"], &["shapes"]],
        [&[], &["GET *"], &["* /berths/*"], &["shapes"]],
    ];
    for [tags, only, except, expected] in cases {
        let change = |settings: &mut OpenApiSettings, _: &str| {
            let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
            settings.tags = (!tags.is_empty()).then_some(tags);
            settings.only = (!only.is_empty()).then(|| globs(only));
            settings.except = globs(except);
        };
        let scene = Scene::with("harbour.yaml", |_| String::new(), change).await;
        assert_eq!(scene.tools().await.unwrap(), expected, "{tags:?} {only:?} {except:?}");
    }
    let none = |settings: &mut OpenApiSettings, _: &str| {
        settings.tags = Some(vec!["nothing".to_owned()]);
    };
    let scene = Scene::with("harbour.yaml", |_| String::new(), none).await;
    let error = scene.tools().await.unwrap_err().to_string();
    assert!(error.contains("exclude all of its"), "{error}");
}
