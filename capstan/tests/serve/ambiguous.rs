//! Requests that a lenient server could read otherwise than the rules do (Holes 2).

use std::fs;

use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, echoed, fixture, with};

#[test]
fn members_that_differ_from_those_of_a_call_only_by_spelling_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let world = with(&format!("{ALL}{}", fixture("s", &["--trace", trace.to_str().unwrap()])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let members = [
        "Name",
        "NAME",
        "name\0",
        "name\0x",
        "ｎａｍｅ",
        "na\u{200b}me",
        "Arguments",
        "argumentſ",
        "URI",
    ];
    for (method, item) in [
        ("tools/call", json!({ "name": "s__echo", "arguments": { "text": "hi" } })),
        ("resources/read", json!({ "uri": "fixture://greeting" })),
        ("prompts/get", json!({ "name": "s__greet" })),
    ] {
        for member in members {
            let mut params: Value = item.clone();
            params[member] = json!("crash");
            let answer = gateway.ask(1, method, &params);
            assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        }
    }
    let mut params = json!({ "name": "s__echo", "arguments": { "text": "hi", "Text": "x" } });
    params["Name"] = json!("crash");
    let told = gateway.ask(2, "tools/call", &params);
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains(r#"the member "Name" could be read as `name`"#), "{message}");
    let call = json!({ "name": "s__echo", "arguments": { "text": "hi", "Text": "x" } });
    assert_eq!(echoed(&gateway.ask(3, "tools/call", &call)), "hi");
    assert!(!fs::read_to_string(&trace).unwrap().contains("crash"));
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
}
