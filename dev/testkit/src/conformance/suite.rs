//! What the tools do that the conformance suite calls.

use std::time::Duration;

use serde_json::{Value, json};

use super::ask::{Question, filled, said, sampled};
use super::call::{Call, Keep};
use super::library::PNG;
use super::message::{Fault, Reply, content};
use super::server::Change;

/// A short silence as a WAV file.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Between two messages of a tool, so that they do not arrive as one.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest that `slow_compute` computes, in seconds.
const SLOWEST: u64 = 120;

/// What a tool answers: nothing where the tool is not one of these, an error where a question or a
/// cancellation ends it early.
pub(super) type Outcome = Result<Option<Reply>, Reply>;

/// Runs a tool of the suite.
pub(super) async fn run(call: &Call) -> Outcome {
    let reply = match call.request.text("/name") {
        "test_simple_text" => Reply::text("This is a simple text response for testing."),
        "test_image_content" => contents(&[image()]),
        "test_audio_content" => {
            contents(&[json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })])
        }
        "test_embedded_resource" => contents(&[resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => contents(&[
            content("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ]),
        "test_error_handling" => {
            Reply::failed("This tool intentionally returns an error for testing")
        }
        "test_tool_with_logging" => with_logging(call).await?,
        "test_logging_tool" => {
            call.log("info", "the logging tool runs");
            Reply::text("logged")
        }
        "test_tool_with_progress" => with_progress(call).await?,
        "test_reconnection" => {
            call.break_off();
            Reply::text("Reconnection test completed")
        }
        "test_trigger_tool_change" => call.server.change(&Change::Tools),
        "test_trigger_prompt_change" => call.server.change(&Change::Prompts),
        "test_missing_capability" => {
            Question::sample("sample", "needed", 10).possible(call)?;
            Reply::text("the client can sample")
        }
        "test_sampling" => {
            let question = Question::sample("sample", call.text("prompt"), 100);
            let answer = call.ask_one(question, Keep::Nothing).await?;
            Reply::text(format!("LLM response: {}", sampled(&answer)))
        }
        name if name.starts_with("test_elicitation") || name == "test_streaming_elicitation" => {
            elicit(call).await?
        }
        name if name.starts_with("test_input_required_result_") => input_required(call).await?,
        _ => return jobs(call).await,
    };
    Ok(Some(reply))
}

async fn with_logging(call: &Call) -> Result<Reply, Reply> {
    call.log("info", "Tool execution started");
    call.pause(PAUSE).await?;
    call.log("info", "Tool processing data");
    call.pause(PAUSE).await?;
    call.log("info", "Tool execution completed");
    Ok(Reply::text("Tool with logging executed successfully"))
}

async fn with_progress(call: &Call) -> Result<Reply, Reply> {
    for done in [0, 50, 100] {
        call.progress(done, 100, &format!("{done} of 100"));
        call.pause(PAUSE).await?;
    }
    Ok(Reply::text("Tool with progress executed successfully"))
}

async fn elicit(call: &Call) -> Result<Reply, Reply> {
    let question = match call.request.text("/name") {
        "test_elicitation" => Question::form(
            "elicitation",
            call.text("message"),
            &json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            }),
        ),
        "test_elicitation_sep1034_defaults" => {
            Question::optional_form("defaults", "Please review these values", &defaults())
        }
        "test_elicitation_sep1330_enums" => {
            Question::optional_form("enums", "Please choose", &enums())
        }
        _ => {
            call.progress(1, 2, "about to ask");
            Question::form("elicitation", "Go on?", &json!({ "ok": { "type": "boolean" } }))
        }
    };
    let answer = call.ask_one(question, Keep::Nothing).await?;
    Ok(Reply::text(format!("Elicitation completed: {}", said(&answer))))
}

async fn input_required(call: &Call) -> Result<Reply, Reply> {
    let name = call.request.text("/name").strip_prefix("test_input_required_result_");
    match name.unwrap_or_default() {
        "elicitation" => {
            let answer = call.ask_one(user_name("user_name"), Keep::Nothing).await?;
            Ok(Reply::text(format!("Hello, {}!", filled(&answer, "name"))))
        }
        "sampling" => {
            let question =
                Question::sample("capital_question", "What is the capital of France?", 100);
            Ok(Reply::text(sampled(&call.ask_one(question, Keep::Nothing).await?)))
        }
        "list_roots" => {
            let answer = call.ask_one(Question::roots("client_roots"), Keep::Nothing).await?;
            Ok(Reply::text(answer.to_string()))
        }
        "request_state" | "tampered_state" => {
            let ok = json!({ "ok": { "type": "boolean" } });
            let question = Question::form("confirm", "Please confirm", &ok);
            let answer = call.ask_one(question, Keep::Sealed).await?;
            Ok(Reply::text(format!("state-ok: {}", said(&answer))))
        }
        "multiple_inputs" => {
            let questions = vec![
                user_name("user_name"),
                Question::sample("greeting", "Generate a greeting", 50),
                Question::roots("client_roots"),
            ];
            let answers = call.ask(questions, Keep::Sealed).await?;
            Ok(Reply::text(json!(answers).to_string()))
        }
        "multi_round" => {
            let color = json!({ "color": { "type": "string" } });
            let first = call.ask_one(user_name("step1"), Keep::Sealed).await?;
            let second = Question::form("step2", "Step 2: What is your favorite color?", &color);
            let second = call.ask_one(second, Keep::Sealed).await?;
            let (name, color) = (filled(&first, "name"), filled(&second, "color"));
            Ok(Reply::text(format!("{name} likes {color}")))
        }
        _ => {
            // Only what the client can be asked.
            let mut questions =
                vec![user_name("user_name"), Question::sample("greeting", "Say hello", 50)];
            questions.retain(|question| question.declared(call));
            let answers = call.ask(questions, Keep::Nothing).await?;
            Ok(Reply::text(json!(answers).to_string()))
        }
    }
}

/// What clients of the tasks extension run as tasks.
async fn jobs(call: &Call) -> Outcome {
    let reply = match call.request.text("/name") {
        "greet" => Reply::text(format!("Hello, {}!", call.text("name"))),
        "slow_compute" => {
            let seconds = call.number("seconds", 0, SLOWEST);
            call.pause(Duration::from_secs(seconds)).await?;
            Reply::text(format!("{} computed for {seconds} s", call.text("label")))
        }
        "failing_job" => {
            call.pause(PAUSE).await?;
            Reply::failed("the job failed")
        }
        "protocol_error_job" => {
            call.pause(PAUSE).await?;
            Fault::new(-32603, "the job could not be done").into()
        }
        "confirm_delete" => {
            let message = format!("Delete {}?", call.text("filename"));
            let confirm = json!({ "confirm": { "type": "boolean" } });
            let question = Question::form("confirm", &message, &confirm);
            Reply::text(said(&call.ask_one(question, Keep::Sealed).await?))
        }
        "multi_input" => {
            let questions = vec![user_name("first"), user_name("second")];
            Reply::text(json!(call.ask(questions, Keep::Sealed).await?).to_string())
        }
        "test_tool_with_task" => {
            let answer = call.ask_one(user_name("user_name"), Keep::Sealed).await?;
            Reply::text(format!("Hello, {}!", filled(&answer, "name")))
        }
        "json_schema_2020_12_tool" | "test_custom_header" => {
            let arguments = call.request.params.get("arguments").cloned().unwrap_or_default();
            Reply::text(arguments.to_string())
        }
        _ => return Ok(None),
    };
    Ok(Some(reply))
}

fn user_name(key: &str) -> Question {
    Question::form(key, "What is your name?", &json!({ "name": { "type": "string" } }))
}

fn contents(pieces: &[Value]) -> Reply {
    Reply::Result(json!({ "content": pieces }))
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active"
            },
            "verified": { "type": "boolean", "default": true },
        },
        "required": [],
    })
}

fn enums() -> Value {
    let titled = |noun: &str| {
        let words = [("value1", "First"), ("value2", "Second"), ("value3", "Third")];
        words.map(|(value, word)| json!({ "const": value, "title": format!("{word} {noun}") }))
    };
    let options = json!(["option1", "option2", "option3"]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
        "required": [],
    })
}

/// A schema with what only JSON Schema 2020-12 has.
pub(super) fn schema_2020_12() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": text, "city": text },
            },
        },
        "properties": {
            "name": text,
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": text,
            "email": text,
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A schema some of whose arguments are repeated in headers.
pub(super) fn schema_with_headers() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "priority": { "type": "integer", "x-mcp-header": "Priority" },
            "query": { "type": "string" },
        },
    })
}
