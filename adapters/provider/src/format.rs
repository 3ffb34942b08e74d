//! The parts that all wire formats have in common.

use capstan_hub::catalog::Provider;
use capstan_hub::ports::{
    ChatEnd, ChatEvent, ChatMessage, ChatPart, ChatRequest, ProviderData, Role, Stop, TokenCount,
    ToolCall,
};
use capstan_model::Secret;
use capstan_wire::Json;
use serde_json::Value;

/// The largest number of parts in one answer.
const MAX_PARTS: usize = 1024;

/// The largest size of one answer, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// A wire format: how a conversation is written and how an answer is read.
pub(crate) trait WireFormat: Send + Sync {
    /// The path of requests behind the path of the endpoint.
    fn path(&self, endpoint: &str) -> String;

    /// The query of requests.
    fn query(&self) -> Option<&'static str>;

    /// The headers of requests.
    fn headers(&self, key: Option<&Secret<String>>) -> Vec<(String, Secret<String>)>;

    /// The body of a request.
    fn body(&self, request: &ChatRequest) -> Value;

    /// A reader for the events of one answer.
    fn reader(&self) -> Box<dyn AnswerReader>;
}

/// Reads the events of one answer.
pub(crate) trait AnswerReader: Send {
    /// Reads the data of one event.
    fn read(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<(), ReadError>;

    /// The complete answer; `None` if the stream ended before it was complete.
    fn end(&mut self) -> Option<ChatEnd>;

    /// True if nothing of the answer can follow.
    fn is_complete(&self) -> bool;
}

/// The reason why an answer cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The provider reports an error within the answer: its word or status, and its message.
    Reported(String, String),
    /// The answer is not in the format of the provider, or too large.
    Malformed(String),
}

/// The parts of an answer that is being read.
#[derive(Debug)]
pub(crate) struct Assembly {
    provider: Provider,
    parts: Vec<ChatPart>,
    size: usize,
    pub(crate) tokens: TokenCount,
}

/// A tool call whose arguments are still arriving.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) extra: Option<Value>,
}

// === impl Assembly ===

impl Assembly {
    pub(crate) fn new(provider: Provider) -> Self {
        Self { provider, parts: Vec::new(), size: 0, tokens: TokenCount::default() }
    }

    /// Counts bytes of the answer.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), ReadError> {
        self.size = self.size.saturating_add(bytes);
        if self.size > MAX_ANSWER {
            return Err(ReadError::Malformed(format!("it has more than {MAX_ANSWER} bytes")));
        }
        Ok(())
    }

    /// Appends to the text of the answer.
    pub(crate) fn text(&mut self, piece: &str) -> Result<(), ReadError> {
        if let Some(ChatPart::Text { text, extra: None }) = self.parts.last_mut() {
            text.push_str(piece);
            return Ok(());
        }
        self.part(ChatPart::text(piece))
    }

    /// Appends a part.
    pub(crate) fn part(&mut self, part: ChatPart) -> Result<(), ReadError> {
        if self.parts.len() >= MAX_PARTS {
            return Err(ReadError::Malformed(format!("it has more than {MAX_PARTS} parts")));
        }
        self.parts.push(part);
        Ok(())
    }

    /// Appends a tool call.
    pub(crate) fn call(&mut self, open: OpenCall) -> Result<(), ReadError> {
        let (arguments, problem) = match object(&open.arguments) {
            Ok(arguments) => (arguments, None),
            Err(problem) => (Json::empty_object(), Some(problem)),
        };
        let OpenCall { id, name, extra, .. } = open;
        let extra = extra.map(|extra| self.extra(&extra));
        self.part(ChatPart::Call(ToolCall { id, name, arguments, problem, extra }))
    }

    /// Data of the provider.
    pub(crate) fn extra(&self, data: &Value) -> ProviderData {
        ProviderData { provider: self.provider, data: json(data) }
    }

    /// The complete answer. Tool calls decide: some providers report another reason to stop.
    pub(crate) fn end(&mut self, stop: Stop) -> ChatEnd {
        let parts = std::mem::take(&mut self.parts);
        let message = ChatMessage { role: Role::Assistant, parts, written_by: Some(self.provider) };
        let stop = match stop {
            Stop::Done | Stop::Calls if message.calls().next().is_some() => Stop::Calls,
            Stop::Calls => Stop::Done,
            Stop::Done | Stop::Length | Stop::Refused(_) => stop,
        };
        ChatEnd { message, tokens: self.tokens, stop }
    }
}

/// Parses the arguments of a call; a model that has none to give may write nothing.
fn object(text: &str) -> Result<Json, String> {
    if text.trim().is_empty() {
        return Ok(Json::empty_object());
    }
    let parsed = Json::parse(text.to_owned());
    let parsed = parsed.map_err(|error| format!("the arguments are not valid JSON: {error}"))?;
    match value(&parsed) {
        Value::Object(_) => Ok(parsed),
        Value::Null => Ok(Json::empty_object()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("the arguments are not a JSON object".to_owned())
        }
    }
}

/// Converts for a body that is being written.
pub(crate) fn value(json: &Json) -> Value {
    json.read().unwrap_or(Value::Null)
}

/// Converts back.
pub(crate) fn json(value: &Value) -> Json {
    Json::from_value(value).unwrap_or_else(|_| Json::empty_object())
}

/// Parses the data of an event.
pub(crate) fn parse(data: &[u8]) -> Result<Value, ReadError> {
    serde_json::from_slice(data)
        .map_err(|error| ReadError::Malformed(format!("an event is not valid JSON: {error}")))
}

/// A string member, or nothing.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A number member, or zero.
pub(crate) fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// The path of the endpoint followed by `rest`, with `version` between them unless the endpoint has
/// one already.
pub(crate) fn under(endpoint: &str, version: &str, rest: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    let last = base.rsplit('/').next().unwrap_or_default();
    let is_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    if version.is_empty() || last.strip_prefix('v').is_some_and(is_version) {
        return format!("{base}/{rest}");
    }
    format!("{base}/{version}/{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_interface_is_in_a_path_once() {
        for (endpoint, expected) in [
            ("/", "/v1/messages"),
            ("", "/v1/messages"),
            ("/v1", "/v1/messages"),
            ("/proxy/v1/", "/proxy/v1/messages"),
            ("/proxy", "/proxy/v1/messages"),
            ("/v1beta", "/v1beta/messages"),
            ("/vault", "/vault/v1/messages"),
        ] {
            assert_eq!(under(endpoint, "v1", "messages"), expected, "{endpoint}");
        }
        assert_eq!(under("/v1", "", "chat/completions"), "/v1/chat/completions");
    }

    #[test]
    fn arguments_that_are_no_object_are_replaced_and_the_problem_is_kept() {
        let mut assembly = Assembly::new(Provider::OpenAi);
        for arguments in ["", "null", "{\"a\":1}", "{\"a\":", "[1]", "7"] {
            let arguments = arguments.to_owned();
            assembly.call(OpenCall { arguments, ..OpenCall::default() }).unwrap();
        }
        let end = assembly.end(Stop::Done);
        let calls: Vec<(&str, bool)> = end
            .message
            .calls()
            .map(|call| (call.arguments.as_str(), call.problem.is_some()))
            .collect();
        let expected = [
            ("{}", false),
            ("{}", false),
            ("{\"a\":1}", false),
            ("{}", true),
            ("{}", true),
            ("{}", true),
        ];
        assert_eq!(calls, expected);
        assert_eq!(end.stop, Stop::Calls);
    }

    #[test]
    fn an_answer_is_bounded() {
        let mut assembly = Assembly::new(Provider::OpenAi);
        assert_eq!(assembly.grow(MAX_ANSWER), Ok(()));
        assert!(assembly.grow(1).is_err());
        let mut parts = (0..=MAX_PARTS).map(|_| assembly.part(ChatPart::text("")));
        assert!(parts.by_ref().take(MAX_PARTS).all(|added| added.is_ok()));
        assert!(parts.next().unwrap().is_err());
    }
}
