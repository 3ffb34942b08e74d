//! Streamable HTTP without a handshake.

use crate::harness::{Harness, member};
use capstan_testkit::http::{self, HttpRequest, post};

const VERSION: &str = "2026-07-28";

/// A modern request with all that belongs to it.
fn request(method: &str, rest: &str) -> HttpRequest {
    let meta = meta(VERSION);
    let params = format!("{{{rest}{meta}}}");
    let body = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{params}}}"#);
    let ask = post("/mcp", &body).with("MCP-Protocol-Version", VERSION).with("Mcp-Method", method);
    if method == "tools/call" { ask.with("Mcp-Name", "files__say") } else { ask }
}

fn meta(version: &str) -> String {
    let prefix = "io.modelcontextprotocol";
    let version = format!(r#""{prefix}/protocolVersion":"{version}""#);
    format!(r#""_meta":{{"progressToken":"t",{version},"{prefix}/clientCapabilities":{{}}}}"#)
}

fn say() -> HttpRequest {
    request("tools/call", r#""name":"files__say","arguments":{},"#)
}

#[tokio::test]
async fn a_request_stands_for_itself() {
    let harness = Harness::new().await;
    let answer = harness.ask(&say()).await;
    assert_eq!(answer.head.status, 200);
    assert_eq!(answer.head.get("mcp-session-id"), None);
    assert!(answer.body.contains("say done"), "{}", answer.body);
    assert_eq!(harness.ask(&say().with("Mcp-Session-Id", "anything")).await.head.status, 200);
    assert_eq!(harness.ask(&request("server/discover", "")).await.head.status, 200);
}

/// A call of `talk`, which sends progress, by the client and with the members of this `_meta`.
fn talk(meta: &str) -> HttpRequest {
    let prefix = "io.modelcontextprotocol";
    let meta = format!(
        r#"{{"{prefix}/protocolVersion":"{VERSION}","{prefix}/clientCapabilities":{{}},{meta}}}"#
    );
    let params = format!(r#"{{"name":"files__talk","arguments":{{}},"_meta":{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{params}}}"#);
    let ask = post("/mcp", &body).with("MCP-Protocol-Version", VERSION);
    ask.with("Mcp-Method", "tools/call").with("Mcp-Name", "files__talk")
}

#[tokio::test]
async fn each_request_of_a_connection_is_that_of_the_client_that_it_describes() {
    let harness = Harness::new().await;
    let mut peer = harness.peer().await;
    let client = |rest: &str| format!(r#""io.modelcontextprotocol/clientInfo":{rest}"#);
    let one = client(r#"{"name":"one","version":"1"}"#);
    let long = format!(r#"{one},"x":"{}""#, "y".repeat(5000));
    let cases = [
        (one.clone(), "", Some("one/1"), None),
        (one.clone(), "", Some("one/1"), None),
        (format!(r#"{one},"progressToken":"p1""#), r#""p1""#, Some("one/1"), None),
        (format!(r#"{one},"progressToken":2"#), "2", Some("one/1"), None),
        (client(r#"{"name":"two","version":"1"}"#), "", Some("two/1"), None),
        (format!(r#"{one},"caller_id":"agent""#), "", Some("one/1"), Some("agent")),
        (format!(r#"{one},"progressToken":3"#), "3", Some("one/1"), None),
        (long.clone(), "", Some("one/1"), None),
        (format!(r#"{long},"progressToken":4"#), "4", Some("one/1"), None),
        (r#""x":1"#.to_owned(), "", None, None),
        (one, "", Some("one/1"), None),
    ];
    for (meta, token, _, _) in &cases {
        let answer = peer.ask(&talk(meta)).await;
        assert!(answer.body.contains("talk done"), "{meta} {answer:?}");
        let told = answer.body.contains(&format!(r#""progressToken":{token}"#));
        assert_eq!(told, !token.is_empty(), "{meta} {answer:?}");
    }
    let entries = harness.entries(cases.len()).await;
    for ((meta, _, client, agent), entry) in cases.iter().zip(entries) {
        let caller = &entry.caller;
        let found = (caller.client.as_deref(), caller.caller_id.as_deref());
        assert_eq!(found, (*client, *agent), "{meta}");
    }
}

#[tokio::test]
async fn a_description_is_refused_although_the_one_before_was_complete() {
    let harness = Harness::new().await;
    let mut peer = harness.peer().await;
    let complete = talk(r#""x":1"#);
    assert_eq!(peer.ask(&complete).await.head.status, 200);
    for (from, to, code) in [
        ("clientCapabilities", "clientCapabilitieX", "-32602"),
        (r#"rsion":"2026-07-28""#, r#"rsion":"2026-07-29""#, "-32020"),
    ] {
        let params = complete.text().replace(from, to);
        let body = params.split_once("\r\n\r\n").unwrap().1;
        let ask = post("/mcp", body).with("MCP-Protocol-Version", VERSION);
        let ask = ask.with("Mcp-Method", "tools/call").with("Mcp-Name", "files__talk");
        let answer = peer.ask(&ask).await;
        assert_eq!(member(&answer.body, "error.code"), code, "{answer:?}");
        assert_eq!(peer.ask(&complete).await.head.status, 200);
    }
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let harness = Harness::new().await;
    let list = request("tools/list", "");
    let cases = [
        (list.clone(), 200, ""),
        (list.clone().without("Mcp-Method"), 400, "-32020"),
        (list.clone().with("Mcp-Method", "prompts/list"), 400, "-32020"),
        (list.clone().with("Mcp-Method", "TOOLS/LIST"), 400, "-32020"),
        (list.clone().without("MCP-Protocol-Version"), 400, "-32020"),
        (list.clone().with("MCP-Protocol-Version", "2025-11-25"), 400, "-32020"),
        (list.with("MCP-Protocol-Version", "v999"), 400, "-32020"),
        (say().with("Mcp-Name", "  files__say  "), 200, ""),
        (say().with("Mcp-Name", "=?base64?ZmlsZXNfX3NheQ==?="), 200, ""),
        (say().with("Mcp-Name", "=?base64?ZmlsZXNfX3NheQ?="), 400, "-32020"),
        (say().with("Mcp-Name", "=?base64?#?="), 400, "-32020"),
        (say().with("Mcp-Name", "files__talk"), 400, "-32020"),
        (say().with("Mcp-Name", "Files__say"), 400, "-32020"),
        (say().without("Mcp-Name"), 400, "-32020"),
    ];
    for (ask, status, code) in cases {
        let answer = harness.ask(&ask).await;
        let got = (answer.head.status, member(&answer.body, "error.code"));
        assert_eq!(got, (status, code.to_owned()), "{}", ask.text());
        assert_eq!(member(&answer.body, "id"), "9");
    }
}

#[tokio::test]
async fn arguments_are_repeated_in_headers_where_the_tool_asks_for_it() {
    let harness = Harness::new().await;
    let mark = |arguments: &str| {
        let rest = format!(r#""name":"files__mark","arguments":{arguments},"#);
        request("tools/call", &rest).with("Mcp-Name", "files__mark")
    };
    let here = r#"{"place":"Hello"}"#;
    let cases = [
        (mark(here).with("Mcp-Param-Place", "Hello"), 200),
        (mark(here).with("mcp-param-PLACE", "=?base64?SGVsbG8=?="), 200),
        (mark(here).with("Mcp-Param-Other", "x").with("Mcp-Param-Place", "Hello"), 200),
        (mark("{}"), 200),
        (mark(r#"{"place":null}"#), 200),
        (mark(r#"{"place":"SGVsbG8="}"#).with("Mcp-Param-Place", "SGVsbG8="), 200),
        (mark(here), 400),
        (mark(here).with("Mcp-Param-Place", "hello"), 400),
        (mark(here).with("Mcp-Param-Place", ""), 400),
        (mark(here).with("Mcp-Param-Place", "=?base64?SGVsbG8?="), 400),
        (mark(here).with("Mcp-Param-Place", "=?base64?SGVs!!!bG8=?="), 400),
        (mark("{}").with("Mcp-Param-Place", "Hello"), 400),
    ];
    for (ask, status) in cases {
        let answer = harness.ask(&ask).await;
        assert_eq!(answer.head.status, status, "{}", ask.text());
        let code = if status == 400 { "-32020" } else { "" };
        assert_eq!(member(&answer.body, "error.code"), code, "{}", ask.text());
    }
    let own = r#""name":"mark","arguments":{"place":"Hello"},"#;
    let own = request("tools/call", own).at("/servers/files/mcp").with("Mcp-Name", "mark");
    assert_eq!(harness.ask(&own).await.head.status, 400);
    assert_eq!(harness.ask(&own.with("Mcp-Param-Place", "Hello")).await.head.status, 200);
}

#[tokio::test]
async fn the_status_goes_with_the_error() {
    let harness = Harness::new().await;
    let unknown = post(
        "/mcp",
        &format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{{{}}}}}"#,
            meta("v999")
        ),
    );
    let unknown =
        unknown.with("MCP-Protocol-Version", "v999").with("Mcp-Method", "server/discover");
    let no_meta = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#;
    let no_meta = post("/mcp", no_meta).with("Mcp-Method", "tools/list");
    let bare = r#"{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{}}"#;
    let cases = [
        (request("initialize", ""), 404, "-32601"),
        (request("ping", ""), 404, "-32601"),
        (request("no/such", ""), 404, "-32601"),
        (unknown, 400, "-32022"),
        (no_meta.with("MCP-Protocol-Version", VERSION), 400, "-32602"),
        (post("/mcp", bare), 400, "-32602"),
        (say().body("{"), 400, "-32700"),
        (request("tools/call", r#""name":7,"#), 400, "-32602"),
        (request("tools/call", r#""name":"\ud800","#), 400, "-32602"),
        (say().body("{}"), 400, "-32600"),
        (request("tools/call", r#""name":"none","#).with("Mcp-Name", "none"), 200, "-32602"),
    ];
    for (ask, status, code) in cases {
        let answer = harness.ask(&ask).await;
        let got = (answer.head.status, member(&answer.body, "error.code"));
        assert_eq!(got, (status, code.to_owned()), "{}", ask.text());
    }
}

#[tokio::test]
async fn there_is_no_session_to_open_or_end() {
    let harness = Harness::new().await;
    for method in ["GET", "DELETE"] {
        let answer =
            harness.ask(&http::request(method, "/mcp").with("MCP-Protocol-Version", VERSION)).await;
        assert_eq!((answer.head.status, answer.head.get("allow")), (405, Some("POST")));
    }
}

#[tokio::test]
async fn a_subscription_streams_at_once_and_ends_with_its_connection() {
    let harness = Harness::new().await;
    let listen = request("subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
    let mut peer = harness.peer().await;
    peer.send(&listen.text()).await;
    assert_eq!(peer.head().await.get("content-type"), Some("text/event-stream"));
    let first = peer.event().await.unwrap();
    assert!(first.contains("notifications/subscriptions/acknowledged"), "{first}");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_call_though_nothing_was_sent() {
    let harness = Harness::new().await;
    let wait = request("tools/call", r#""name":"files__wait","arguments":{},"#);
    let wait = wait.with("Mcp-Name", "files__wait");
    let mut peer = harness.peer().await;
    peer.send(&wait.text()).await;
    harness.server.waits(1).await;
    drop(peer);
    harness.server.waits(0).await;
}
