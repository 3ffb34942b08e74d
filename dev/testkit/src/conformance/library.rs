//! Resources, prompts and completions.

use serde_json::{Value, json};

use super::ask::{Question, filled};
use super::call::{Call, Keep};
use super::message::{Fault, INVALID_PARAMS, Reply, content};
use super::server::Server;

/// One red pixel.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The resource that `trigger_update` says has changed.
pub(super) const WATCHED: &str = "test://watched-resource";

/// The resource that tells what calls have begun and were cancelled, a line each.
pub(super) const EVENTS: &str = "test://events";

/// The error code of earlier revisions for a resource that does not exist.
const RESOURCE_NOT_FOUND: i64 = -32002;

pub(super) fn resources(server: &Server) -> Reply {
    let resource = |uri: &str, name: &str, kind: &str| {
        let description = format!("The resource {name}, for tests");
        json!({ "uri": uri, "name": name, "description": description, "mimeType": kind })
    };
    let mut all = vec![
        resource("test://static-text", "static-text", "text/plain"),
        resource("test://static-binary", "static-binary", "image/png"),
        resource(WATCHED, "watched-resource", "text/plain"),
        resource(EVENTS, "events", "text/plain"),
    ];
    if server.resources.is_flipped() {
        all.push(resource("test://dynamic", "dynamic", "text/plain"));
    }
    Reply::Result(json!({ "resources": all }))
}

pub(super) fn templates() -> Reply {
    let template = json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "A resource for every id, for tests",
        "mimeType": "application/json",
    });
    Reply::Result(json!({ "resourceTemplates": [template] }))
}

pub(super) fn read(call: &Call) -> Reply {
    let uri = call.request.text("/uri");
    let text = |text: String| json!({ "uri": uri, "mimeType": "text/plain", "text": text });
    let contents = match uri {
        "test://static-text" => text("This is the content of the static text resource.".into()),
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        WATCHED => text("Watched resource content".to_owned()),
        EVENTS => text(call.server.events()),
        "test://dynamic" if call.server.resources.is_flipped() => text("dynamic".to_owned()),
        _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"))
        {
            Some(id) => {
                let data = format!("Data for ID: {id}");
                let body = json!({ "id": id, "templateTest": true, "data": data }).to_string();
                json!({ "uri": uri, "mimeType": "application/json", "text": body })
            }
            None => return missing(call, uri).into(),
        },
    };
    Reply::Result(json!({ "contents": [contents] }))
}

fn missing(call: &Call, uri: &str) -> Fault {
    let code = if call.revision.is_modern() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    Fault::new(code, "no such resource").with(json!({ "uri": uri }))
}

pub(super) fn prompts(call: &Call) -> Reply {
    let prompt = |name: &str, arguments: &[&str]| {
        let argument = |name: &&str| {
            let description = format!("The argument {name}");
            json!({ "name": name, "description": description, "required": true })
        };
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        let description = format!("The prompt {name}, for tests");
        json!({ "name": name, "description": description, "arguments": arguments })
    };
    let mut all = vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
    ];
    if call.revision.since("2025-06-18") {
        all.push(prompt("test_input_required_result_prompt", &[]));
    }
    if call.server.prompts.is_flipped() {
        all.push(prompt("dynamic_prompt", &[]));
    }
    Reply::Result(json!({ "prompts": all }))
}

pub(super) async fn prompt(call: &Call) -> Reply {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let messages = match call.request.text("/name") {
        "test_simple_prompt" => vec![user(content("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            let (one, two) = (call.text("arg1"), call.text("arg2"));
            let text = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
            vec![user(content(text))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": call.text("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            vec![
                user(json!({ "type": "resource", "resource": resource })),
                user(content("Please process the embedded resource above.")),
            ]
        }
        "test_prompt_with_image" => vec![
            user(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
            user(content("Please analyze the image above.")),
        ],
        "test_input_required_result_prompt" if call.revision.since("2025-06-18") => {
            let question = Question::form(
                "user_context",
                "What context should the prompt use?",
                &json!({ "context": { "type": "string" } }),
            );
            match call.ask_one(question, Keep::Nothing).await {
                Ok(answer) => {
                    vec![user(content(format!("Use this context: {}", filled(&answer, "context"))))]
                }
                Err(reply) => return refusal(reply),
            }
        }
        "dynamic_prompt" if call.server.prompts.is_flipped() => vec![user(content("dynamic"))],
        other => return Fault::new(INVALID_PARAMS, format!("no prompt `{other}`")).into(),
    };
    Reply::Result(json!({ "messages": messages }))
}

/// A prompt cannot fail as a tool does, only with an error.
fn refusal(reply: Reply) -> Reply {
    match reply {
        Reply::Result(result) => {
            let text = result.pointer("/content/0/text").and_then(Value::as_str);
            Fault::new(INVALID_PARAMS, text.unwrap_or_default()).into()
        }
        other @ (Reply::Raw(_) | Reply::Special(_) | Reply::Fault(_) | Reply::Silence) => other,
    }
}

/// Completes the arguments of prompts and templates from a few words.
pub(super) fn complete(call: &Call) -> Reply {
    let begun = call.request.text("/argument/value");
    let words = ["paris", "park", "party", "test", "testing"];
    let values: Vec<&str> = words.into_iter().filter(|word| word.starts_with(begun)).collect();
    let total = values.len();
    Reply::Result(json!({
        "completion": { "values": values, "total": total, "hasMore": false }
    }))
}
