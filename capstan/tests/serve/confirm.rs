//! Who confirms calls that only the default asks about: Capstan, or the client's own dialog.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::binary;
use serde_json::{Value, json};

use crate::approvals::{count, grounds, text};
use crate::stage::{Gateway, fixture, http, modern, with};

/// A call is refused at once.
const HASTY: &str = "[gateway]\napproval_wait = \"0s\"\n";

/// The key that leaves the defaults to the client.
const BY_CLIENT: &str = "confirm = \"client\"\n";

/// The result of a call that writes, at a gateway with these settings, and how it was approved.
#[track_caller]
fn result(words: &str, config: &str) -> (Value, Vec<String>) {
    let world = with(&format!("{config}\n{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, words);
    gateway.initialize("2025-11-25");
    let result = count(&mut gateway, 1);
    (result, grounds(&world, gateway))
}

#[test]
fn a_default_ask_is_left_to_the_client_where_the_entry_or_the_configuration_says_so() {
    let key = format!("{HASTY}{BY_CLIENT}");
    for (words, config) in [("--confirm client", HASTY), ("", &key), ("--confirm client", &key)] {
        let (result, grounds) = result(words, config);
        assert_eq!(text(&result), "1", "{words} {config}");
        assert_eq!(grounds, ["client_confirms"], "{words} {config}");
    }
}

#[test]
fn nothing_else_is_left_to_the_client() {
    let ask = format!("{HASTY}\n[permissions]\nask = [\"f__count\"]\n");
    let deny = format!("{HASTY}\n[permissions]\ndeny = [\"f__count\"]\n");
    let denied = format!("{HASTY}\n[permissions]\ndefault = \"deny\"\n");
    let key = format!("{HASTY}{BY_CLIENT}");
    for (words, config) in [
        ("", HASTY),
        ("--confirm capstan", HASTY),
        ("--confirm capstan", &key),
        ("--confirm client", &ask),
        ("--confirm client", &deny),
        ("--confirm client", &denied),
    ] {
        let (result, grounds) = result(words, config);
        // A tool that is denied is not there at all.
        assert_ne!(result["isError"], false, "{words} {config}");
        assert_ne!(grounds, ["client_confirms"], "{words} {config}");
    }
}

#[test]
fn a_new_tool_of_a_known_server_is_not_left_to_the_client() {
    let world = with("");
    let (tool, fixture) = (world.home().join("tool.json"), binary("capstan-fixture"));
    let script =
        format!("#!/bin/sh\nexec '{}' --tool \"$(cat '{}')\"\n", fixture.display(), tool.display());
    let script = world.write("server", script);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display();
    world.write_user_config(&format!("{HASTY}\n[servers.f]\ncommand = '{script}'\n"));
    let has = |name: &str| {
        let definition = json!({ "name": name, "inputSchema": { "type": "object" } });
        world.write(&tool, definition.to_string());
    };
    has("mail");
    world.capstan(["tools", "f"]).run().ok();
    has("letter");
    let mut gateway = Gateway::start(&world, "--confirm client");
    gateway.initialize("2025-11-25");
    let call = |gateway: &mut Gateway, id, name: &str| {
        gateway.ask(id, "tools/call", &json!({ "name": name, "arguments": {} }))["result"].clone()
    };
    let refused = call(&mut gateway, 2, "f__letter");
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("pins"), "{refused}");
    assert_eq!(call(&mut gateway, 3, "f__count")["isError"], false);
}

#[test]
fn clients_over_http_are_asked_by_capstan_whatever_the_key_says() {
    let world = with(&format!("{HASTY}{BY_CLIENT}\n{}", fixture("f", &[])));
    let (_gateway, address) = Gateway::listening(&world, "");
    let params = modern(json!({ "name": "f__count", "arguments": {} }));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                Mcp-Method: tools/call\r\nMcp-Name: f__count";
    let (_, body) = http(&address, head, &call.to_string());
    assert!(body.contains("permissions.default: ask-writes"), "{body}");
    let refused = world.capstan(["serve", "--http", ":0", "--confirm", "client"]).run();
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
}

#[test]
fn a_project_cannot_leave_calls_to_the_client() {
    let world = with(&format!("{HASTY}\n{}", fixture("f", &[])));
    world.write_project_config(&format!("[gateway]\n{BY_CLIENT}"));
    world.capstan(["trust", "--yes"]).run().ok();
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    assert_eq!(count(&mut gateway, 1)["isError"], true);
}
