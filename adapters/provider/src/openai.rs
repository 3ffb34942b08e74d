//! The Chat Completions API of `OpenAI`, which Ollama, vLLM, llama.cpp and others have too.

use capstan_hub::catalog::Provider;
use capstan_hub::ports::{
    ChatEnd, ChatEvent, ChatMessage, ChatPart, ChatRequest, ImagePart, Role, Stop,
};
use capstan_model::Secret;
use serde_json::{Map, Value, json};

use crate::format::{
    AnswerReader, Assembly, OpenCall, ReadError, WireFormat, number, parse, text, under, value,
};

/// The largest number of calls in one answer.
const MAX_CALLS: usize = 256;

/// Members in which servers send the reasoning of a model.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The format.
pub(crate) struct OpenAi {
    pub(crate) model: String,
    pub(crate) max_output: Option<u32>,
    /// True for `OpenAI` itself, whose newer models want another name for the limit of an answer.
    pub(crate) is_original: bool,
}

/// Reads an answer.
struct Reader {
    assembly: Assembly,
    /// Calls with their index in the answer.
    calls: Vec<(u64, OpenCall)>,
    /// Reasoning by the member that it came in.
    reasoning: Map<String, Value>,
    stop: Option<Stop>,
    complete: bool,
}

// === impl OpenAi ===

impl WireFormat for OpenAi {
    fn path(&self, endpoint: &str) -> String {
        under(endpoint, "", "chat/completions")
    }

    fn query(&self) -> Option<&'static str> {
        None
    }

    fn headers(&self, key: Option<&Secret<String>>) -> Vec<(String, Secret<String>)> {
        let bearer = |key: &Secret<String>| Secret::new(format!("Bearer {}", key.reveal()));
        key.map(|key| ("authorization".to_owned(), bearer(key))).into_iter().collect()
    }

    fn body(&self, request: &ChatRequest) -> Value {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({ "role": "system", "content": request.system }));
        }
        for message in &request.messages {
            match message.role {
                Role::User => user(message, &mut messages),
                Role::Assistant => messages.extend(assistant(message)),
            }
        }
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        body.insert("messages".to_owned(), Value::Array(messages));
        body.insert("stream".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        if let Some(limit) = self.max_output {
            let key = if self.is_original { "max_completion_tokens" } else { "max_tokens" };
            body.insert(key.to_owned(), json!(limit));
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                let function = json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": value(&tool.schema),
                });
                json!({ "type": "function", "function": function })
            });
            body.insert("tools".to_owned(), tools.collect());
        }
        Value::Object(body)
    }

    fn reader(&self) -> Box<dyn AnswerReader> {
        Box::new(Reader {
            assembly: Assembly::new(Provider::OpenAi),
            calls: Vec::new(),
            reasoning: Map::new(),
            stop: None,
            complete: false,
        })
    }
}

/// Writes the results of calls, which are messages of their own, and then the rest.
///
/// A result can only be a text; its images follow in a message of the user.
fn user(message: &ChatMessage, messages: &mut Vec<Value>) {
    let mut rest = Vec::new();
    let mut pictures = Vec::new();
    for part in &message.parts {
        match part {
            ChatPart::Text { text, .. } if text.is_empty() => {}
            ChatPart::Text { text, .. } => rest.push(json!({ "type": "text", "text": text })),
            ChatPart::Image(picture) => rest.push(image(picture)),
            ChatPart::Result(result) => {
                let (id, content) = (&result.id, &result.text);
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": content }));
                if !result.images.is_empty() {
                    let label = format!("Images in the result of `{}`:", result.name);
                    pictures.push(json!({ "type": "text", "text": label }));
                    pictures.extend(result.images.iter().map(image));
                }
            }
            ChatPart::Call(_) | ChatPart::Reasoning(_) => {}
        }
    }
    pictures.append(&mut rest);
    match pictures.as_slice() {
        [] => {}
        // Some servers accept only a string where there are no images.
        [only] if only.get("text").is_some() => {
            messages.push(json!({ "role": "user", "content": text(only, "/text") }));
        }
        _ => messages.push(json!({ "role": "user", "content": pictures })),
    }
}

fn image(image: &ImagePart) -> Value {
    let url = format!("data:{};base64,{}", image.mime, image.data);
    json!({ "type": "image_url", "image_url": { "url": url } })
}

fn assistant(message: &ChatMessage) -> Option<Value> {
    let mut out = Map::new();
    out.insert("role".to_owned(), json!("assistant"));
    let said = message.text();
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments.as_str() });
            let mut out = json!({ "id": call.id, "type": "function", "function": function });
            let extra = call.extra.as_ref().and_then(|extra| extra.of(Provider::OpenAi));
            if let (Some(extra), Some(object)) = (extra, out.as_object_mut()) {
                object.extend(value(extra).as_object().cloned().unwrap_or_default());
            }
            out
        })
        .collect();
    if said.is_empty() && calls.is_empty() {
        return None;
    }
    // Null beside calls, because some servers refuse an empty text.
    let content = if said.is_empty() { Value::Null } else { json!(said) };
    out.insert("content".to_owned(), content);
    if !calls.is_empty() {
        out.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    for part in &message.parts {
        if let ChatPart::Reasoning(data) = part
            && let Some(data) = data.of(Provider::OpenAi)
        {
            out.extend(value(data).as_object().cloned().unwrap_or_default());
        }
    }
    Some(Value::Object(out))
}

// === impl Reader ===

impl Reader {
    fn delta(&mut self, delta: &Value, out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        for key in REASONING {
            let Some(piece) = delta.get(key).and_then(Value::as_str) else { continue };
            let whole = self.reasoning.entry(key).or_insert_with(|| json!(""));
            if let Value::String(whole) = whole {
                whole.push_str(piece);
            }
            if !piece.is_empty() {
                out.push(ChatEvent::Reasoning(piece.to_owned()));
            }
        }
        for key in ["/content", "/refusal"] {
            let piece = text(delta, key);
            if !piece.is_empty() {
                self.assembly.text(piece)?;
                out.push(ChatEvent::Text(piece.to_owned()));
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        Ok(())
    }

    /// Reads a piece of a call. Pieces without an index belong to the call with their id, else to
    /// the last one.
    fn call(&mut self, piece: &Value, out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        let id = text(piece, "/id");
        let last = self.calls.last().map(|(index, call)| (*index, call.id.as_str()));
        let index = piece.get("index").and_then(Value::as_u64).unwrap_or(match last {
            None => 0,
            Some((index, known)) if id.is_empty() || id == known => index,
            Some((index, _)) => index.saturating_add(1),
        });
        if !self.calls.iter().any(|(known, _)| *known == index) {
            if self.calls.len() >= MAX_CALLS {
                return Err(ReadError::Malformed(format!("it has more than {MAX_CALLS} calls")));
            }
            out.push(ChatEvent::Calling { name: text(piece, "/function/name").to_owned() });
            self.calls.push((index, OpenCall::default()));
        }
        let Some((_, call)) = self.calls.iter_mut().find(|(known, _)| *known == index) else {
            return Ok(());
        };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            text(piece, "/function/name").clone_into(&mut call.name);
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(more)) => call.arguments.push_str(more),
            // Some servers send the arguments as they are.
            Some(whole @ Value::Object(_)) => call.arguments = whole.to_string(),
            Some(_) | None => {}
        }
        // Gemini behind this interface sends its signature here.
        if let Some(extra) = piece.get("extra_content") {
            call.extra = Some(json!({ "extra_content": extra }));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ReadError> {
        if !self.reasoning.is_empty() {
            let reasoning = std::mem::take(&mut self.reasoning);
            let data = self.assembly.extra(&Value::Object(reasoning));
            self.assembly.part(ChatPart::Reasoning(data))?;
        }
        for (at, (_, mut call)) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{at}");
            }
            self.assembly.call(call)?;
        }
        Ok(())
    }
}

impl AnswerReader for Reader {
    fn read(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        self.assembly.grow(data.len())?;
        if data.trim_ascii() == b"[DONE]" {
            self.complete = self.stop.is_some();
            return Ok(());
        }
        let event = parse(data)?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            let kind = error.get("code").or_else(|| error.get("type"));
            let kind =
                kind.map(|kind| kind.as_str().map_or_else(|| kind.to_string(), str::to_owned));
            let message = text(error, "/message").to_owned();
            return Err(ReadError::Reported(kind.unwrap_or_default(), message));
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.assembly.tokens.input = number(usage, "/prompt_tokens");
            self.assembly.tokens.output = number(usage, "/completion_tokens");
            self.assembly.tokens.cached = number(usage, "/prompt_tokens_details/cached_tokens");
        }
        let Some(choice) = event.pointer("/choices/0") else { return Ok(()) };
        self.delta(choice.get("delta").unwrap_or(&Value::Null), out)?;
        match text(choice, "/finish_reason") {
            "" => {}
            reason => {
                self.finish()?;
                self.stop = Some(match reason {
                    "length" => Stop::Length,
                    "content_filter" => Stop::Refused(reason.to_owned()),
                    _ => Stop::Done,
                });
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Option<ChatEnd> {
        // Some servers end the stream without `[DONE]`.
        let stop = self.stop.take()?;
        Some(self.assembly.end(stop))
    }

    fn is_complete(&self) -> bool {
        self.complete
    }
}
