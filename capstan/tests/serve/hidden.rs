//! Tools whose schemas cannot be used: no list has them, and no front runs them (Holes 3).

use std::fs;

use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, tool_names, with};

/// Definitions of tools that are hidden, each with the reason.
fn hidden() -> [(String, &'static str); 4] {
    let tool = |name: &str, schema: Value| json!({ "name": name, "inputSchema": schema });
    let part = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
    let branches = vec![json!({}); 10_000];
    [
        (tool("web", part(json!({ "$ref": "http://127.0.0.1:1/a" }))), "refers to"),
        (tool("file", part(json!({ "$ref": "file:///etc/passwd" }))), "refers to"),
        (tool("wide", part(json!({ "anyOf": branches }))), "input schema"),
        (tool("odd", part(json!({ "type": "text" }))), "input schema"),
    ]
    .map(|(tool, reason)| (tool.to_string(), reason))
}

fn is_hidden(name: &str) -> bool {
    ["web", "file", "wide", "odd"].iter().any(|hidden| name.ends_with(hidden))
}

#[test]
fn a_tool_whose_schema_cannot_be_used_is_neither_listed_nor_run_anywhere() {
    let tools = hidden();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let fine = json!({ "name": "fine", "inputSchema": { "type": "object" } }).to_string();
    let mut options = vec!["--trace", trace.to_str().unwrap(), "--tool", &fine];
    options.extend(tools.iter().flat_map(|(tool, _)| ["--tool", tool.as_str()]));
    let world = with(&format!("{ALL}{}", fixture("s", &options)));

    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let names = tool_names(&gateway.ask(1, "tools/list", &json!({})));
    assert!(names.contains(&"s__fine".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| is_hidden(name)), "{names:?}");
    for (tool, reason) in &tools {
        let tool: Value = serde_json::from_str(tool).unwrap();
        let name = format!("s__{}", tool["name"].as_str().unwrap());
        for id in [2, 3] {
            let answer = gateway.ask(id, "tools/call", &json!({ "name": name, "arguments": {} }));
            let told = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(answer["result"]["isError"] == true && told.contains(reason), "{answer}");
        }
    }
    let fine = gateway.ask(4, "tools/call", &json!({ "name": "s__fine", "arguments": {} }));
    assert!(fine["result"]["content"].is_array(), "{fine}");
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));

    let (_gateway, address) = Gateway::listening(&world, "");
    for (place, prefix) in [("/mcp", "s__"), ("/servers/s/mcp", "")] {
        let ask = |method: &str, name: &str, params: Value| {
            let request =
                json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params) });
            let name =
                if name.is_empty() { String::new() } else { format!("\r\nMcp-Name: {name}") };
            let head = format!(
                "POST {place} HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{name}"
            );
            let (_, body) = http(&address, &head, &request.to_string());
            let start = body.find('{').unwrap_or(0);
            let end = body.rfind('}').map_or(0, |end| end + 1);
            serde_json::from_str::<Value>(body.get(start..end).unwrap()).unwrap()
        };
        let names = tool_names(&ask("tools/list", "", json!({})));
        assert!(names.contains(&format!("{prefix}fine")), "{names:?}");
        assert!(!names.iter().any(|name| is_hidden(name)), "{place}: {names:?}");
        let name = format!("{prefix}web");
        let answer = ask("tools/call", &name, json!({ "name": name, "arguments": {} }));
        assert_eq!(answer["result"]["isError"], true, "{place}: {answer}");
    }

    let told = world.capstan(["list", "--json", "--no-attach"]).run().ok();
    let all = world.capstan(["tools", "--json", "--no-attach"]).run().ok();
    let (told, all): (Value, Value) =
        (serde_json::from_str(&told).unwrap(), serde_json::from_str(&all).unwrap());
    let listed = all.as_array().unwrap_or_else(|| all["tools"].as_array().unwrap()).len();
    let row = told.as_array().unwrap_or_else(|| told["servers"].as_array().unwrap())[0].clone();
    assert_eq!(row["tools"], listed, "{row}");
    let received = fs::read_to_string(&trace).unwrap();
    assert!(received.contains(r#""name":"fine""#));
    for name in ["web", "file", "wide", "odd"] {
        assert!(!received.contains(&format!(r#""name":"{name}""#)), "{name} was called");
    }
}
