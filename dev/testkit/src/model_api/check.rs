//! Refuses requests that the real provider refuses.

#![expect(clippy::indexing_slicing, reason = "members of JSON values do not panic")]

use serde_json::Value;

use super::{Api, MODEL_KEY, ModelRequest};

/// The status and the message of a refusal.
type Refusal = (u16, String);

/// Checks a request as the provider does.
pub(super) fn request(api: Api, request: &ModelRequest) -> Result<(), Refusal> {
    let bearer = format!("Bearer {MODEL_KEY}");
    let (header, key) = match api {
        Api::Anthropic => ("x-api-key", MODEL_KEY),
        Api::OpenAi => ("authorization", bearer.as_str()),
        Api::Gemini => ("x-goog-api-key", MODEL_KEY),
    };
    // Anthropic accepts its key in both headers.
    let is_bearer = api == Api::Anthropic && request.header("authorization") == Some(&bearer);
    if request.header(header) != Some(key) && !is_bearer {
        return Err((401, format!("invalid key `{}`", request.header(header).unwrap_or_default())));
    }
    let body = &request.body;
    let checked = match api {
        Api::Anthropic => anthropic(request),
        Api::OpenAi => openai(body),
        Api::Gemini => gemini(body),
    };
    checked.map_err(|message| (400, message))
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn name(name: &Value, longest: usize) -> Result<(), String> {
    let name = name.as_str().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > longest || !name.chars().all(plain) {
        return Err(format!("invalid tool name `{name}`"));
    }
    Ok(())
}

fn anthropic(request: &ModelRequest) -> Result<(), String> {
    let body = &request.body;
    if request.header("anthropic-version").is_none() || body["max_tokens"].as_u64().is_none() {
        return Err("anthropic-version and max_tokens are required".to_owned());
    }
    for tool in list(body, "/tools") {
        name(&tool["name"], 128)?;
        if tool["input_schema"]["type"] != "object" {
            return Err("input_schema.type must be object".to_owned());
        }
    }
    let messages = list(body, "/messages");
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("the first message must be of the user".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        let blocks = list(message, "/content");
        let is_empty = |block: &&Value| {
            block["type"] == "text"
                && block["text"].as_str().is_none_or(|text| text.trim().is_empty())
        };
        if blocks.iter().any(|block| is_empty(&block)) {
            return Err("text content blocks must be non-empty".to_owned());
        }
        let unsigned = |block: &&Value| {
            block["type"] == "thinking"
                && !block["signature"].as_str().is_some_and(|sign| sign.starts_with("signature-"))
        };
        if blocks.iter().any(|block| unsigned(&block)) {
            return Err("thinking block without its signature".to_owned());
        }
        let next = messages.get(at + 1).map(|next| list(next, "/content")).unwrap_or_default();
        for call in blocks.iter().filter(|block| block["type"] == "tool_use") {
            let answered = next.iter().any(|block| block["tool_use_id"] == call["id"]);
            if !answered || !call["input"].is_object() {
                return Err(format!("tool_use {} without tool_result", call["id"]));
            }
        }
    }
    Ok(())
}

fn openai(body: &Value) -> Result<(), String> {
    for tool in list(body, "/tools") {
        name(&tool["function"]["name"], 64)?;
    }
    let messages = list(body, "/messages");
    for (at, message) in messages.iter().enumerate() {
        let calls = list(message, "/tool_calls");
        let following = messages.get(at + 1..).unwrap_or_default();
        let answers: Vec<&Value> =
            following.iter().take_while(|next| next["role"] == "tool").collect();
        for call in calls {
            if !answers.iter().any(|answer| answer["tool_call_id"] == call["id"]) {
                return Err(format!("tool_call {} without an answer", call["id"]));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<Value>(arguments).is_err() {
                return Err("arguments must be JSON".to_owned());
            }
        }
    }
    Ok(())
}

fn gemini(body: &Value) -> Result<(), String> {
    for tool in list(body, "/tools/0/functionDeclarations") {
        name(&tool["name"], 64)?;
        let schema = tool["parameters"].to_string();
        if schema.contains("\"$schema\"") || schema.contains("\"additionalProperties\"") {
            return Err("Unknown name in parameters".to_owned());
        }
    }
    let contents = list(body, "/contents");
    for (at, content) in contents.iter().enumerate() {
        let parts = list(content, "/parts");
        let calls: Vec<&Value> =
            parts.iter().filter(|part| part["functionCall"].is_object()).collect();
        let signed = |part: &&Value| {
            let signature = part["thoughtSignature"].as_str().unwrap_or_default();
            signature.starts_with("signature-") || signature == "skip_thought_signature_validator"
        };
        if calls.first().is_some_and(|first| !signed(first)) {
            return Err("Function call is missing a thought_signature".to_owned());
        }
        let next = contents.get(at + 1).map(|next| list(next, "/parts")).unwrap_or_default();
        let answers = next.iter().filter(|part| part["functionResponse"].is_object()).count();
        if !calls.is_empty() && answers != calls.len() {
            return Err("the number of function responses must equal that of calls".to_owned());
        }
    }
    Ok(())
}
