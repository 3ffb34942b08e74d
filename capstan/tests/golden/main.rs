//! Golden files: the gateway's bytes on the wire in both eras, and the output of attached commands.
//!
//! They hold what users see still while the code behind it moves. Only values that differ from run
//! to run (dates, ids of sessions, folders) are replaced.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

#[expect(dead_code, reason = "it is shared, and not every test needs all of it")]
#[path = "../serve/stage.rs"]
mod stage;

use std::fmt::Write as _;

use capstan_testkit::http::{exchange, post};
use capstan_testkit::{Ended, World};
use serde_json::{Value, json};

use stage::{Gateway, fixture, modern, with};

/// One tool is denied; another is hidden below.
const RULES: &str = "[permissions]\nallow = [\"*\"]\ndeny = [\"f__add\"]\n\n";

/// Requests that reach every kind of item and every kind of refusal, in both eras.
fn requests() -> Vec<(&'static str, Value)> {
    let call = |name: &str, arguments: Value| {
        ("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    vec![
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        call("f__echo", json!({ "text": "hi", "n": 1.50 })),
        call("f__long_number", json!({})),
        call("f__weird", json!({})),
        call("f__log", json!({})),
        call("f__fail", json!({})),
        call("f__rpc_error", json!({ "code": -32099 })),
        call("f__add", json!({ "a": 1, "b": 2 })),
        call("f__count", json!({})),
        call("f__hang", json!({})),
        call("f__ehco", json!({})),
        call("nobody__echo", json!({})),
        ("resources/read", json!({ "uri": "fixture://greeting" })),
        ("resources/read", json!({ "uri": "fixture://nothing" })),
        ("prompts/get", json!({ "name": "f__greet", "arguments": { "name": "you" } })),
        ("prompts/get", json!({ "name": "f__nothing" })),
        ("completion/complete", completion()),
        ("no/such/method", json!({})),
    ]
}

fn completion() -> Value {
    let reference = json!({ "type": "ref/prompt", "name": "f__greet" });
    json!({ "ref": reference, "argument": { "name": "name", "value": "y" } })
}

fn world() -> World {
    with(&format!("{RULES}{}hide = [\"hang\"]\n", fixture("f", &[])))
}

fn request(id: usize, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Sends requests one after the other over stdio, and writes down both directions.
fn over_stdio(requests: &[(&str, Value)]) -> String {
    let world = world();
    let mut gateway = Gateway::start(&world, "");
    let mut written = String::new();
    for (id, (method, params)) in requests.iter().enumerate() {
        if method.starts_with("notifications/") {
            gateway.send(&json!({ "jsonrpc": "2.0", "method": method }).to_string());
            continue;
        }
        let line = request(id, method, params);
        gateway.send(&line);
        writeln!(written, "> {line}").unwrap();
        loop {
            let heard = gateway.hear_line();
            writeln!(written, "< {heard}").unwrap();
            let message: Value = serde_json::from_str(&heard).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                break;
            }
        }
    }
    written
}

/// Sends one request over HTTP: the head without its date and session, and the body.
fn over_http(address: &str, headers: &[String], body: &str) -> String {
    let mut request = post("/mcp", body);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.and(name, value);
    }
    exchange(address, request)
}

fn without_what_differs(answer: &str) -> String {
    let keep = |line: &&str| !line.starts_with("date: ");
    let hide = |line: &str| match line.strip_prefix("mcp-session-id: ") {
        Some(_) => "mcp-session-id: SESSION".to_owned(),
        None => line.to_owned(),
    };
    let lines: Vec<String> = answer.split("\r\n").filter(keep).map(hide).collect();
    lines.join("\n")
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    answer.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn the_wire_of_a_legacy_client_over_stdio() {
    let client = json!({ "name": "golden", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let mut all = vec![("initialize", hello), ("notifications/initialized", Value::Null)];
    all.extend(requests());
    insta::assert_snapshot!("legacy_stdio", over_stdio(&all));
}

#[test]
fn the_wire_of_a_modern_client_over_stdio() {
    let mut all = vec![("server/discover", json!({}))];
    all.extend(requests());
    let all: Vec<(&str, Value)> =
        all.into_iter().map(|(method, params)| (method, modern(params))).collect();
    insta::assert_snapshot!("modern_stdio", over_stdio(&all));
}

#[test]
fn the_wire_of_a_legacy_client_over_http() {
    let world = world();
    let (_gateway, address) = Gateway::listening(&world, "");
    let client = json!({ "name": "golden", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let first = over_http(&address, &[], &request(0, "initialize", &hello));
    let session = header(&first, "mcp-session-id").unwrap();
    let headers =
        [format!("Mcp-Session-Id: {session}"), "MCP-Protocol-Version: 2025-11-25".to_owned()];
    let mut written = without_what_differs(&first);
    for (id, (method, params)) in requests().iter().enumerate() {
        let line = request(id, method, params);
        let answer = without_what_differs(&over_http(&address, &headers, &line));
        write!(written, "\n\n> {line}\n{answer}").unwrap();
    }
    insta::assert_snapshot!("legacy_http", written);
}

#[test]
fn the_wire_of_a_modern_client_over_http() {
    let world = world();
    let (_gateway, address) = Gateway::listening(&world, "");
    let mut written = String::new();
    for (id, (method, params)) in requests().into_iter().enumerate() {
        let mut headers =
            vec!["MCP-Protocol-Version: 2026-07-28".to_owned(), format!("Mcp-Method: {method}")];
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
        headers.extend(name.map(|name| format!("Mcp-Name: {name}")));
        let line = request(id, method, &modern(params));
        let answer = without_what_differs(&over_http(&address, &headers, &line));
        write!(written, "\n\n> {line}\n{answer}").unwrap();
    }
    insta::assert_snapshot!("modern_http", written);
}

#[test]
fn the_output_of_attached_commands() {
    let world = world();
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    gateway.ask(1, "tools/list", &json!({}));
    let mut written = String::new();
    let commands = [
        "tools f__echo",
        "tools --json",
        "call f__echo text=hi",
        "call f__echo text=hi --json",
        "call f__weird --json",
        "call f__fail",
        "call f__add a=1 b=2",
        "call f__ehco",
        "resources",
        "resources --json",
        "read @f:fixture://greeting",
        "read @f:fixture://greeting --json",
        "prompts",
        "prompts --json",
        "prompt f__greet name=you",
        "prompt f__greet name=you --json",
        "get nobody",
    ];
    for words in commands {
        let all = format!("--attach {words}");
        let Ended { status, stdout, stderr } = world.capstan(all.split_whitespace()).run();
        write!(written, "$ capstan {all}\n{stdout}{stderr}= {status:?}\n\n").unwrap();
    }
    let home = world.home().display().to_string();
    insta::assert_snapshot!("attached", written.replace(&home, "HOME"));
}
