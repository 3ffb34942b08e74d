//! A row about a method of an extension, which runs a tool of the server.

use serde_json::{Value, json};

use crate::client::{Client, expect};
use crate::{Cell, Outcome};

const METHOD: &str = "com.example/call";

/// Progress and questions while the method runs.
pub(crate) fn method(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    progress(client)?;
    let sung = run(client, "sample", &json!({ "prompt": "Sing" }))?;
    expect(&sung, text(&sung) == r#"You said: "Sing""#)?;
    let roots = run(client, "roots", &json!({}))?;
    let own = json!([{ "uri": "file:///matrix", "name": client.kind.name }]);
    expect(&roots, parsed(&roots) == own)?;
    let asked: Vec<&Value> = client.asked.iter().map(|asked| &asked["method"]).collect();
    expect(&json!(asked), asked == ["sampling/createMessage", "roots/list"])
}

/// The client hears of progress and is asked nothing. The server gets an answer at once: that nobody
/// can be asked, or the configured roots.
pub(crate) fn not_asked(cell: &mut Cell) -> Outcome {
    let client = &mut cell.client;
    progress(client)?;
    let refused = run(client, "sample", &json!({ "prompt": "Sing" }))?;
    expect(&refused, text(&refused).contains("`sampling/createMessage` is not offered here"))?;
    let roots = run(client, "roots", &json!({}))?;
    expect(&roots, roots["result"]["isError"] != true && parsed(&roots).is_array())?;
    let is_own = parsed(&roots)[0]["name"] == client.kind.name;
    expect(&json!(client.asked), client.asked.is_empty() && !is_own)
}

/// Where all servers are one, nothing says which of them is meant.
pub(crate) fn unknown(cell: &mut Cell) -> Outcome {
    let answer = run(&mut cell.client, "sample", &json!({}))?;
    expect(&answer, answer["error"]["code"] == -32601)
}

fn progress(client: &mut Client) -> Outcome {
    let params = json!({
        "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "mine" },
    });
    let answer = client.ask(METHOD, params)?;
    expect(&answer, text(&answer) == "2 steps")?;
    let told = client.told.iter().filter(|told| told["method"] == "notifications/progress");
    let told: Vec<[&Value; 2]> =
        told.map(|told| ["progressToken", "progress"].map(|key| &told["params"][key])).collect();
    expect(&json!(told), json!(told) == json!([["mine", 1], ["mine", 2]]))
}

fn run(client: &mut Client, tool: &str, arguments: &Value) -> Outcome<Value> {
    client.ask(METHOD, json!({ "name": tool, "arguments": arguments }))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

fn parsed(answer: &Value) -> Value {
    serde_json::from_str(text(answer)).unwrap_or_default()
}
