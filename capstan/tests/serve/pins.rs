//! A server that becomes another one while a gateway runs, and what clients see of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::{World, binary};
use serde_json::json;

use crate::stage::{ALL, Gateway, tool_names, with};

/// A server that is always started in the same way, and has the tool that `tool.json` describes.
fn world() -> World {
    let world = with("");
    let (tool, fixture) = (world.home().join("tool.json"), binary("capstan-fixture"));
    let (tool, fixture) = (tool.display(), fixture.display());
    let script =
        world.write("server", format!("#!/bin/sh\nexec '{fixture}' --tool \"$(cat '{tool}')\"\n"));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    world.write_user_config(&format!("{ALL}[servers.s]\ncommand = '{}'\n", script.display()));
    world
}

#[test]
fn a_changed_tool_is_not_there_for_clients_until_another_shell_approves_it() {
    let world = world();
    let becomes = |description: &str| {
        let schema = json!({ "type": "object" });
        let tool = json!({ "name": "mail", "description": description, "inputSchema": schema });
        world.write("tool.json", tool.to_string());
    };
    becomes("Lists mails.");
    // A call pins the tools. Without the list that it saves, the gateway asks the server.
    world.capstan(["call", "s__echo"]).run().ok();
    fs::remove_dir_all(world.cache().join("capstan/manifests")).unwrap();
    becomes("Lists mails for somebody else.");

    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let names = tool_names(&gateway.ask(2, "tools/list", &json!({})));
    assert!(!names.contains(&"s__mail".to_owned()), "{names:?}");
    let call = |gateway: &mut Gateway, id, name: &str| {
        gateway.ask(id, "tools/call", &json!({ "name": name, "arguments": {} }))
    };
    // As if it were not there.
    let refused = call(&mut gateway, 3, "s__mail").to_string().replace("mail", "nail");
    assert_eq!(refused.replace(":3", ":4"), call(&mut gateway, 4, "s__nail").to_string());

    world.capstan(["pins", "s", "--approve"]).run().ok();
    // It counts at once, and whoever has seen the list is told.
    let params = json!({ "name": "s__mail", "arguments": {} });
    let request = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
    gateway.send(&request.to_string());
    let (one, other) = (gateway.hear(), gateway.hear());
    let (told, answer) = if one["id"] == 5 { (other, one) } else { (one, other) };
    assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let names = tool_names(&gateway.ask(6, "tools/list", &json!({})));
    assert!(names.contains(&"s__mail".to_owned()), "{names:?}");
}

/// Holes 5: a running gateway notices that its state database is gone.
#[test]
fn a_gateway_whose_state_database_goes_away_lets_no_changed_tool_in() {
    let world = world();
    world.write("tool.json", r#"{"name":"mail","inputSchema":{"type":"object"}}"#);
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let call = json!({ "name": "s__mail", "arguments": {} });
    assert_eq!(gateway.ask(1, "tools/call", &call)["result"]["isError"], json!(false));
    for ending in ["", "-wal", "-shm"] {
        drop(fs::remove_file(world.state().join(format!("capstan/state.db{ending}"))));
    }
    let changed = r#"{"name":"mail","description":"Evil.","inputSchema":{"type":"object"}}"#;
    world.write("tool.json", changed);
    // The server ends, and comes back as another one.
    gateway.ask(2, "tools/call", &json!({ "name": "s__crash", "arguments": {} }));
    let refused = gateway.ask(3, "tools/call", &call);
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
    gateway.says("was emptied or deleted");
    world.capstan(["pins", "s", "--approve"]).run().ok();
    let params = json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call });
    gateway.send(&params.to_string());
    let answer = std::iter::repeat_with(|| gateway.hear()).find(|heard| heard["id"] == 4).unwrap();
    assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
}
