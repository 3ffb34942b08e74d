//! What a call says on its way, however much that is.

use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

const STEPS: usize = 3000;

/// A call that tells of all of its steps.
fn call() -> Value {
    let mut params = modern(json!({ "name": "f__progress", "arguments": { "steps": STEPS } }));
    params["_meta"]["progressToken"] = json!("t");
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[track_caller]
fn check(messages: impl Iterator<Item = Value>) {
    let mut steps = 0;
    for message in messages {
        if message.get("method").is_none() {
            assert_eq!((steps, &message["result"]["content"][0]["text"]), (STEPS, &json!("done")));
            return;
        }
        steps += 1;
        assert_eq!(message["params"]["progress"], json!(steps), "{message}");
    }
    unreachable!("there was no answer");
}

#[test]
fn all_of_it_arrives_in_order_before_the_answer() {
    for era in ["legacy", "modern"] {
        let world = with(&format!("{ALL}{}", fixture("f", &["--era", era])));
        let (_gateway, address) = Gateway::listening(&world, "");
        let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                    Mcp-Method: tools/call\r\nMcp-Name: f__progress";
        let (_, body) = http(&address, head, &call().to_string());
        let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        check(events.map(|event| serde_json::from_str(event).unwrap()));

        let mut gateway = Gateway::start(&world, "");
        gateway.send(&call().to_string());
        check(std::iter::from_fn(|| Some(gateway.hear())));
    }
}
