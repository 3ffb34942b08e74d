//! Access rules at the gateway: a role that reads, and what it is told of the rest.

use serde_json::{Value, json};

use crate::stage::{Gateway, fixture, http, modern, with};

/// Two servers; whoever comes over the network may read one of them.
fn config() -> String {
    let effect = "expose = [\"echo\", \"tool_*\"]\n\
                  effect = { read = [\"echo\"], write = [\"tool_*\"] }\n";
    format!(
        "[permissions]\nallow = [\"*\"]\n\n[access]\ndefault = \"deny\"\n\
         [access.roles]\nreader = [{{ server = \"f\", access = \"read\" }}]\n\
         [access.subjects.anonymous]\nroles = [\"reader\"]\n\n{}{effect}\n{}",
        fixture("f", &["--tools", "3"]),
        fixture("g", &[])
    )
}

fn ask(address: &str, method: &str, params: Value) -> String {
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str);
    let named = name.map_or_else(String::new, |name| format!("\r\nMcp-Name: {name}"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{named}"
    );
    let params = modern(params);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    http(address, &head, &call.to_string()).1
}

fn names(list: &str, member: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(list).unwrap();
    let items = list["result"][member].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn c37_a_role_that_reads_sees_and_uses_what_it_may_and_nothing_else_is_there() {
    let world = with(&config());
    let (_gateway, address) = Gateway::listening(&world, "");
    assert_eq!(names(&ask(&address, "tools/list", json!({})), "tools"), ["f__echo"]);
    let echo = json!({ "name": "f__echo", "arguments": { "text": "hi" } });
    assert!(ask(&address, "tools/call", echo).contains("\"hi\""));
    // Forbidden, on another server, unknown there, and of nobody: word for word the same answer.
    for (forbidden, unknown) in [
        ("f__tool_0", "f__tool_9"),
        ("g__echo", "g__nix"),
        ("g__echo", "h__echo"),
        ("mcp__f__tool_0", "mcp__f__tool_9"),
    ] {
        let call = |name: &str| {
            let params = json!({ "name": name, "arguments": {} });
            ask(&address, "tools/call", params).replace(name, "NAME")
        };
        assert_eq!(call(forbidden), call(unknown), "{forbidden} {unknown}");
        assert!(call(forbidden).contains("Unknown tool: NAME"), "{}", call(forbidden));
    }
    // The other server has no address either, and none that does not exist has one.
    for (path, status) in [("f", 200), ("g", 404), ("h", 404)] {
        let head = format!(
            "POST /servers/{path}/mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list"
        );
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({})) });
        let (said, body) = http(&address, &head, &list.to_string());
        assert_eq!(said, status, "{path}: {body}");
    }
}

#[test]
fn the_operator_and_who_starts_the_gateway_are_not_bound() {
    let world = with(&config());
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let echo = json!({ "name": "g__echo", "arguments": { "text": "hi" } });
    let answer = gateway.ask(1, "tools/call", &echo);
    assert!(answer.to_string().contains("hi"), "{answer}");
    let ended = world.capstan(["call", "g__echo", "text=hi"]).run();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}

#[test]
fn c38_older_rules_and_roles_in_one_table_are_refused_and_so_is_a_role_that_is_not_there() {
    for table in [
        r#""rules": [], "roles": {}"#,
        r#""rules": [{ "tools": ["*"], "policy": "deny" }], "subjects": { "bob": {} }"#,
        r#""subjects": { "bob": { "roles": ["dev"] } }"#,
    ] {
        let world = with("");
        world.write("project/acl.json", format!("{{\"mcpServers\":{{}},\"acl\":{{{table}}}}}"));
        for words in ["serve --http :0", "list"] {
            let words = format!("{words} --config avelino:acl.json");
            let ended = world.capstan(words.split(' ')).run();
            assert_eq!(ended.status, Some(3), "{table} {words}: {}", ended.stderr);
        }
    }
}

#[test]
fn c38_an_older_rule_that_speaks_of_somebody_else_binds_nobody_here() {
    let world = with("[permissions]\nallow = [\"*\"]\n");
    let rule =
        r#"{ "subjects": ["bob"], "roles": ["viewer"], "tools": ["f__*"], "policy": "deny" }"#;
    let all = r#"{ "subjects": ["anonymous"], "tools": ["*_1"], "policy": "deny" }"#;
    world.write(
        "project/acl.json",
        format!("{{\"mcpServers\":{{}},\"acl\":{{\"rules\":[{rule},{all}]}}}}"),
    );
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n\n{}",
        fixture("f", &["--tools", "3"])
    ));
    let (_gateway, address) = Gateway::listening(&world, "--config avelino:acl.json");
    let listed = names(&ask(&address, "tools/list", json!({})), "tools");
    assert!(
        listed.contains(&"f__tool_0".to_owned()) && !listed.contains(&"f__tool_1".to_owned()),
        "{listed:?}"
    );
}
