//! The Messages API of Anthropic.

use capstan_hub::catalog::Provider;
use capstan_hub::ports::{
    ChatEnd, ChatEvent, ChatMessage, ChatPart, ChatRequest, ImagePart, Role, Stop, ToolResult,
};
use capstan_model::Secret;
use serde_json::{Map, Value, json};

use crate::format::{
    AnswerReader, Assembly, OpenCall, ReadError, WireFormat, number, parse, text, under, value,
};

/// The revision of the interface.
const VERSION: &str = "2023-06-01";

/// The longest answer, in tokens, if none is configured; the interface requires a limit.
const USUAL_OUTPUT: u32 = 8192;

/// The format.
pub(crate) struct Anthropic {
    pub(crate) model: String,
    pub(crate) max_output: Option<u32>,
}

/// Reads an answer.
struct Reader {
    assembly: Assembly,
    block: Option<Block>,
    stop: Option<Stop>,
    complete: bool,
}

/// The content block that is being received.
enum Block {
    Text,
    Call(OpenCall),
    /// Reasoning, kept with its signature.
    Reasoning(Map<String, Value>),
    /// A block that this version does not know.
    Other,
}

// === impl Anthropic ===

impl WireFormat for Anthropic {
    fn path(&self, endpoint: &str) -> String {
        under(endpoint, "v1", "messages")
    }

    fn query(&self) -> Option<&'static str> {
        None
    }

    fn headers(&self, key: Option<&Secret<String>>) -> Vec<(String, Secret<String>)> {
        let version = ("anthropic-version".to_owned(), Secret::new(VERSION.to_owned()));
        let key = key.map(|key| ("x-api-key".to_owned(), key.clone()));
        std::iter::once(version).chain(key).collect()
    }

    fn body(&self, request: &ChatRequest) -> Value {
        let mut messages: Vec<Value> = request.messages.iter().filter_map(message).collect();
        let last = messages.last_mut().and_then(|last| last.get_mut("content"));
        if let Some(block) = last.and_then(Value::as_array_mut).and_then(|all| all.last_mut()) {
            remember(block);
        }
        let mut body = json!({
            "model": self.model,
            "max_tokens": self.max_output.unwrap_or(USUAL_OUTPUT),
            "stream": true,
            "messages": messages,
        });
        if !request.system.is_empty() {
            let mut system = json!({ "type": "text", "text": request.system });
            remember(&mut system);
            put(&mut body, "system", json!([system]));
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": value(&tool.schema),
                })
            });
            put(&mut body, "tools", tools.collect());
        }
        body
    }

    fn reader(&self) -> Box<dyn AnswerReader> {
        let assembly = Assembly::new(Provider::Anthropic);
        Box::new(Reader { assembly, block: None, stop: None, complete: false })
    }
}

/// Marks the end of a prefix that the provider may cache.
fn remember(block: &mut Value) {
    put(block, "cache_control", json!({ "type": "ephemeral" }));
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

fn message(message: &ChatMessage) -> Option<Value> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content: Vec<Value> = message.parts.iter().filter_map(part).collect();
    (!content.is_empty()).then(|| json!({ "role": role, "content": content }))
}

fn part(part: &ChatPart) -> Option<Value> {
    match part {
        // The interface refuses empty texts.
        ChatPart::Text { text, .. } if text.trim().is_empty() => None,
        ChatPart::Text { text, .. } => Some(json!({ "type": "text", "text": text })),
        ChatPart::Image(picture) => Some(image(picture)),
        ChatPart::Call(call) => Some(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": value(&call.arguments),
        })),
        ChatPart::Result(answer) => Some(result(answer)),
        ChatPart::Reasoning(data) => data.of(Provider::Anthropic).map(value),
    }
}

fn image(image: &ImagePart) -> Value {
    let source = json!({ "type": "base64", "media_type": image.mime, "data": image.data });
    json!({ "type": "image", "source": source })
}

fn result(answer: &ToolResult) -> Value {
    let text =
        (!answer.text.trim().is_empty()).then(|| json!({ "type": "text", "text": answer.text }));
    let content: Vec<Value> = text.into_iter().chain(answer.images.iter().map(image)).collect();
    json!({
        "type": "tool_result",
        "tool_use_id": answer.id,
        "content": content,
        "is_error": answer.is_error,
    })
}

// === impl Reader ===

impl Reader {
    fn start(&mut self, block: &Value, out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        self.block = Some(match text(block, "/type") {
            "text" => {
                self.text(text(block, "/text"), out)?;
                Block::Text
            }
            "tool_use" => {
                let (id, name) = (text(block, "/id").to_owned(), text(block, "/name").to_owned());
                out.push(ChatEvent::Calling { name: name.clone() });
                // A block may come with its whole input.
                let input = block.get("input").and_then(Value::as_object);
                let whole = input.filter(|input| !input.is_empty());
                let arguments = whole.map(|input| Value::Object(input.clone()).to_string());
                let arguments = arguments.unwrap_or_default();
                Block::Call(OpenCall { id, name, arguments, extra: None })
            }
            "thinking" | "redacted_thinking" => {
                Block::Reasoning(block.as_object().cloned().unwrap_or_default())
            }
            _ => Block::Other,
        });
        Ok(())
    }

    fn text(&mut self, piece: &str, out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        if !piece.is_empty() {
            self.assembly.text(piece)?;
            out.push(ChatEvent::Text(piece.to_owned()));
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        match &mut self.block {
            Some(Block::Text) => self.text(text(delta, "/text"), out)?,
            Some(Block::Call(call)) => call.arguments.push_str(text(delta, "/partial_json")),
            Some(Block::Reasoning(block)) => {
                for key in ["thinking", "signature"] {
                    let Some(piece) = delta.get(key).and_then(Value::as_str) else { continue };
                    let entry = block.entry(key).or_insert_with(|| Value::String(String::new()));
                    if let Value::String(whole) = entry {
                        whole.push_str(piece);
                    }
                    if key == "thinking" {
                        out.push(ChatEvent::Reasoning(piece.to_owned()));
                    }
                }
            }
            Some(Block::Other) | None => {}
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), ReadError> {
        match self.block.take() {
            Some(Block::Call(call)) => self.assembly.call(call),
            Some(Block::Reasoning(block)) => {
                let data = self.assembly.extra(&Value::Object(block));
                self.assembly.part(ChatPart::Reasoning(data))
            }
            Some(Block::Text | Block::Other) | None => Ok(()),
        }
    }

    /// Takes over the counts of an event; later events have the final ones.
    fn count(&mut self, usage: &Value) {
        let tokens = &mut self.assembly.tokens;
        let cached = number(usage, "/cache_read_input_tokens");
        let input = number(usage, "/input_tokens")
            .saturating_add(cached)
            .saturating_add(number(usage, "/cache_creation_input_tokens"));
        tokens.input = tokens.input.max(input);
        tokens.cached = tokens.cached.max(cached);
        tokens.output = tokens.output.max(number(usage, "/output_tokens"));
    }
}

impl AnswerReader for Reader {
    fn read(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        self.assembly.grow(data.len())?;
        let event = parse(data)?;
        match text(&event, "/type") {
            "message_start" => self.count(event.pointer("/message/usage").unwrap_or(&Value::Null)),
            "content_block_start" => {
                self.start(event.get("content_block").unwrap_or(&Value::Null), out)?;
            }
            "content_block_delta" => {
                self.delta(event.get("delta").unwrap_or(&Value::Null), out)?;
            }
            "content_block_stop" => self.stop()?,
            "message_delta" => {
                self.count(event.get("usage").unwrap_or(&Value::Null));
                self.stop = Some(match text(&event, "/delta/stop_reason") {
                    "max_tokens" | "model_context_window_exceeded" => Stop::Length,
                    "refusal" => Stop::Refused("refusal".to_owned()),
                    _ => Stop::Done,
                });
            }
            "message_stop" => self.complete = true,
            "error" => {
                let (kind, message) = (text(&event, "/error/type"), text(&event, "/error/message"));
                return Err(ReadError::Reported(kind.to_owned(), message.to_owned()));
            }
            // `ping`, and events of later revisions.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Option<ChatEnd> {
        if !self.complete {
            return None;
        }
        let stop = self.stop.take().unwrap_or(Stop::Done);
        Some(self.assembly.end(stop))
    }

    fn is_complete(&self) -> bool {
        self.complete
    }
}
