//! The `generateContent` API of Gemini.

use capstan_hub::catalog::Provider;
use capstan_hub::ports::{
    ChatEnd, ChatEvent, ChatMessage, ChatPart, ChatRequest, ImagePart, ProviderData, Role, Stop,
    ToolCall, ToolResult,
};
use capstan_model::Secret;
use serde_json::{Map, Value, json};

use crate::format::{
    AnswerReader, Assembly, OpenCall, ReadError, WireFormat, number, parse, text, under, value,
};

/// Begins the ids of calls to which the provider gave none.
const OWN_ID: &str = "capstan-call-";

/// Stands for the signature of a call that a model of another provider made. Gemini refuses calls
/// without a signature, and documents this value for conversations that come from elsewhere.
const FOREIGN: &str = "skip_thought_signature_validator";

/// The signature of a part, which must be sent back with it.
const SIGNATURE: &str = "thoughtSignature";

/// The format.
pub(crate) struct Gemini {
    pub(crate) model: String,
    pub(crate) max_output: Option<u32>,
}

/// Reads an answer.
struct Reader {
    assembly: Assembly,
    calls: usize,
    stop: Option<Stop>,
}

// === impl Gemini ===

impl WireFormat for Gemini {
    fn path(&self, endpoint: &str) -> String {
        let model = self.model.strip_prefix("models/").unwrap_or(&self.model);
        under(endpoint, "v1beta", &format!("models/{model}:streamGenerateContent"))
    }

    fn query(&self) -> Option<&'static str> {
        Some("alt=sse")
    }

    fn headers(&self, key: Option<&Secret<String>>) -> Vec<(String, Secret<String>)> {
        key.map(|key| ("x-goog-api-key".to_owned(), key.clone())).into_iter().collect()
    }

    fn body(&self, request: &ChatRequest) -> Value {
        let contents: Vec<Value> = request.messages.iter().filter_map(content).collect();
        let mut body = Map::new();
        body.insert("contents".to_owned(), Value::Array(contents));
        if !request.system.is_empty() {
            let system = json!({ "parts": [{ "text": request.system }] });
            body.insert("systemInstruction".to_owned(), system);
        }
        if !request.tools.is_empty() {
            let tools: Vec<Value> = request
                .tools
                .iter()
                .map(|tool| {
                    let mut out = json!({ "name": tool.name, "description": tool.description });
                    let schema = value(&tool.schema);
                    // An object without properties is refused; no schema means no arguments.
                    let properties = schema.get("properties").and_then(Value::as_object);
                    if let (Some(object), Some(false)) =
                        (out.as_object_mut(), properties.map(Map::is_empty))
                    {
                        object.insert("parameters".to_owned(), schema);
                    }
                    out
                })
                .collect();
            body.insert("tools".to_owned(), json!([{ "functionDeclarations": tools }]));
        }
        if let Some(limit) = self.max_output {
            body.insert("generationConfig".to_owned(), json!({ "maxOutputTokens": limit }));
        }
        Value::Object(body)
    }

    fn reader(&self) -> Box<dyn AnswerReader> {
        Box::new(Reader { assembly: Assembly::new(Provider::Gemini), calls: 0, stop: None })
    }
}

fn content(message: &ChatMessage) -> Option<Value> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let is_foreign = message.written_by != Some(Provider::Gemini);
    let mut parts = Vec::new();
    for part in &message.parts {
        match part {
            ChatPart::Text { text, extra } => {
                let extra = own(extra.as_ref());
                if !text.is_empty() || extra.is_some() {
                    parts.push(with(json!({ "text": text }), extra));
                }
            }
            ChatPart::Image(picture) => parts.push(image(picture)),
            ChatPart::Call(one) => parts.push(call(one, is_foreign.then_some(FOREIGN))),
            ChatPart::Result(answer) => result(answer, &mut parts),
            ChatPart::Reasoning(_) => {}
        }
    }
    (!parts.is_empty()).then(|| json!({ "role": role, "parts": parts }))
}

/// The members that Gemini sent beside the content of a part.
fn own(extra: Option<&ProviderData>) -> Option<Value> {
    extra.and_then(|extra| extra.of(Provider::Gemini)).map(value)
}

fn with(mut part: Value, extra: Option<Value>) -> Value {
    if let (Some(part), Some(Value::Object(extra))) = (part.as_object_mut(), extra) {
        part.extend(extra);
    }
    part
}

fn image(image: &ImagePart) -> Value {
    json!({ "inlineData": { "mimeType": image.mime, "data": image.data } })
}

fn call(call: &ToolCall, foreign: Option<&str>) -> Value {
    let mut function = json!({ "name": call.name, "args": value(&call.arguments) });
    identify(&mut function, &call.id);
    let extra = own(call.extra.as_ref());
    let foreign = foreign.map(|signature| json!({ SIGNATURE: signature }));
    with(json!({ "functionCall": function }), extra.or(foreign))
}

fn identify(function: &mut Value, id: &str) {
    if let Some(object) = function.as_object_mut().filter(|_| !id.starts_with(OWN_ID)) {
        object.insert("id".to_owned(), json!(id));
    }
}

/// Writes a result; its images are parts beside it, which all models accept.
fn result(answer: &ToolResult, parts: &mut Vec<Value>) {
    let key = if answer.is_error { "error" } else { "output" };
    let mut function = json!({ "name": answer.name, "response": { key: answer.text } });
    identify(&mut function, &answer.id);
    parts.push(json!({ "functionResponse": function }));
    parts.extend(answer.images.iter().map(image));
}

// === impl Reader ===

impl Reader {
    fn part(&mut self, part: &Value, out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        let Some(members) = part.as_object() else { return Ok(()) };
        let is_content = |key: &str| matches!(key, "text" | "functionCall" | "thought");
        let extra: Map<String, Value> = members
            .iter()
            .filter(|(key, _)| !is_content(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let extra = (!extra.is_empty()).then_some(Value::Object(extra));
        if let Some(function) = part.get("functionCall") {
            let name = text(function, "/name").to_owned();
            out.push(ChatEvent::Calling { name: name.clone() });
            let id = match text(function, "/id") {
                "" => format!("{OWN_ID}{}", self.calls),
                id => id.to_owned(),
            };
            self.calls = self.calls.saturating_add(1);
            let arguments = function.get("args").map(ToString::to_string).unwrap_or_default();
            return self.assembly.call(OpenCall { id, name, arguments, extra });
        }
        let piece = text(part, "/text");
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            out.push(ChatEvent::Reasoning(piece.to_owned()));
            return Ok(());
        }
        if !piece.is_empty() {
            out.push(ChatEvent::Text(piece.to_owned()));
        }
        match extra {
            // A signature belongs to exactly this part, also to an empty one.
            Some(extra) => {
                let extra = Some(self.assembly.extra(&extra));
                self.assembly.part(ChatPart::Text { text: piece.to_owned(), extra })
            }
            None if piece.is_empty() => Ok(()),
            None => self.assembly.text(piece),
        }
    }
}

impl AnswerReader for Reader {
    fn read(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<(), ReadError> {
        self.assembly.grow(data.len())?;
        let event = parse(data)?;
        if let Some(error) = event.get("error") {
            let (status, message) = (text(error, "/status"), text(error, "/message"));
            return Err(ReadError::Reported(status.to_owned(), message.to_owned()));
        }
        if let Some(usage) = event.get("usageMetadata") {
            let tokens = &mut self.assembly.tokens;
            tokens.input = number(usage, "/promptTokenCount");
            tokens.output = number(usage, "/candidatesTokenCount")
                .saturating_add(number(usage, "/thoughtsTokenCount"));
            tokens.cached = number(usage, "/cachedContentTokenCount");
        }
        match text(&event, "/promptFeedback/blockReason") {
            "" => {}
            reason => self.stop = Some(Stop::Refused(reason.to_owned())),
        }
        let parts = event.pointer("/candidates/0/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, out)?;
        }
        match text(&event, "/candidates/0/finishReason") {
            "" => {}
            "STOP" => self.stop = Some(Stop::Done),
            "MAX_TOKENS" => self.stop = Some(Stop::Length),
            reason => self.stop = Some(Stop::Refused(reason.to_owned())),
        }
        Ok(())
    }

    fn end(&mut self) -> Option<ChatEnd> {
        let stop = self.stop.take()?;
        Some(self.assembly.end(stop))
    }

    /// The stream has no last event, so only its end tells.
    fn is_complete(&self) -> bool {
        false
    }
}
