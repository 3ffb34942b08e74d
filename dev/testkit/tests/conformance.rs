//! The conformance server where the suite does not look: stdio, one tool in both eras, HTTP with
//! SSE, cancellation, and the bytes of odd answers.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use capstan_testkit::binary;
use capstan_testkit::peer::Peer;
use capstan_testkit::process::command;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(20);

fn server(arguments: &[&str]) -> Command {
    let mut command = command(binary("capstan-conformance-server"));
    command.args(arguments);
    command
}

/// A client over stdio that can be asked anything.
fn legacy(revision: &str) -> Peer {
    let arguments = ["--stdio", "--era", "legacy", "--revision", revision];
    let mut peer = Peer::spawn(server(&arguments)).unwrap();
    let capabilities =
        json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    let info = json!({ "name": "test", "version": "1" });
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info,
    });
    let answer = read(&peer.request("initialize", &hello.to_string()).unwrap());
    assert_eq!(answer.pointer("/result/protocolVersion"), Some(&json!(revision)));
    peer
}

/// Sends a request whose answer is not waited for.
fn send(peer: &mut Peer, id: &str, tool: &str, arguments: &Value) {
    let params =
        json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "token" } });
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    peer.send(&line.to_string()).unwrap();
}

fn next(peer: &mut Peer) -> Value {
    read(&peer.next(|_| true).unwrap())
}

fn modern(params: &Value, capabilities: &Value) -> String {
    let mut params = params.clone();
    params.as_object_mut().unwrap().insert(
        "_meta".to_owned(),
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }),
    );
    params.to_string()
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn text(answer: &Value) -> &str {
    answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default()
}

/// A server over HTTP, killed when this is dropped.
struct Http {
    child: Child,
    address: String,
}

impl Http {
    fn start(arguments: &[&str]) -> Self {
        let mut command = server(&["--http", "127.0.0.1:0"]);
        let mut child = command.args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on http://").unwrap();
        Self { child, address: url.strip_suffix("/mcp").unwrap().to_owned() }
    }

    /// Sends a request, and gives the connection to read from.
    fn send(&self, head: &str, body: &str) -> BufReader<TcpStream> {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let length = body.len();
        let fixed = "Host: localhost\r\nContent-Type: application/json\r\n\
                     Accept: application/json, text/event-stream\r\nConnection: close\r\n";
        let request = format!("{head}{fixed}Content-Length: {length}\r\n\r\n{body}");
        socket.write_all(request.as_bytes()).unwrap();
        BufReader::new(socket)
    }

    fn modern(&self, tool: &str, arguments: &Value) -> BufReader<TcpStream> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.modern_request("tools/call", tool, &params)
    }

    fn modern_request(&self, method: &str, name: &str, params: &Value) -> BufReader<TcpStream> {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
             Mcp-Name: {name}\r\n"
        );
        let mut params = read(&modern(params, &json!({})));
        params["_meta"]["progressToken"] = json!("token");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(&head, &body.to_string())
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Reads on until a line contains that.
fn line_with(reader: &mut BufReader<TcpStream>, part: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "ended before `{part}`");
        if line.contains(part) {
            return line.trim().to_owned();
        }
    }
}

#[test]
fn a_legacy_client_is_asked_one_question_after_the_other_within_the_call() {
    let mut peer = legacy("2025-11-25");
    send(&mut peer, "call", "test_input_required_result_multi_round", &json!({}));
    for (message, content) in
        [("name", json!({ "name": "Ada" })), ("color", json!({ "color": "red" }))]
    {
        let asked = next(&mut peer);
        assert_eq!(asked["method"], "elicitation/create");
        assert!(asked["params"]["message"].as_str().unwrap().contains(message));
        let said = json!({ "action": "accept", "content": content });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": said });
        peer.send(&answer.to_string()).unwrap();
    }
    assert_eq!(text(&next(&mut peer)), "Ada likes red");
}

#[test]
fn a_modern_client_is_asked_by_results_and_its_state_must_come_back_as_it_was() {
    let mut peer = Peer::spawn(server(&["--stdio", "--era", "modern"])).unwrap();
    let mut call = |more: &Value| {
        let mut params = json!({ "name": "elicit_form", "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let params = modern(&params, &json!({ "elicitation": {} }));
        read(&peer.request("tools/call", &params).unwrap())
    };
    let asked = call(&json!({}));
    assert_eq!(asked["result"]["resultType"], "input_required");
    let state = asked["result"]["requestState"].as_str().unwrap();
    let said = json!({ "answer": { "action": "accept", "content": { "name": "Ada" } } });
    let done = call(&json!({ "inputResponses": said, "requestState": state }));
    assert_eq!(text(&done), r#"action=accept, content={"name":"Ada"}"#);
    let forged = call(&json!({ "inputResponses": said, "requestState": format!("{state}x") }));
    assert_eq!(forged["error"]["code"], -32602);
    let stateless = call(&json!({ "inputResponses": said }));
    assert_eq!(stateless["result"]["resultType"], "input_required");
}

#[test]
fn what_a_revision_cannot_express_is_not_offered() {
    for (revision, elicits, visits) in [
        ("2024-11-05", false, false),
        ("2025-03-26", false, false),
        ("2025-06-18", true, false),
        ("2025-11-25", true, true),
    ] {
        let mut peer = legacy(revision);
        let list = peer.request("tools/list", "{}").unwrap();
        assert_eq!(list.contains(r#""elicit_form""#), elicits, "{revision}");
        assert_eq!(list.contains(r#""elicit_url""#), visits, "{revision}");
        if !visits {
            let refused = read(&peer.call("elicit_url", "{}").unwrap());
            assert_eq!(refused["error"]["code"], -32602, "{revision}");
        }
    }
}

#[test]
fn progress_and_log_messages_come_in_order_and_before_the_answer() {
    let mut peer = legacy("2025-06-18");
    send(&mut peer, "call", "progress", &json!({ "steps": 2 }));
    for step in 1..=2 {
        assert_eq!(next(&mut peer)["params"]["progress"], step);
        assert_eq!(next(&mut peer)["params"]["data"], format!("log {step}"));
    }
    assert_eq!(text(&next(&mut peer)), "2 steps");
}

#[test]
fn a_cancelled_call_stays_unanswered_and_is_written_down() {
    let mut peer = legacy("2025-11-25");
    let subscribe = r#"{"uri":"test://events"}"#;
    peer.request("resources/subscribe", subscribe).unwrap();
    send(&mut peer, "call", "wait_for_cancel", &json!({ "tag": "x" }));
    peer.next(|line| line.contains("notifications/progress")).unwrap();
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "call" },
    });
    peer.send(&cancel.to_string()).unwrap();
    peer.next(|line| line.contains("notifications/resources/updated")).unwrap();
    let events = read(&peer.request("resources/read", subscribe).unwrap());
    assert_eq!(events["result"]["contents"][0]["text"], "started x\ncancelled x\n");
}

#[test]
fn a_call_that_needs_a_visit_fails_until_it_is_made() {
    let mut peer = legacy("2025-11-25");
    let place = "https://example.com/here";
    let arguments = json!({ "url": place }).to_string();
    let refused = read(&peer.call("url_required", &arguments).unwrap());
    assert_eq!(refused["error"]["code"], -32042);
    let visit = &refused["error"]["data"]["elicitations"][0];
    assert_eq!(visit["url"], place);
    let unknown = read(&peer.call("finish_visit", r#"{"elicitationId":"other"}"#).unwrap());
    assert_eq!(unknown["error"]["code"], -32602);
    send(&mut peer, "finish", "finish_visit", &json!({ "elicitationId": visit["elicitationId"] }));
    assert_eq!(next(&mut peer)["method"], "notifications/elicitation/complete");
    assert_eq!(text(&next(&mut peer)), "finished");
    assert_eq!(text(&read(&peer.call("url_required", &arguments).unwrap())), "visited");
}

#[test]
fn odd_answers_are_those_of_the_fixture_to_the_byte() {
    let mut fixture = Peer::spawn(command(binary("capstan-fixture"))).unwrap();
    fixture.initialize().unwrap();
    let mut peer = legacy("2025-11-25");
    let result = |line: String| line.split_once(r#""result":"#).unwrap().1.to_owned();
    for tool in ["weird", "long_number"] {
        let expected = result(fixture.call(tool, "{}").unwrap());
        assert_eq!(result(peer.call(tool, "{}").unwrap()), expected);
    }
}

#[test]
fn a_modern_client_that_goes_away_has_cancelled() {
    let http = Http::start(&["--era", "modern"]);
    let filter = json!({ "notifications": { "resourceSubscriptions": ["test://events"] } });
    let mut listening = http.modern_request("subscriptions/listen", "", &filter);
    line_with(&mut listening, "notifications/subscriptions/acknowledged");
    let mut calling = http.modern("wait_for_cancel", &json!({ "tag": "gone" }));
    line_with(&mut calling, "notifications/progress");
    line_with(&mut listening, "notifications/resources/updated");
    drop(calling);
    line_with(&mut listening, "notifications/resources/updated");
    let uri = "test://events";
    let mut events = http.modern_request("resources/read", uri, &json!({ "uri": uri }));
    line_with(&mut events, "cancelled gone");
}

#[test]
fn how_a_task_goes_is_told_to_whoever_listens_to_it() {
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": {} });
    let mut peer = Peer::spawn(server(&["--stdio", "--era", "modern"])).unwrap();
    let mut ask = |method: &str, params: &Value, able: &Value| {
        read(&peer.request(method, &modern(params, able)).unwrap())
    };
    let wanted = |id: &Value| json!({ "notifications": { "taskIds": [id, "other", 7] } });
    let call = json!({ "name": "confirm_delete", "arguments": { "filename": "x" } });
    let id = ask("tools/call", &call, &tasks)["result"]["taskId"].clone();
    while ask("tasks/get", &json!({ "taskId": id }), &tasks)["result"]["status"] == "working" {}
    let refused = ask("subscriptions/listen", &wanted(&id), &json!({}));
    assert_eq!(refused["error"]["code"], -32021);

    let params = read(&modern(&wanted(&id), &tasks));
    let listen = json!({
        "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params,
    });
    peer.send(&listen.to_string()).unwrap();
    let acknowledged = next(&mut peer);
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": [id] }));
    let answers = json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });
    let update = json!({ "taskId": id, "inputResponses": answers });
    let params = read(&modern(&update, &tasks));
    // What answers nothing changes nothing.
    for number in [1, 2] {
        let update = json!({
            "jsonrpc": "2.0", "id": number, "method": "tasks/update", "params": params,
        });
        peer.send(&update.to_string()).unwrap();
    }
    let mut told = Vec::new();
    while told.last().is_none_or(|last| *last != "completed") {
        let line = peer.next(|line| line.contains("notifications/tasks")).unwrap();
        let params = &read(&line)["params"];
        assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
        assert_eq!(params["taskId"], id);
        told.push(params["status"].as_str().unwrap().to_owned());
    }
    assert_eq!(told, ["working", "completed"]);
}

#[test]
fn http_with_sse_answers_on_the_stream_and_not_on_the_request() {
    let http = Http::start(&["--era", "legacy", "--revision", "2024-11-05"]);
    let mut stream = http.send("GET /sse HTTP/1.1\r\n", "");
    let endpoint = line_with(&mut stream, "/messages?sessionId=");
    let head = format!("POST {} HTTP/1.1\r\n", endpoint.strip_prefix("data: ").unwrap());
    let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let mut answer = String::new();
    http.send(&head, &body.to_string()).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    assert!(!answer.contains("protocolVersion"), "{answer}");
    line_with(&mut stream, r#""protocolVersion":"2024-11-05""#);
}

#[test]
fn an_era_that_is_not_spoken_is_refused() {
    let status = |mut reader: BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    let modern = Http::start(&["--era", "modern"]);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    assert_eq!(status(modern.send("POST /mcp HTTP/1.1\r\n", hello)), "400");
    assert_eq!(status(modern.send("GET /mcp HTTP/1.1\r\n", "")), "405");
    assert_eq!(status(modern.send("DELETE /mcp HTTP/1.1\r\n", "")), "405");
    assert_eq!(status(modern.send("GET /sse HTTP/1.1\r\n", "")), "404");
    let legacy = Http::start(&["--era", "legacy"]);
    assert_eq!(status(legacy.modern("echo", &json!({}))), "400");
    assert_eq!(status(legacy.send("POST /mcp HTTP/1.1\r\n", hello)), "200");
}
