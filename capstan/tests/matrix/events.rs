//! Rows in which a client is told something.

use serde_json::{Value, json};

use crate::client::{Client, expect};
use crate::kinds::BATCHES;
use crate::{Cell, Outcome};

const UPDATED: &str = "notifications/resources/updated";
const EVENTS: &str = "test://events";

pub(crate) fn progress(cell: &mut Cell) -> Outcome {
    let Cell { client, revision, .. } = cell;
    let params = json!({
        "name": client.named("progress"),
        "arguments": { "steps": 4 },
        "_meta": { "progressToken": "mine" },
    });
    let answer = client.ask("tools/call", params)?;
    expect(&answer, answer["result"]["content"][0]["text"] == "4 steps")?;
    let progress = told(client, "notifications/progress");
    let expected: Vec<Value> = (1..=4)
        .map(|step| {
            let mut params = json!({ "progressToken": "mine", "progress": step, "total": 4 });
            if *revision >= BATCHES {
                params["message"] = json!(format!("step {step}"));
            }
            params
        })
        .collect();
    expect(&json!(progress), progress == expected)?;
    // Who does not ask for it hears of none.
    client.forget();
    client.text("progress", &json!({}))?;
    expect(&json!(client.told), told(client, "notifications/progress").is_empty())
}

pub(crate) fn logging(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    if client.kind.is_modern() {
        client.text("progress", &json!({ "steps": 2 }))?;
        expect(&json!(client.told), has_heard_nothing(client))?;
    }
    client.set_level("info")?;
    let params = json!({
        "name": client.named("progress"),
        "arguments": { "steps": 3 },
        "_meta": { "progressToken": 7 },
    });
    let answer = client.ask("tools/call", params)?;
    expect(&answer, answer["result"]["content"][0]["text"] == "3 steps")?;
    let mut order = Vec::new();
    for told in &client.told {
        let params = &told["params"];
        order.extend(params["progress"].as_u64().map(|step| format!("progress {step}")));
        order.extend(params["data"].as_str().map(str::to_owned));
    }
    let expected: Vec<String> =
        (1..=3).flat_map(|step| [format!("progress {step}"), format!("log {step}")]).collect();
    expect(&json!(order), order == expected)?;
    client.forget();
    client.set_level("error")?;
    client.text("progress", &json!({ "steps": 2 }))?;
    expect(&json!(client.told), has_heard_nothing(client))?;
    client.set_level("debug")
}

pub(crate) fn subscriptions(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let uri = "test://watched-resource";
    let subscription = client.subscribe(uri)?;
    client.text("trigger_update", &json!({ "uri": uri }))?;
    let told = client.wait_for(UPDATED)?;
    expect(&told, told["params"]["uri"] == uri)?;
    let tag = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    expect(&told, tag.as_u64() == subscription)?;
    match subscription {
        Some(id) => client.cancel(id),
        None => client.ask("resources/unsubscribe", json!({ "uri": uri })).map(drop),
    }
}

pub(crate) fn list_changed(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let subscription = client.subscribe(EVENTS)?;
    for (what, key, name, extra) in [
        ("tools", "tools", "name", client.named("dynamic_tool")),
        ("prompts", "prompts", "name", client.named("dynamic_prompt")),
        ("resources", "resources", "uri", "test://dynamic".to_owned()),
    ] {
        let method = format!("{what}/list");
        let has = |client: &mut Client| {
            let listed = client.ask(&method, json!({}))?;
            let items = listed["result"][key].as_array().ok_or_else(|| listed.to_string())?;
            Ok::<bool, String>(items.iter().any(|item| item[name] == extra.as_str()))
        };
        let before = has(client)?;
        client.text(&format!("trigger_{what}"), &json!({}))?;
        client.wait_for(&format!("notifications/{what}/list_changed"))?;
        let after = has(client)?;
        expect(&json!([what, before, after]), before != after)?;
    }
    match subscription {
        Some(id) => client.cancel(id),
        None => client.ask("resources/unsubscribe", json!({ "uri": EVENTS })).map(drop),
    }
}

pub(crate) fn cancellation(cell: &mut Cell) -> Outcome {
    let Cell { client, tag, .. } = cell;
    let subscription = client.subscribe(EVENTS)?;
    let arguments = json!({ "tag": tag });
    let params = json!({ "name": client.named("wait_for_cancel"), "arguments": arguments });
    let waiting = client.start("tools/call", &params)?;
    until(client, &format!("started {tag}\n"))?;
    client.cancel(waiting)?;
    until(client, &format!("cancelled {tag}\n"))?;
    match subscription {
        Some(id) => client.cancel(id),
        None => client.ask("resources/unsubscribe", json!({ "uri": EVENTS })).map(drop),
    }
}

/// Waits until the server says that this has happened.
fn until(client: &mut Client, event: &str) -> Outcome {
    loop {
        client.wait_for(UPDATED)?;
        let read = client.ask("resources/read", json!({ "uri": EVENTS }))?;
        let text = read["result"]["contents"][0]["text"].as_str();
        if text.ok_or_else(|| read.to_string())?.contains(event) {
            return Ok(());
        }
    }
}

/// Whether no message about a call has come. A process that was started again in another era may
/// have other lists, of which the client is told at any time.
fn has_heard_nothing(client: &Client) -> bool {
    client.told.iter().all(|told| told["method"] == "notifications/tools/list_changed")
}

fn told(client: &Client, method: &str) -> Vec<Value> {
    let told = client.told.iter().filter(|told| told["method"] == method);
    told.map(|told| told["params"].clone()).collect()
}
