//! Writes answers in the streaming formats of the providers.

#![expect(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "members of JSON values do not panic, and most ends of an answer are written alike"
)]

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Api, ModelRequest, ModelStep, StepEnd};

/// The number of characters in a piece of a text.
const TEXT: usize = 7;

/// The number of characters in a piece of a call's arguments.
const ARGUMENTS: usize = 5;

/// The body of an error.
pub(super) fn error(api: Api, status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "invalid_request_error",
    };
    let body = match api {
        Api::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Api::OpenAi => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
        Api::Gemini => json!({"error": {"code": status, "message": message, "status": "ERROR"}}),
    };
    body.to_string()
}

/// The events of an answer.
pub(super) fn stream(api: Api, request: &ModelRequest, step: &ModelStep) -> String {
    match api {
        Api::Anthropic => anthropic(request, step),
        Api::OpenAi => openai(request, step),
        Api::Gemini => gemini(step),
    }
}

fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn anthropic(request: &ModelRequest, step: &ModelStep) -> String {
    let mut out = String::new();
    let mut event = |mut data: Value, name: &str| {
        data["type"] = json!(name);
        let _ = write!(out, "event: {name}\ndata: {data}\n\n");
    };
    let message = json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": request.body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 5, "output_tokens": 1},
    });
    event(json!({ "message": message }), "message_start");
    event(json!({}), "ping");
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        event(json!({"index": index, "content_block": start}), "content_block_start");
        for delta in deltas {
            event(json!({"index": index, "delta": delta}), "content_block_delta");
        }
        event(json!({ "index": index }), "content_block_stop");
        index += 1;
    };
    if let Some(reasoning) = &step.reasoning {
        let thoughts = pieces(reasoning, TEXT).into_iter();
        let mut deltas: Vec<Value> =
            thoughts.map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        deltas.push(json!({"type": "signature_delta", "signature": "signature-of-thinking"}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !step.text.is_empty() {
        let texts = pieces(&step.text, TEXT).into_iter();
        let deltas = texts.map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        block(json!({"type": "text", "text": ""}), deltas);
    }
    for (at, (name, arguments)) in step.calls.iter().enumerate() {
        let inputs = std::iter::once(String::new()).chain(pieces(arguments, ARGUMENTS));
        let deltas = inputs
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect();
        let id = format!("toolu_{at}");
        block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas);
    }
    match step.end {
        StepEnd::Hang => return out,
        StepEnd::Reported => {
            let error = json!({"type": "overloaded_error", "message": "Overloaded"});
            event(json!({ "error": error }), "error");
            return out;
        }
        _ => {}
    }
    let reason = match step.end {
        StepEnd::Length => "max_tokens",
        _ if step.calls.is_empty() => "end_turn",
        _ => "tool_use",
    };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    event(json!({"delta": delta, "usage": {"output_tokens": 20}}), "message_delta");
    event(json!({}), "message_stop");
    out
}

fn openai(request: &ModelRequest, step: &ModelStep) -> String {
    let mut out = String::new();
    let mut event = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": request.body["model"], "choices": choices, "usage": usage,
        });
        let _ = write!(out, "data: {chunk}\n\n");
    };
    let mut delta = |delta: Value, reason: Value| {
        event(json!([{"index": 0, "delta": delta, "finish_reason": reason}]), Value::Null);
    };
    delta(json!({"role": "assistant", "content": null}), Value::Null);
    for piece in pieces(step.reasoning.as_deref().unwrap_or_default(), TEXT) {
        delta(json!({ "reasoning_content": piece }), Value::Null);
    }
    for piece in pieces(&step.text, TEXT) {
        delta(json!({ "content": piece }), Value::Null);
    }
    for (at, (name, arguments)) in step.calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let id = format!("call_{at}");
        let call = json!({"index": at, "id": id, "type": "function", "function": function});
        delta(json!({ "tool_calls": [call] }), Value::Null);
        for piece in pieces(arguments, ARGUMENTS) {
            let call = json!({"index": at, "function": {"arguments": piece}});
            delta(json!({ "tool_calls": [call] }), Value::Null);
        }
    }
    match step.end {
        StepEnd::Hang => return out,
        StepEnd::Reported => {
            let error = json!({"error": {"message": "Overloaded", "type": "server_error", "code": "server_error"}});
            let _ = write!(out, "data: {error}\n\n");
            return out;
        }
        _ => {}
    }
    let reason = match step.end {
        StepEnd::Length => "length",
        _ if step.calls.is_empty() => "stop",
        _ => "tool_calls",
    };
    delta(json!({}), json!(reason));
    let details = json!({ "cached_tokens": 5 });
    let usage = json!({
        "prompt_tokens": 17, "completion_tokens": 20, "total_tokens": 37, "prompt_tokens_details": details,
    });
    event(json!([]), usage);
    out.push_str("data: [DONE]\n\n");
    out
}

fn gemini(step: &ModelStep) -> String {
    let mut out = String::new();
    let mut event = |parts: Value, reason: Option<&str>| {
        let content = json!({"parts": parts, "role": "model"});
        let mut candidate = json!({"content": content, "index": 0});
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        let usage = json!({
            "promptTokenCount": 17, "candidatesTokenCount": 15, "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 5, "totalTokenCount": 37,
        });
        let chunk = json!({
            "candidates": [candidate], "usageMetadata": usage,
            "modelVersion": "stand-in", "responseId": "r1",
        });
        let _ = write!(out, "data: {chunk}\r\n\r\n");
    };
    for piece in pieces(step.reasoning.as_deref().unwrap_or_default(), TEXT) {
        event(json!([{"text": piece, "thought": true}]), None);
    }
    for piece in pieces(&step.text, TEXT) {
        event(json!([{ "text": piece }]), None);
    }
    for (at, (name, arguments)) in step.calls.iter().enumerate() {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
        let mut part = json!({"functionCall": {"name": name, "args": arguments}});
        // Of several calls, the first has the signature.
        if at == 0 {
            part["thoughtSignature"] = json!("signature-of-a-call");
        }
        event(json!([part]), None);
    }
    match step.end {
        StepEnd::Hang => return out,
        StepEnd::Reported => {
            let error =
                json!({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}});
            let _ = write!(out, "data: {error}\r\n\r\n");
            return out;
        }
        _ => {}
    }
    let reason = if matches!(step.end, StepEnd::Length) { "MAX_TOKENS" } else { "STOP" };
    // The signature of a text comes with an empty last part.
    let signature = step.calls.is_empty().then_some("signature-of-a-text");
    let last = signature.map_or_else(
        || json!([{ "text": "" }]),
        |signature| json!([{"text": "", "thoughtSignature": signature}]),
    );
    event(last, Some(reason));
    out
}
