//! Clients that others wrote find, describe and call tools that were never in their list.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::remote::beside;
use crate::{LIMIT, dev_folder, installed};

/// What a client does: searches, describes the tool and calls it.
fn plan(gateway: &Gateway) -> String {
    let path = gateway.world.project().join("a.txt");
    json!({
        "queries": ["read the text of a file", "add two numbers"],
        "describe": "filesystem__read_text_file",
        "calls": [
            ["filesystem__read_text_file", { "path": path }],
            ["everything__get-sum", { "a": 2, "b": 40 }],
            ["everything__get-structured-content", { "location": "New York" }],
        ],
    })
    .to_string()
}

#[track_caller]
fn check(gateway: &Gateway, client: &str, program: &str, words: &[&str]) {
    let run = gateway.world.program(program, words).env("SDK", dev_folder().join("sdk"));
    let said = run.stdin(plan(gateway)).limit(LIMIT).run().ok();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["tools"], json!(["search_tools", "describe_tool", "call_tool"]), "{client}");
    let found = said["found"].as_str().unwrap();
    for tool in
        ["filesystem__read_text_file(path: string", "everything__get-sum(a: number, b: number)"]
    {
        assert!(found.contains(tool), "{client}: {found}");
    }
    let described: Value = serde_json::from_str(said["described"].as_str().unwrap()).unwrap();
    assert_eq!(described["name"], "filesystem__read_text_file", "{client}");
    assert_eq!(described["inputSchema"]["properties"]["path"]["type"], "string", "{client}");
    let answers = said["answers"].as_array().unwrap();
    for (answer, expected) in
        answers.iter().zip(["hello", "The sum of 2 and 40 is 42.", "temperature"])
    {
        assert_eq!(answer["error"], false, "{client}: {answer}");
        assert!(answer["text"].as_str().unwrap().contains(expected), "{client}: {answer}");
    }
    assert!(answers[2]["structured"]["temperature"].is_number(), "{client}: {}", answers[2]);
    assert!(
        said["unknown"].as_str().unwrap().contains("Unknown tool: filesystem__made_up"),
        "{said}"
    );
}

#[test]
fn clients_of_both_languages_use_tools_that_they_found_by_search() {
    let gateway = Gateway::start_with(&["--expose", "search"]);
    let (python, url) = (installed("python"), gateway.remote.url.clone());
    let script = beside("search_peer.py").display().to_string();
    for mode in ["legacy", "auto"] {
        check(&gateway, &format!("Python, {mode}"), &python, &["-B", &script, mode, &url]);
    }
    let script = beside("search_peer.mjs").display().to_string();
    for version in ["v1", "v2"] {
        check(&gateway, &format!("TypeScript, {version}"), "node", &[&script, version, &url]);
    }
}
