//! Questions of a server that does not say which call they belong to.

use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

/// What comes of a call of a client that can fill in forms and never comes back with one.
fn elicit(address: &str, client: &str) -> Value {
    let mut params = modern(json!({ "name": "f__elicit", "arguments": {} }));
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    meta["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                Mcp-Name: f__elicit";
    let (_, body) = http(address, head, &call.to_string());
    serde_json::from_str::<Value>(&body).unwrap()["result"].clone()
}

#[test]
fn a_question_that_nobody_answers_does_not_keep_others_at_this_machine_from_being_asked() {
    let world = with(&format!("{ALL}{}", fixture("f", &["--era", "legacy"])));
    let (_gateway, address) = Gateway::listening(&world, "");
    for client in ["editor", "editor", "chat"] {
        let result = elicit(&address, client);
        assert_eq!(result["resultType"], "input_required", "{client}: {result}");
    }
}

#[test]
fn one_client_that_never_comes_back_takes_no_more_than_its_share() {
    let world = with(&format!("{ALL}{}", fixture("f", &["--era", "legacy"])));
    let (_gateway, address) = Gateway::listening(&world, "");
    let asked = |client: &str| elicit(&address, client)["resultType"] == "input_required";
    let of_one = (0..70).filter(|_| asked("editor")).count();
    assert_eq!(of_one, 64);
    assert!(asked("chat"));
}

#[test]
fn where_others_are_let_in_a_question_that_may_be_anothers_is_declined_and_told_of() {
    let hosts = "[gateway]\nallowed_hosts = [\"mcp.example.com\"]\n\n";
    let world = with(&format!("{ALL}{hosts}{}", fixture("f", &["--era", "legacy"])));
    let (gateway, address) = Gateway::listening(&world, "");
    assert_eq!(elicit(&address, "editor")["resultType"], "input_required");
    let second = elicit(&address, "chat");
    assert_eq!(second["resultType"], "complete", "{second}");
    assert!(second.to_string().contains("decline"), "{second}");
    gateway.says("without naming its call");
}
