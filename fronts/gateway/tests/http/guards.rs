//! Checks of origin, host and path before a request is handled.

use capstan_gateway::http::{HttpError, HttpSettings, bind};

use crate::harness::{Harness, initialize, member};
use capstan_testkit::http::{post, request};

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_on_every_route() {
    let harness = Harness::new().await;
    let routes = [
        request("GET", "/health"),
        request("GET", "/ready"),
        request("GET", "/metrics"),
        request("GET", "/sse"),
        request("GET", "/mcp"),
        request("DELETE", "/mcp"),
        request("GET", "/nowhere"),
        post("/mcp", &initialize("2025-11-25")),
        post("/servers/files/mcp", &initialize("2025-11-25")),
        post("/messages?sessionId=x", &initialize("2025-11-25")),
    ];
    for route in routes {
        for (name, value) in [
            ("Host", "evil.example"),
            ("Host", "localhost.evil.example"),
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
        ] {
            let answer = harness.ask(&route.clone().with(name, value)).await;
            assert_eq!(answer.head.status, 403, "{name}: {value} {}", route.text());
        }
        let answer = harness.ask(&route.clone().without("Host")).await;
        assert_eq!(answer.head.status, 400, "no host {}", route.text());
    }
    let own = format!("http://localhost:{}", harness.address.port());
    let hello = post("/mcp", &initialize("2025-11-25"));
    assert_eq!(harness.ask(&hello.clone().with("Origin", &own)).await.head.status, 200);
    let other = hello.with("Origin", "http://localhost:1");
    assert_eq!(harness.ask(&other).await.head.status, 403);
}

#[tokio::test]
async fn each_route_takes_its_methods_and_names_them_otherwise() {
    let harness = Harness::new().await;
    let cases = [
        ("GET", "/health", 200, None),
        ("GET", "/ready", 200, None),
        ("GET", "/metrics", 200, None),
        ("POST", "/health", 405, Some("GET")),
        ("POST", "/metrics", 405, Some("GET")),
        ("POST", "/sse", 405, Some("GET")),
        ("GET", "/messages", 405, Some("POST")),
        ("PUT", "/mcp", 405, Some("GET, POST, DELETE")),
        ("OPTIONS", "/mcp", 405, Some("GET, POST, DELETE")),
        ("GET", "/", 404, None),
        ("GET", "/servers/none/mcp", 404, None),
        ("GET", "/servers/none/sse", 404, None),
        ("GET", "/servers/files", 404, None),
        ("GET", "/mcp/x", 404, None),
    ];
    for (method, path, status, allow) in cases {
        let answer = harness.ask(&request(method, path)).await;
        assert_eq!(answer.head.status, status, "{method} {path}");
        assert_eq!(answer.head.get("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn what_is_no_json_or_wants_another_kind_is_refused() {
    let harness = Harness::new().await;
    let good = post("/mcp", &initialize("2025-11-25"));
    let cases = [
        (good.clone().with("Content-Type", "text/plain"), 415),
        (good.clone().without("Content-Type"), 415),
        (good.clone().with("Content-Encoding", "gzip"), 415),
        (good.clone().with("Content-Encoding", "identity"), 200),
        (good.clone().with("Accept", "text/html"), 406),
        (good.clone().with("Accept", "application/json"), 200),
        (good.clone().without("Accept"), 200),
        (good.clone().with("Content-Type", "application/json; charset=utf-8"), 200),
        (good.clone().body("{"), 400),
        (good.clone().body("7"), 400),
        (good.clone().body("[]"), 400),
        (good.clone().body(r#"{"jsonrpc":"2.0","id":null,"method":"initialize"}"#), 400),
        (good.clone().body("\u{0}"), 400),
        (good.with("MCP-Protocol-Version", "1999-01-01"), 400),
    ];
    for (ask, status) in cases {
        assert_eq!(harness.ask(&ask).await.head.status, status, "{}", ask.text());
    }
}

#[tokio::test]
async fn other_machines_may_not_call_unless_somebody_says_so() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let result = bind(HttpSettings::new(address.parse().unwrap())).await;
        assert!(matches!(result, Err(HttpError::Exposed(_))), "{address}");
    }
    let taken = bind(HttpSettings::new("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let result = bind(HttpSettings::new(taken.address())).await;
    assert!(matches!(result, Err(HttpError::Bind { .. })));
}

#[tokio::test]
async fn browsers_are_told_which_pages_may_call_and_no_others() {
    let mut settings = crate::harness::settings();
    settings.allowed_origins = vec!["https://app.example".to_owned()];
    let harness = Harness::with(settings).await;
    let asks = |origin: &str| {
        request("OPTIONS", "/mcp")
            .with("Origin", origin)
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", "content-type, mcp-param-place")
    };
    let answer = harness.ask(&asks("https://app.example")).await.head;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.get("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.get("access-control-allow-methods"), Some("GET, POST, DELETE"));
    assert_eq!(answer.get("access-control-allow-headers"), Some("content-type, mcp-param-place"));
    let hello = post("/mcp", &initialize("2025-11-25"));
    let answer = harness.ask(&hello.clone().with("Origin", "https://app.example")).await.head;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.get("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.get("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
    assert_eq!(answer.get("vary"), Some("Origin"));
    let own = format!("http://localhost:{}", harness.address.port());
    for (origin, status) in [("https://evil.example", 403), (own.as_str(), 405)] {
        let answer = harness.ask(&asks(origin)).await.head;
        assert_eq!(answer.status, status, "{origin}");
        assert_eq!(answer.get("access-control-allow-origin"), None, "{origin}");
    }
    let answer = harness.ask(&hello).await.head;
    assert_eq!(answer.get("access-control-allow-origin"), None);
}

/// Holes 6.
#[tokio::test]
async fn a_header_that_is_given_twice_is_refused_before_anything_else() {
    let harness = Harness::new().await;
    let modern = post("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
        .with("MCP-Protocol-Version", "2026-07-28");
    let legacy = post("/mcp", &initialize("2025-11-25"));
    for (name, value, code) in [
        ("Mcp-Name", "files__say", "-32020"),
        ("Mcp-Method", "tools/list", "-32020"),
        ("MCP-Protocol-Version", "2026-07-28", "-32020"),
        ("Mcp-Session-Id", "x", "-32020"),
        ("Authorization", "Bearer x", "-32600"),
        ("Host", "localhost", "-32600"),
        ("Content-Type", "application/json", "-32600"),
        ("Last-Event-ID", "x", "-32600"),
        ("Origin", "http://evil.example", "-32600"),
    ] {
        let answer = harness.ask(&modern.clone().with(name, value).and(name, value)).await;
        let got = (answer.head.status, member(&answer.body, "error.code"));
        assert_eq!(got, (400, code.to_owned()), "{name}");
        assert!(answer.body.contains(name), "{}", answer.body);
        let version = if name == "MCP-Protocol-Version" { "2025-11-25" } else { value };
        let answer = harness.ask(&legacy.clone().with(name, version).and(name, "other")).await;
        let got = (answer.head.status, member(&answer.body, "error.code"));
        assert_eq!(got, (400, "-32600".to_owned()), "{name}");
    }
    let lists =
        legacy.clone().and("Accept", "text/html").and("Baggage", "a=1").and("Baggage", "b=2");
    assert_eq!(harness.ask(&lists).await.head.status, 200);
    let session = request("GET", "/mcp").with("Mcp-Session-Id", "a, a");
    assert_eq!(harness.ask(&session).await.head.status, 400);
    let kinds = legacy.with("Content-Type", "application/json; charset=utf-8, text/plain");
    assert_eq!(harness.ask(&kinds).await.head.status, 415);
}

/// Holes 6, 10 and 13.
#[tokio::test]
async fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let harness = Harness::new().await;
    let host = "Host: localhost\r\n";
    let post = format!("POST /mcp HTTP/1.1\r\n{host}Content-Type: application/json\r\n");
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n");
    for head in [
        "GET /health HTTP/1.1\nHost: localhost\n\n".to_owned(),
        "GET /health HTTP/1.1\r\nHost: localhost\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\nX: y\nHost: localhost\r\n\r\n".to_owned(),
        format!("\nGET /health HTTP/1.1\r\n{host}\r\n"),
        "GET /health HTTP/1.1\r\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\nHost:\r\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\nHost: localhost:99999\r\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\nHost: localhost/../..\r\n\r\n".to_owned(),
        format!("GET /health HTTP/1.1\r\n{host}{host}\r\n"),
        format!("{post}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"),
        format!("{chunked}Content-Length: 2\r\n\r\n"),
        format!("{post}Transfer-Encoding: xchunked\r\n\r\n"),
        format!("{chunked}\r\nFFFFFFFFFFFFFFFFFF\r\nabc"),
        format!("{chunked}\r\nFFFFFFFFFFFFFFFF\r\nabc"),
    ] {
        // Alone, and behind another request on the same connection.
        let mut peer = harness.peer().await;
        peer.send(&head).await;
        assert_eq!(peer.head().await.status, 400, "{head:?}");
        let mut peer = harness.peer().await;
        peer.send(&format!("GET /health HTTP/1.1\r\n{host}\r\n{head}")).await;
        assert_eq!(peer.answer().await.head.status, 200);
        assert_eq!(peer.head().await.status, 400, "{head:?}");
    }
}

/// Holes 10.
#[tokio::test]
async fn what_is_no_json_is_a_parse_error_whichever_headers_are_missing() {
    let harness = Harness::new().await;
    let deep = "[".repeat(200_000);
    let params = format!("{}1{}", r#"{"a":"#.repeat(200_000), "}".repeat(200_000));
    let params = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
    let bodies = ["{", "[1 true]", "[", "nul", "[{},", "\u{feff}{}", &deep, &params];
    for body in bodies {
        let full = post("/mcp", body)
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/list")
            .with("Mcp-Session-Id", "AAAAAAAAAAAAAAAAAAAAAAAA");
        let without =
            |names: &[&str]| names.iter().fold(full.clone(), |ask, name| ask.without(name));
        for ask in [
            full.clone(),
            without(&["Mcp-Session-Id"]),
            without(&["Mcp-Method", "Mcp-Session-Id"]),
            without(&["MCP-Protocol-Version", "Mcp-Method", "Mcp-Session-Id"]),
            without(&["MCP-Protocol-Version"]),
            without(&["Accept", "Mcp-Session-Id"]),
            without(&["Content-Type", "Mcp-Session-Id"]),
            full.clone().with("MCP-Protocol-Version", "1999-01-01"),
        ] {
            let answer = harness.ask(&ask).await;
            let got = (answer.head.status, member(&answer.body, "error.code"));
            assert_eq!(got, (400, "-32700".to_owned()), "{:.400}", ask.text());
        }
    }
    let typeless = post("/mcp", &initialize("2025-11-25")).without("Content-Type");
    assert_eq!(harness.ask(&typeless).await.head.status, 415);
    let reply = post("/mcp", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let reply = reply.with("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(harness.ask(&reply).await.head.status, 400);
}
