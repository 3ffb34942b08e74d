//! One client over stdin and stdout.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, echoed, fixture, modern, tool_names, with};

fn world() -> World {
    with(&format!("{ALL}{}", fixture("f", &[])))
}

fn code(answer: &Value) -> (Value, i64) {
    (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap_or_default())
}

#[test]
fn a_legacy_client_gets_the_revision_it_asks_for_and_calls_a_tool() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let world = world();
        let mut gateway = Gateway::start(&world, "");
        let hello = gateway.initialize(revision);
        assert_eq!(hello["protocolVersion"], revision);
        assert_eq!(hello["serverInfo"]["name"], "capstan");
        let tools = gateway.ask(1, "tools/list", &json!({}));
        assert!(tool_names(&tools).contains(&"f__echo".to_owned()), "{tools}");
        let call = json!({ "name": "f__echo", "arguments": { "text": "hé" } });
        let answer = gateway.ask(2, "tools/call", &call);
        assert_eq!(echoed(&answer), "hé", "{revision}");
        assert_eq!(gateway.ask(3, "ping", &json!({}))["result"], json!({}));
        gateway.hang_up();
        assert_eq!(gateway.end(), Some(0));
        assert_eq!(gateway.rest(), [""; 0]);
    }
}

#[test]
fn a_modern_client_needs_no_handshake_and_both_eras_share_a_connection() {
    let world = world();
    let mut gateway = Gateway::start(&world, "");
    assert_eq!(gateway.ask(0, "ping", &json!({}))["result"], json!({}), "before anything else");
    let discovered = gateway.ask(1, "server/discover", &modern(json!({})));
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
    let call = json!({ "name": "f__echo", "arguments": { "text": "hi" } });
    let answer = gateway.ask(2, "tools/call", &modern(call.clone()));
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    gateway.initialize("2025-06-18");
    assert_eq!(echoed(&gateway.ask(3, "tools/call", &call)), "hi");
    assert_eq!(gateway.ask(4, "tools/call", &modern(call))["result"]["resultType"], "complete");
}

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    let world = world();
    let mut gateway = Gateway::start(&world, "");
    for (line, expected) in [
        ("rubbish", (Value::Null, -32700)),
        ("{", (Value::Null, -32700)),
        ("[1", (Value::Null, -32700)),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, (json!(7), -32600)),
        (r#"{"id":"x"}"#, (json!("x"), -32600)),
        ("[]", (Value::Null, -32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, (json!(1), -32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, (json!(1), -32602)),
    ] {
        gateway.send(line);
        assert_eq!(code(&gateway.hear()), expected, "{line}");
    }
    gateway.send("\n\r\n  ");
    assert_eq!(gateway.initialize("2025-06-18")["protocolVersion"], "2025-06-18");
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let world = world();
    let mut gateway = Gateway::start(&world, "");
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(17 << 20)));
    assert_eq!(code(&gateway.hear()), (Value::Null, -32600));
    let call = json!({ "name": "f__echo", "arguments": { "text": "y".repeat(3 << 20) } });
    gateway.initialize("2025-06-18");
    let answer = gateway.ask(2, "tools/call", &call);
    assert_eq!(echoed(&answer).len(), 3 << 20);
}

#[test]
fn a_batch_is_answered_as_one_where_the_revision_has_batches() {
    let world = world();
    let mut gateway = Gateway::start(&world, "");
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/whatever" });
    let hello = json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {} });
    let batch = json!([ping(1), told, ping(2), { "id": 3 }, hello]).to_string();
    gateway.initialize("2025-03-26");
    gateway.send(&json!([told]).to_string());
    gateway.send(&batch);
    let answers = gateway.hear();
    let mut codes: Vec<(Value, i64)> = answers.as_array().unwrap().iter().map(code).collect();
    codes.sort_by_key(|(id, _)| id.as_u64());
    let expected = [(json!(1), 0), (json!(2), 0), (json!(3), -32600), (json!(9), -32600)];
    assert_eq!(codes, expected, "{answers}");
    let mut newer = Gateway::start(&world, "");
    newer.initialize("2025-06-18");
    newer.send(&batch);
    assert_eq!(code(&newer.hear()), (Value::Null, -32600));
}

#[test]
fn requests_run_side_by_side_and_one_that_is_cancelled_is_not_answered() {
    for wrap in [|params| params, modern] {
        let world = world();
        let mut gateway = Gateway::start(&world, "");
        gateway.initialize("2025-06-18");
        let request = |id: &str, name: &str, arguments: Value| {
            let params = wrap(json!({ "name": name, "arguments": arguments }));
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        gateway.send(&request("slow", "f__slow", json!({ "ms": 40_000 })).to_string());
        gateway.send(&request("quick", "f__echo", json!({ "text": "q" })).to_string());
        assert_eq!(gateway.hear()["id"], "quick");
        let cancelled = json!({ "requestId": "slow" });
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
        gateway.send(&cancelled.to_string());
        gateway.send(&request("last", "f__echo", json!({ "text": "l" })).to_string());
        assert_eq!(gateway.hear()["id"], "last");
        gateway.hang_up();
        // Had the slow one not been cancelled, it would now be waited for.
        assert_eq!(gateway.end(), Some(0));
        assert_eq!(gateway.rest(), [""; 0]);
    }
}

#[test]
fn a_caller_without_a_rule_may_read_and_is_written_down_as_anonymous() {
    let hasty = "[gateway]\napproval_wait = \"0s\"\n\n";
    let world = with(&format!("{hasty}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-06-18");
    let call = json!({ "name": "f__echo", "arguments": { "text": "hi" } });
    let answer = gateway.ask(1, "tools/call", &call);
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
    let log = std::fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    let entry: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&entry["caller"], &entry["front"]), (&json!("anonymous"), &json!("gateway")));
    assert_eq!(entry["item"], "echo", "{answer}");
}

#[test]
fn stdout_has_nothing_but_messages_whatever_the_servers_and_the_log_say() {
    let noisy = fixture("noisy", &["--garbage", "--stderr", "50"]);
    let world = with(&format!("{ALL}{noisy}{}", fixture("dead", &["--exit", "3"])));
    let mut gateway = Gateway::start(&world, "--debug");
    gateway.initialize("2025-06-18");
    let call = json!({ "name": "noisy__echo", "arguments": { "text": "hi" } });
    assert_eq!(echoed(&gateway.ask(1, "tools/call", &call)), "hi");
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
    for line in gateway.rest() {
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
}
