//! A run of a real server, recorded and replayed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::stdio::entry;
use crate::{ALLOW, installed};

/// The requests of the client, in this order.
fn requests() -> Vec<Value> {
    let call = |name: &str, arguments: Value| {
        ("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    let client = json!({ "name": "c", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let mut progress = call("trigger-long-running-operation", json!({ "duration": 1, "steps": 4 }));
    progress.1["_meta"] = json!({ "progressToken": "p" });
    let asked = [
        ("initialize", hello),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        call("echo", json!({ "message": "ü \"quoted\" \u{1f600}" })),
        call("get-sum", json!({ "a": 2, "b": 40 })),
        call("get-tiny-image", json!({})),
        call("get-structured-content", json!({ "location": "Chicago" })),
        call("get-resource-links", json!({ "count": 3 })),
        progress,
        call("get-sum", json!({ "a": "no number", "b": 40 })),
        ("prompts/get", json!({ "name": "simple-prompt" })),
        ("no/such/method", json!({})),
        ("ping", json!({})),
    ];
    let numbered = asked.into_iter().enumerate().map(|(id, (method, params))| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    });
    numbered.collect()
}

/// Asks a command, each time after the answer to the last request; returns every byte of it.
#[track_caller]
fn talk(world: &World, words: &[&str]) -> Vec<u8> {
    let mut command = world.capstan(words).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut all = Vec::new();
    for request in requests() {
        writeln!(input, "{request}").unwrap();
        loop {
            let mut line = Vec::new();
            assert_ne!(output.read_until(b'\n', &mut line).unwrap(), 0, "{words:?} ended");
            all.extend_from_slice(&line);
            let message: Value = serde_json::from_slice(&line).unwrap();
            if message["id"] == request["id"] && message.get("method").is_none() {
                break;
            }
        }
        if request["method"] == "initialize" {
            writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        }
    }
    drop(input);
    output.read_to_end(&mut all).unwrap();
    assert!(child.wait().unwrap().success());
    all
}

#[test]
fn a_run_of_everything_is_replayed_byte_for_byte() {
    let world = World::new();
    let server = entry("it", &[&installed("mcp-server-everything")], "");
    world.write_user_config(&format!("{ALLOW}{server}"));
    let run = talk(&world, &["record", "it", "-o", "run.cassette"]);
    let text = String::from_utf8(run.clone()).unwrap();
    for expected in
        ["The sum of 2 and 40 is 42.", "notifications/progress", "image/png", "\"error\""]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // The server is gone, and the recording is all there is.
    world.write_user_config("");
    assert!(talk(&world, &["replay", "run.cassette"]) == run, "another run:\n{text}");
}
