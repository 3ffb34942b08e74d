//! Calls that the client's own user is asked about, beside the operator in another shell.

use capstan_testkit::World;
use serde_json::{Value, json};

use crate::approvals::{answer, count, send_count, shell_ok, text};
use crate::stage::{Gateway, fixture, modern, with};

/// A gateway whose client can show a form.
#[track_caller]
fn asking(world: &World) -> Gateway {
    let mut gateway = Gateway::start(world, "");
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" },
    });
    gateway.ask(0, "initialize", &params);
    gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    gateway
}

/// The next message of this method.
#[track_caller]
fn heard(gateway: &Gateway, method: &str) -> Value {
    loop {
        let message = gateway.hear();
        if message["method"] == method {
            return message;
        }
    }
}

#[track_caller]
fn reply(gateway: &mut Gateway, question: &Value, result: &Value) {
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    gateway.send(&reply.to_string());
}

fn words(question: &Value) -> &Value {
    &question["params"]["requestedSchema"]["properties"]["remember"]["enum"]
}

#[test]
fn a_client_is_asked_and_what_it_remembers_is_not_asked_again() {
    let world = with(&fixture("f", &[]));
    let mut gateway = asking(&world);
    send_count(&mut gateway, 1);
    let question = heard(&gateway, "elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("`count` of the server `f`"), "{message}");
    assert_eq!(words(&question), &json!(["once", "arguments", "tool", "server"]));
    reply(&mut gateway, &question, &json!({ "action": "accept", "content": { "allow": true } }));
    assert_eq!(text(&answer(&gateway, 1)["result"]), "1");
    // Once was once.
    send_count(&mut gateway, 2);
    let question = heard(&gateway, "elicitation/create");
    let content = json!({ "allow": true, "remember": "tool" });
    reply(&mut gateway, &question, &json!({ "action": "accept", "content": content }));
    assert_eq!(text(&answer(&gateway, 2)["result"]), "2");
    assert_eq!(text(&count(&mut gateway, 3)), "3");
}

#[test]
fn a_client_that_says_no_is_believed() {
    let world = with(&fixture("f", &[]));
    let mut gateway = asking(&world);
    for (id, said) in [
        (1, json!({ "action": "decline" })),
        (2, json!({ "action": "cancel" })),
        (3, json!({ "action": "accept", "content": { "allow": false, "remember": "server" } })),
        (4, json!({ "action": "accept", "content": { "remember": "server" } })),
    ] {
        send_count(&mut gateway, id);
        let question = heard(&gateway, "elicitation/create");
        reply(&mut gateway, &question, &said);
        assert_eq!(answer(&gateway, id)["result"]["isError"], true, "{said}");
    }
}

/// Issue 15, number 19: the refusal says who declined and has both remedies.
#[test]
fn a_call_that_its_client_declines_by_itself_says_so_and_how_to_approve_it() {
    let world = with(&fixture("f", &[]));
    let mut gateway = asking(&world);
    send_count(&mut gateway, 1);
    let question = heard(&gateway, "elicitation/create");
    reply(&mut gateway, &question, &json!({ "action": "cancel" }));
    let refused = answer(&gateway, 1)["result"].clone();
    let said = text(&refused);
    for piece in [
        "`f__count` needs an approval by rule `permissions.default: ask-writes`",
        "the client declined; a client that runs without a user declines by itself",
        "to allow it without asking, write `allow = [\"f__count\"]` under `[permissions]`",
    ] {
        assert!(said.contains(piece), "{piece:?} is not in {said}");
    }
    let (_, rest) = said.split_once("`capstan approvals yes ").unwrap();
    shell_ok(&world, &format!("yes {}", rest.split('`').next().unwrap()));
    assert_eq!(text(&count(&mut gateway, 2)), "1");
}

#[test]
fn a_client_saves_nothing_unless_the_operator_lets_it() {
    let saves = "[gateway]\nsave_approvals = true\n\n";
    for (allowed, offered) in [("", false), (saves, true)] {
        let before = format!("{allowed}{}", fixture("f", &[]));
        let world = with(&before);
        let mut gateway = asking(&world);
        send_count(&mut gateway, 1);
        let question = heard(&gateway, "elicitation/create");
        assert_eq!(words(&question).as_array().unwrap().contains(&json!("always")), offered);
        let content = json!({ "allow": true, "remember": "always" });
        reply(&mut gateway, &question, &json!({ "action": "accept", "content": content }));
        assert_eq!(text(&answer(&gateway, 1)["result"]), "1");
        let now = std::fs::read_to_string(world.config().join("capstan/config.toml")).unwrap();
        let rule = "\n[permissions]\nallow = [\"f__count\"]\n";
        assert_eq!(now, if offered { format!("{before}{rule}") } else { before });
    }
}

#[test]
fn a_question_that_another_shell_answers_first_is_taken_back() {
    let world = with(&fixture("f", &[]));
    let mut gateway = asking(&world);
    send_count(&mut gateway, 1);
    let question = heard(&gateway, "elicitation/create");
    let listed: Value = serde_json::from_str(&shell_ok(&world, "--json")).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    shell_ok(&world, &format!("yes {id}"));
    let taken_back = heard(&gateway, "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(text(&answer(&gateway, 1)["result"]), "1");
}

#[test]
fn a_modern_client_is_asked_by_the_answer_and_another_shell_may_answer_for_it() {
    let world = with(&fixture("f", &[]));
    let mut gateway = Gateway::start(&world, "");
    let mut params = modern(json!({ "name": "f__count", "arguments": {} }));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let asked = gateway.ask(1, "tools/call", &params)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let listed: Value = serde_json::from_str(&shell_ok(&world, "--json")).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    shell_ok(&world, &format!("yes {id}"));
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ key: { "action": "decline" } });
    let result = gateway.ask(2, "tools/call", &params)["result"].clone();
    assert_eq!(text(&result), "1", "the first answer counts");
}
