//! The port for language models: a conversation goes in, a stream of events comes out.
//!
//! The types are independent of any provider. Data that only its provider understands (signatures
//! of reasoning) stays in [`ProviderData`] and is sent back to that provider unchanged.

use std::time::Duration;

use capstan_wire::Json;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::catalog::Provider;

/// A language model.
pub trait ChatModel: Send + Sync {
    /// The interface of the model, for which names and schemas of tools are made to fit.
    fn provider(&self) -> Provider;

    /// The model in the form `provider/name`.
    fn label(&self) -> String;

    /// Sends a conversation and returns the events of the answer. Dropping the stream cancels the
    /// request. The last item is [`ChatEvent::End`] or an error.
    fn chat(&self, request: ChatRequest) -> BoxStream<'static, Result<ChatEvent, ChatError>>;
}

/// A conversation that waits for the model's next message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The instructions of the operator and of servers.
    pub system: String,
    /// The messages, oldest first.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolOffer>,
}

/// A tool that is offered to a model, with a name and a schema that its provider accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOffer {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The schema of the arguments.
    pub schema: Json,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// The author.
    pub role: Role,
    /// The content.
    pub parts: Vec<ChatPart>,
    /// The provider of the model that wrote it; `None` for other authors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<Provider>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or a tool that answers.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatPart {
    /// A text.
    Text {
        /// The text.
        text: String,
        /// Data of the provider that belongs to this text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<ProviderData>,
    },
    /// An image.
    Image(ImagePart),
    /// A tool call of the model.
    Call(ToolCall),
    /// The answer to a tool call.
    Result(ToolResult),
    /// Reasoning of the model, which only its provider can read.
    Reasoning(ProviderData),
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagePart {
    /// The MIME type.
    pub mime: String,
    /// The bytes in base64.
    pub data: String,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the answer refers to.
    pub id: String,
    /// The name, as it was offered.
    pub name: String,
    /// The arguments: always an object.
    pub arguments: Json,
    /// The reason why the arguments of the model are not used; they are then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Data of the provider that belongs to this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<ProviderData>,
}

/// The answer to a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The name of the tool, as it was offered.
    pub name: String,
    /// The text of the answer.
    pub text: String,
    /// The images of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImagePart>,
    /// True if the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// Data that is sent back unchanged to the provider that sent it, and to no other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    /// The provider.
    pub provider: Provider,
    /// The data, in the provider's format.
    pub data: Json,
}

/// Something that happens while a model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatEvent {
    /// The next piece of the answer's text.
    Text(String),
    /// The next piece of the model's reasoning, for display.
    Reasoning(String),
    /// The model begins to write a tool call.
    Calling {
        /// The name of the tool, as it was offered.
        name: String,
    },
    /// The request failed and is sent again.
    Retrying {
        /// The number of the attempt that failed, from one.
        attempt: u32,
        /// The wait before the next attempt.
        wait: Duration,
        /// The reason.
        reason: String,
    },
    /// The answer is complete.
    End(ChatEnd),
}

/// A complete answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatEnd {
    /// The message, with all tool calls.
    pub message: ChatMessage,
    /// The tokens that were counted.
    pub tokens: TokenCount,
    /// The reason why the model stopped.
    pub stop: Stop,
}

/// Tokens that the provider counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// Tokens of the request, with those that were read from a cache.
    pub input: u64,
    /// Tokens of the answer, with those of reasoning.
    pub output: u64,
    /// Tokens of the request that were read from a cache.
    pub cached: u64,
}

/// The reason why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The answer is finished.
    Done,
    /// The model waits for the results of its tool calls.
    Calls,
    /// The answer reached the limit of its length.
    Length,
    /// The provider or the model refuses to answer; the word is the provider's.
    Refused(String),
}

/// The reason why a model gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatError {
    /// The provider does not accept the key.
    #[error("{model} does not accept the API key: {reason}")]
    Auth {
        /// The model.
        model: String,
        /// The words of the provider.
        reason: String,
    },
    /// The provider limits the rate of requests, or an account has no credit left.
    #[error("{model} limits the rate of requests: {reason}")]
    RateLimited {
        /// The model.
        model: String,
        /// The words of the provider.
        reason: String,
        /// The wait that the provider asks for.
        wait: Option<Duration>,
    },
    /// The provider fails or is overloaded.
    #[error("{model} failed with status {status}: {reason}")]
    Failed {
        /// The model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The words of the provider.
        reason: String,
    },
    /// The provider does not know the model, or the endpoint does not have this interface.
    #[error("{model} does not exist at its endpoint: {reason}")]
    NotFound {
        /// The model.
        model: String,
        /// The words of the provider.
        reason: String,
    },
    /// The conversation is longer than the model accepts.
    #[error("the conversation is too long for {model}: {reason}")]
    TooLong {
        /// The model.
        model: String,
        /// The words of the provider.
        reason: String,
    },
    /// The provider refuses the request.
    #[error("{model} refuses the request: {reason}")]
    Refused {
        /// The model.
        model: String,
        /// The words of the provider.
        reason: String,
    },
    /// The address policy refuses the endpoint.
    #[error("the endpoint of {model} is refused: {reason}")]
    Blocked {
        /// The model.
        model: String,
        /// The refusal.
        reason: String,
    },
    /// There is no connection to the endpoint.
    #[error("{model} cannot be reached: {reason}")]
    Unreachable {
        /// The model.
        model: String,
        /// The reason.
        reason: String,
    },
    /// The answer ended before it was complete.
    #[error("the answer of {model} broke off: {reason}")]
    Cut {
        /// The model.
        model: String,
        /// The reason.
        reason: String,
    },
    /// Nothing arrived for too long.
    #[error("{model} sent nothing for {} seconds", limit.as_secs())]
    TimedOut {
        /// The model.
        model: String,
        /// The limit.
        limit: Duration,
    },
    /// The answer is not in the provider's format, or too large.
    #[error("the answer of {model} cannot be read: {reason}")]
    Malformed {
        /// The model.
        model: String,
        /// The problem.
        reason: String,
    },
}

// === impl ChatMessage ===

impl ChatMessage {
    /// A message of the user with one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, parts: vec![ChatPart::text(text)], written_by: None }
    }

    /// The texts of the message, joined.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ChatPart::Text { text, .. } => Some(text.as_str()),
            ChatPart::Image(_)
            | ChatPart::Call(_)
            | ChatPart::Result(_)
            | ChatPart::Reasoning(_) => None,
        });
        texts.collect()
    }

    /// The tool calls of the message.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            ChatPart::Call(call) => Some(call),
            ChatPart::Text { .. }
            | ChatPart::Image(_)
            | ChatPart::Result(_)
            | ChatPart::Reasoning(_) => None,
        })
    }
}

// === impl ChatPart ===

impl ChatPart {
    /// A text without data of a provider.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), extra: None }
    }
}

// === impl ProviderData ===

impl ProviderData {
    /// The data, if it belongs to this provider.
    pub fn of(&self, provider: Provider) -> Option<&Json> {
        (self.provider == provider).then_some(&self.data)
    }
}

// === impl TokenCount ===

impl std::ops::AddAssign for TokenCount {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}

// === impl ChatError ===

impl ChatError {
    /// True if another attempt can succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Failed { .. }
            | Self::Unreachable { .. }
            | Self::Cut { .. } => true,
            Self::Auth { .. }
            | Self::NotFound { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. }
            | Self::Blocked { .. }
            | Self::TimedOut { .. }
            | Self::Malformed { .. } => false,
        }
    }
}
