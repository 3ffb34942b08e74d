//! Rows in which a client asks and a server answers, and nothing else happens.

use capstan_testkit::fixture::{LONG_NUMBER, WEIRD};
use serde_json::{Value, json};

use crate::client::expect;
use crate::kinds::BATCHES;
use crate::{Cell, Outcome};

/// What the bridge may add to a result, and nothing else.
const ADDED: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

pub(crate) fn tools(cell: &mut Cell) -> Outcome {
    let Cell { client, revision, .. } = cell;
    let listed = client.ask("tools/list", json!({}))?;
    let names = names(&listed["result"]["tools"], "name");
    expect(&listed, names.contains(&client.named("echo")))?;
    expect(&listed, listed["result"]["tools"][0]["inputSchema"]["type"] == "object")?;
    let echoed = client.text("echo", &json!({ "text": "hé", "number": 1.5 }))?;
    let echoed: Value = serde_json::from_str(&echoed).map_err(|error| error.to_string())?;
    expect(&echoed, echoed == json!({ "text": "hé", "number": 1.5 }))?;
    // That the server speaks what it is there for, and not what the client speaks.
    let known = client.text("client", &json!({}))?;
    let known: Value = serde_json::from_str(&known).map_err(|error| error.to_string())?;
    expect(&known, known["revision"] == *revision)?;
    let failed = client.call("test_error_handling", &json!({}))?;
    expect(&failed, failed["result"]["isError"] == true)?;
    let unknown = client.call("no_such_tool", &json!({}))?;
    expect(&unknown, unknown["error"]["code"] == -32602)
}

pub(crate) fn lossless(cell: &mut Cell) -> Outcome {
    for (tool, bytes) in [("weird", WEIRD), ("long_number", LONG_NUMBER)] {
        let name = cell.client.named(tool);
        let params = json!({ "name": name, "arguments": {} });
        let line = cell.client.ask_raw("tools/call", params)?;
        let members =
            bytes.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(bytes);
        let Some((before, after)) = line.split_once(members) else {
            return Err(format!("other bytes: {line}"));
        };
        let rest: Value = serde_json::from_str(&format!(
            "{}{}",
            before.trim_end_matches(','),
            if before.ends_with('{') { after.trim_start_matches(',') } else { after }
        ))
        .map_err(|error| format!("{error}: {line}"))?;
        let added = rest["result"].as_object().into_iter().flat_map(|result| result.keys());
        let modern = cell.client.kind.is_modern() || cell.is_modern_server();
        let wrong: Vec<&String> =
            added.filter(|key| !modern || !ADDED.contains(&key.as_str())).collect();
        if !wrong.is_empty() {
            return Err(format!("{wrong:?} was added: {line}"));
        }
    }
    Ok(())
}

pub(crate) fn resources(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let listed = client.ask("resources/list", json!({}))?;
    let uris = names(&listed["result"]["resources"], "uri");
    expect(&listed, uris.iter().any(|uri| uri == "test://static-text"))?;
    let read = client.ask("resources/read", json!({ "uri": "test://static-text" }))?;
    let text = &read["result"]["contents"][0]["text"];
    expect(&read, text == "This is the content of the static text resource.")?;
    let read = client.ask("resources/read", json!({ "uri": "test://static-binary" }))?;
    expect(&read, read["result"]["contents"][0]["blob"].is_string())?;
    let missing = client.ask("resources/read", json!({ "uri": "test://missing" }))?;
    let code = if client.kind.is_modern() { -32602 } else { -32002 };
    expect(&missing, missing["error"]["code"] == code)
}

pub(crate) fn templates(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let listed = client.ask("resources/templates/list", json!({}))?;
    let uris = names(&listed["result"]["resourceTemplates"], "uriTemplate");
    expect(&listed, uris == ["test://template/{id}/data"])?;
    let read = client.ask("resources/read", json!({ "uri": "test://template/42/data" }))?;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
    expect(&read, text.contains("Data for ID: 42"))
}

pub(crate) fn prompts(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let listed = client.ask("prompts/list", json!({}))?;
    let name = client.named("test_prompt_with_arguments");
    expect(&listed, names(&listed["result"]["prompts"], "name").contains(&name))?;
    let arguments = json!({ "arg1": "one", "arg2": "two" });
    let got = client.ask("prompts/get", json!({ "name": name, "arguments": arguments }))?;
    let text = &got["result"]["messages"][0]["content"]["text"];
    expect(&got, text == "Prompt with arguments: arg1='one', arg2='two'")
}

pub(crate) fn completion(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let prompt = client.named("test_prompt_with_arguments");
    for (reference, argument) in [
        (json!({ "type": "ref/prompt", "name": prompt }), "arg1"),
        (json!({ "type": "ref/resource", "uri": "test://template/{id}/data" }), "id"),
    ] {
        let argument = json!({ "name": argument, "value": "par" });
        let params = json!({ "ref": reference, "argument": argument });
        let completed = client.ask("completion/complete", params)?;
        let values = &completed["result"]["completion"]["values"];
        expect(&completed, values == &json!(["paris", "park", "party"]))?;
    }
    Ok(())
}

/// Modern clients have no ping, and only one revision has batches.
pub(crate) fn ping(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    let answer = client.ask("ping", json!({}))?;
    if client.kind.is_modern() {
        return expect(&answer, answer["error"]["code"] == -32601);
    }
    expect(&answer, answer["result"] == json!({}))?;
    if client.kind.revision != BATCHES {
        return Ok(());
    }
    let mut answers = client.batch(&["echo", "client", "echo"])?;
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let all = json!(answers);
    expect(&all, answers.len() == 3)?;
    expect(&all, answers.iter().all(|answer| answer["result"]["content"].is_array()))
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item[key].as_str()).map(str::to_owned).collect()
}
