//! Who is let in, and where to.

use capstan_gateway::http::{HttpError, HttpSettings, bind};

use crate::peer::{ask, post};
use crate::world::{World, initialize};

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_on_every_route() {
    let world = World::new().await;
    let routes = [
        ask("GET", "/health"),
        ask("GET", "/ready"),
        ask("GET", "/metrics"),
        ask("GET", "/sse"),
        ask("GET", "/mcp"),
        ask("DELETE", "/mcp"),
        ask("GET", "/nowhere"),
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
            let answer = world.ask(&route.clone().with(name, value)).await;
            assert_eq!(answer.head.status, 403, "{name}: {value} {}", route.text());
        }
        let answer = world.ask(&route.clone().without("Host")).await;
        assert_eq!(answer.head.status, 403, "no host {}", route.text());
    }
    let origin = post("/mcp", &initialize("2025-11-25")).with("Origin", "http://localhost:3000");
    assert_eq!(world.ask(&origin).await.head.status, 200);
}

#[tokio::test]
async fn each_route_takes_its_methods_and_names_them_otherwise() {
    let world = World::new().await;
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
        let answer = world.ask(&ask(method, path)).await;
        assert_eq!(answer.head.status, status, "{method} {path}");
        assert_eq!(answer.head.get("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn what_is_no_json_or_wants_another_kind_is_refused() {
    let world = World::new().await;
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
        assert_eq!(world.ask(&ask).await.head.status, status, "{}", ask.text());
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
    let mut settings = crate::world::settings();
    settings.allowed_origins = vec!["https://app.example".to_owned()];
    let world = World::with(settings).await;
    let asks = |origin: &str| {
        ask("OPTIONS", "/mcp")
            .with("Origin", origin)
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", "content-type, mcp-param-place")
    };
    let answer = world.ask(&asks("https://app.example")).await.head;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.get("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.get("access-control-allow-methods"), Some("GET, POST, DELETE"));
    assert_eq!(answer.get("access-control-allow-headers"), Some("content-type, mcp-param-place"));
    let hello = post("/mcp", &initialize("2025-11-25"));
    let answer = world.ask(&hello.clone().with("Origin", "https://app.example")).await.head;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.get("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.get("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
    assert_eq!(answer.get("vary"), Some("Origin"));
    for (origin, status) in [("https://evil.example", 403), ("http://localhost:1", 405)] {
        let answer = world.ask(&asks(origin)).await.head;
        assert_eq!(answer.status, status, "{origin}");
        assert_eq!(answer.get("access-control-allow-origin"), None, "{origin}");
    }
    let answer = world.ask(&hello).await.head;
    assert_eq!(answer.get("access-control-allow-origin"), None);
}
