//! What clients see of tools that the operator has changed.

use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, tool_names, with};

#[test]
fn clients_see_and_call_tools_as_the_operator_wants_them() {
    let tools = "[servers.f.tools.add]\nname = \"plus_two\"\ntitle = \"Plus\"\npin = { b = 2 }\n";
    for naming in ["prefixed", "bare"] {
        let server = format!("{}naming = \"{naming}\"\n", fixture("f", &[]));
        let world = with(&format!("{ALL}{server}{tools}"));
        let mut gateway = Gateway::start(&world, "");
        gateway.initialize("2025-11-25");
        let listed = gateway.ask(1, "tools/list", &json!({}));
        let name = if naming == "bare" { "plus_two" } else { "f__plus_two" };
        let names = tool_names(&listed);
        assert!(names.iter().any(|one| one == name), "{names:?}");
        assert!(!names.iter().any(|one| one.ends_with("add")), "{names:?}");
        let all = listed["result"]["tools"].as_array().unwrap();
        let tool: &Value = all.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["title"], "Plus");
        assert!(tool["inputSchema"]["properties"].get("b").is_none(), "{tool}");
        let call = |arguments: Value| json!({ "name": name, "arguments": arguments });
        let answer = gateway.ask(2, "tools/call", &call(json!({ "a": 40 })));
        assert_eq!(answer["result"]["content"][0]["text"], "42", "{answer}");
        let refused = gateway.ask(3, "tools/call", &call(json!({ "a": 40, "b": 3 })));
        let said = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains("set by the operator"), "{refused}");
        gateway.hang_up();
        assert_eq!(gateway.end(), Some(0));
    }
}
