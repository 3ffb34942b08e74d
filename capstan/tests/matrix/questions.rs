//! Rows in which a client is asked something.

use serde_json::{Value, json};

use crate::client::{Client, expect};
use crate::{Cell, Outcome};

/// The error of 2025-11-25 for a page that must be visited first.
const VISIT_FIRST: i64 = -32042;

/// The error of 2026-07-28 for a question that the client did not say it can be asked.
const MISSING_CAPABILITY: i64 = -32021;

pub(crate) fn form(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let text = client.text("elicit_form", &json!({ "message": "Who?" }))?;
    said(&text, r#"action=accept, content={"name":"Ada"}"#)?;
    let asked = &only(client, "elicitation/create")?["params"];
    expect(asked, asked["message"] == "Who?")?;
    expect(asked, asked["requestedSchema"]["properties"]["name"]["maxLength"] == 40)
}

pub(crate) fn several(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let text = client.text("several_questions", &json!({ "count": 3 }))?;
    said(&text, "Ada, Ada, Ada")?;
    let last = client.asked.last().cloned().unwrap_or_default();
    expect(&json!(client.asked), client.asked.len() == 3)?;
    expect(&last, last["params"]["message"] == r#"Question 3, after ["Ada", "Ada"]"#)
}

pub(crate) fn prompt(cell: &mut Cell) -> Outcome {
    let got = get_prompt(&mut cell.client)?;
    let text = &got["result"]["messages"][0]["content"]["text"];
    expect(&got, text == "Use this context: Ada")?;
    only(&cell.client, "elicitation/create").map(drop)
}

pub(crate) fn url(cell: &mut Cell) -> Outcome {
    let is_modern_server = cell.is_modern_server();
    let Cell { client, tag, .. } = cell;
    let page = format!("https://example.com/{}", tag.replace(' ', "/"));
    let text = client.text("elicit_url", &json!({ "url": page }))?;
    said(&text, "action=accept, content={}")?;
    let asked = only(client, "elicitation/create")?["params"].clone();
    expect(&asked, asked["mode"] == "url" && asked["url"] == page)?;
    // Only 2025-11-25 has names for visits.
    expect(&asked, asked.get("elicitationId").is_some() != client.kind.is_modern())?;
    if !client.kind.is_modern() && !is_modern_server {
        let complete = client.wait_for("notifications/elicitation/complete")?;
        let visit = &complete["params"]["elicitationId"];
        expect(&complete, *visit == asked["elicitationId"])?;
    }
    client.forget();
    let params = json!({ "name": client.named("url_required"), "arguments": { "url": page } });
    if is_modern_server {
        let text = client.text("url_required", &json!({ "url": page }))?;
        said(&text, "action=accept, content={}")?;
        return only(client, "elicitation/create").map(drop);
    }
    let required = client.ask_once("tools/call", &params)?;
    let required: Value = serde_json::from_str(&required).map_err(|error| error.to_string())?;
    if client.kind.is_modern() {
        // The person goes there, and then the client comes back.
        let requests = required["result"]["inputRequests"].as_object();
        let asked: Vec<(&String, &Value)> = requests.into_iter().flatten().collect();
        let [(key, question)] = asked.as_slice() else { return Err(required.to_string()) };
        expect(question, question["params"]["url"] == page)?;
        client.text("finish_visit", &json!({ "elicitationId": page }))?;
        let mut again = params;
        again["inputResponses"] = json!({ *key: { "action": "accept" } });
        again["requestState"] = required["result"]["requestState"].clone();
        let visited = client.ask("tools/call", again)?;
        return expect(&visited, visited["result"]["content"][0]["text"] == "visited");
    }
    let error = &required["error"];
    expect(&required, error["code"] == VISIT_FIRST)?;
    expect(&required, error["data"]["elicitations"][0]["url"] == page)?;
    client.text("finish_visit", &json!({ "elicitationId": page }))?;
    let complete = client.wait_for("notifications/elicitation/complete")?;
    expect(&complete, complete["params"]["elicitationId"] == page)?;
    said(&client.text("url_required", &json!({ "url": page }))?, "visited")
}

pub(crate) fn sampling(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let text = client.text("sample", &json!({ "prompt": "Sing" }))?;
    said(&text, r#"You said: "Sing""#)?;
    let asked = &only(client, "sampling/createMessage")?["params"];
    expect(asked, asked["maxTokens"] == 100)
}

pub(crate) fn roots(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let text = client.text("roots", &json!({}))?;
    let roots: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    let own = json!([{ "uri": "file:///matrix", "name": client.kind.name }]);
    expect(&roots, roots == own)?;
    only(client, "roots/list").map(drop)
}

/// The server does not have the tool, so there is nothing to carry.
pub(crate) fn not_there(cell: &mut Cell, tool: &str) -> Outcome {
    let client = &mut cell.client;
    let listed = client.ask("tools/list", json!({}))?;
    let tools = listed["result"]["tools"].as_array().into_iter().flatten();
    let name = client.named(tool);
    expect(&listed, { tools }.all(|listed| listed["name"] != name.as_str()))?;
    let refused = client.call(tool, &json!({}))?;
    expect(&refused, refused["error"]["code"] == -32602)
}

/// The server is told that there is nobody to ask, by the protocol's own words, and decides.
pub(crate) fn cannot_be_asked(cell: &mut Cell, tool: &str) -> Outcome {
    let answer = cell.client.call(tool, &json!({}))?;
    expect(&json!(cell.client.asked), cell.client.asked.is_empty())?;
    if cell.is_modern_server() {
        return expect(&answer, answer["error"]["code"] == MISSING_CAPABILITY);
    }
    expect(&answer, answer["result"]["isError"] == true)
}

pub(crate) fn no_such_prompt(cell: &mut Cell) -> Outcome {
    let refused = get_prompt(&mut cell.client)?;
    expect(&refused, refused["error"]["code"] == -32602)
}

pub(crate) fn prompt_refused(cell: &mut Cell) -> Outcome {
    let refused = get_prompt(&mut cell.client)?;
    expect(&json!(cell.client.asked), cell.client.asked.is_empty())?;
    let code = if cell.is_modern_server() { MISSING_CAPABILITY } else { -32602 };
    expect(&refused, refused["error"]["code"] == code)
}

/// As if the person had declined; a server that asks by an error is left to say so.
pub(crate) fn no_visit(cell: &mut Cell) -> Outcome {
    if cell.is_modern_server() {
        cannot_be_asked(cell, "elicit_url")?;
        return cannot_be_asked(cell, "url_required");
    }
    let client = &mut cell.client;
    let answer = client.call("elicit_url", &json!({}))?;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let refused = answer["result"]["isError"] == true || text.starts_with("action=decline");
    expect(&answer, refused && client.asked.is_empty())?;
    let required = client.call("url_required", &json!({}))?;
    expect(&required, required["error"]["code"] == VISIT_FIRST)
}

fn get_prompt(client: &mut Client) -> Outcome<Value> {
    let name = client.named("test_input_required_result_prompt");
    client.ask("prompts/get", json!({ "name": name }))
}

/// The one question that was put.
fn only<'a>(client: &'a Client, method: &str) -> Outcome<&'a Value> {
    match client.asked.as_slice() {
        [asked] if asked["method"] == method => Ok(asked),
        other => Err(format!("asked: {other:?}")),
    }
}

fn said(text: &str, expected: &str) -> Outcome {
    if text == expected { Ok(()) } else { Err(format!("{text:?} is not {expected:?}")) }
}
