//! Rules about flows, at every front but the chat: a page is fetched, then a mail is sent.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

/// A world with the servers `web` and `post`, and this rule for the flow.
fn world(action: &str) -> World {
    let tool = |name: &str, about: &str, argument: &str| {
        let schema = json!({ "type": "object", "properties": { argument: { "type": "string" } } });
        json!({ "name": name, "description": about, "inputSchema": schema }).to_string()
    };
    let web = fixture("web", &["--tool", &tool("fetch_page", "Fetches a page", "url")]);
    let post = fixture("post", &["--tool", &tool("send_mail", "Sends a mail", "to")]);
    with(&format!("{ALL}[flows]\nuntrusted_then_send = \"{action}\"\n\n{web}{post}"))
}

fn fetch() -> Value {
    json!({ "name": "web__fetch_page", "arguments": { "url": "https://a.example" } })
}

fn send() -> Value {
    json!({ "name": "post__send_mail", "arguments": { "to": "ann" } })
}

/// True if a call was refused by the rule, false if it was answered.
#[track_caller]
fn is_refused(answer: &Value) -> bool {
    let result = &answer["result"];
    let code = &result["_meta"]["capstan/error"]["code"];
    assert!(result["content"].is_array(), "{answer}");
    if result["isError"] != true {
        return false;
    }
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(*code, "policy_blocked", "{answer}");
    assert!(
        text.contains("flows.untrusted_then_send") && text.contains("web__fetch_page"),
        "{text}"
    );
    true
}

#[test]
fn over_stdio_a_connection_is_a_conversation() {
    let world = world("deny");
    for calls in [[fetch(), send()], [send(), fetch()]] {
        let is_flow = calls[1] == send();
        let mut gateway = Gateway::start(&world, "");
        gateway.initialize("2025-11-25");
        assert!(!is_refused(&gateway.ask(1, "tools/call", &calls[0])));
        assert_eq!(is_refused(&gateway.ask(2, "tools/call", &calls[1])), is_flow);
        gateway.hang_up();
        assert_eq!(gateway.end(), Some(0));
    }
    let log: Value = serde_json::from_str(&world.capstan(["audit", "--json"]).run().ok()).unwrap();
    let by_flow =
        |row: &&Value| row["rule"].as_str().is_some_and(|rule| rule.starts_with("flows."));
    let refused: Vec<&Value> = log.as_array().unwrap().iter().filter(by_flow).collect();
    assert_eq!(refused.len(), 1, "{log}");
    assert!(refused[0]["rule"].as_str().unwrap().contains("web__fetch_page"));
    assert_eq!(
        (&refused[0]["item"], &refused[0]["verdict"]),
        (&json!("send_mail"), &json!("deny"))
    );
}

#[test]
fn over_http_a_session_is_a_conversation() {
    let world = world("deny");
    let (_gateway, address) = Gateway::listening(&world, "");
    let session = || {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } } });
        raw(&address, "", &hello)
    };
    let (one, other) = (session(), session());
    assert_ne!(one.0, other.0);
    let call = |session: &str, params: Value| {
        let header = format!("\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25");
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        is_refused(&raw(&address, &header, &call).1)
    };
    assert!(!call(&one.0, fetch()));
    assert!(call(&one.0, send()));
    assert!(!call(&other.0, send()));
}

#[test]
fn over_http_without_sessions_a_client_of_one_name_is_a_conversation() {
    let world = world("deny");
    let (_gateway, address) = Gateway::listening(&world, "");
    let call = |client: &str, params: Value| {
        let name = params["name"].as_str().unwrap().to_owned();
        let mut params = modern(params);
        params["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({ "name": client, "version": "1" });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let head = format!(
            "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {name}"
        );
        let (status, body) = http(&address, &head, &call.to_string());
        assert_eq!(status, 200, "{body}");
        is_refused(&serde_json::from_str(&body).unwrap())
    };
    assert!(!call("editor", fetch()));
    assert!(call("editor", send()));
    assert!(!call("chat", send()));
}

#[test]
fn on_the_command_line_each_call_is_a_conversation_also_inside_a_gateway() {
    let world = world("deny");
    let calls = |attached: bool| {
        for name in ["web__fetch_page", "post__send_mail"] {
            let words = if attached { vec!["--attach", "call", name] } else { vec!["call", name] };
            world.capstan(words).run().ok();
        }
    };
    calls(false);
    let (gateway, _) = Gateway::listening(&world, "");
    calls(true);
    drop(gateway);
}

#[test]
fn nothing_is_refused_without_a_rule_and_a_rule_that_asks_needs_a_person() {
    let world_off = world("off");
    let mut gateway = Gateway::start(&world_off, "");
    gateway.initialize("2025-11-25");
    for (id, call) in [(1, fetch()), (2, send())] {
        assert!(!is_refused(&gateway.ask(id, "tools/call", &call)));
    }
    let world_ask = world("ask");
    let mut gateway = Gateway::start(&world_ask, "");
    gateway.initialize("2025-11-25");
    assert!(!is_refused(&gateway.ask(1, "tools/call", &fetch())));
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": send() });
    gateway.send(&call.to_string());
    let told = gateway.hear();
    assert!(told.to_string().contains("waiting for approval: `post__send_mail`"), "{told}");
    let shown = world_ask.capstan(["approvals", "list"]).run().ok();
    assert!(shown.contains("send_mail"), "{shown}");
}

#[test]
fn why_tells_the_tags_and_the_rules_of_flows() {
    let world = world("deny");
    let ended = world.capstan(["why", "post__send_mail"]).run();
    assert!(ended.stderr.contains("it can send data out"), "{}", ended.stderr);
    assert!(ended.stderr.contains("flows.untrusted_then_send"), "{}", ended.stderr);
    let json = world.capstan(["why", "web__fetch_page", "--json"]).run().ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["tags"], json!(["untrusted", "addresses"]));
    assert_eq!(json["by_flows"], Value::Null);
}

/// Sends a request with these header lines: the id of the session, and the answer.
#[track_caller]
fn raw(address: &str, headers: &str, body: &Value) -> (String, Value) {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let accept = "application/json, text/event-stream";
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: {accept}\r\nConnection: close\r\nContent-Length: {}{headers}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let session = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
        .map(|(_, value)| value.to_owned())
        .unwrap_or_default();
    let json = body.lines().find_map(|line| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
    });
    (session, json.unwrap())
}
