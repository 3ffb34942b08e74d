//! A conversation, kept line by line.
//!
//! **Invariant:** a line is written before the next request is sent. A line that a crash cut in half
//! is ignored, and a call without a result gets one that says so.

use std::sync::Arc;

use capstan_hub::ReadSources;
use capstan_hub::ports::{ChatMessage, ChatPart, Role, TokenCount, ToolResult};
use capstan_safety::mask::{mask_json, mask_prose};
use capstan_wire::Json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::parts::INLINED;
use crate::{AppError, ErrorKind};

/// The version of the format.
const VERSION: u32 = 1;

/// Keeps conversations.
pub trait ConversationStore: Send + Sync {
    /// Makes a new conversation and returns its id.
    fn create(&self, now: Timestamp) -> Result<String, AppError>;

    /// Appends a line to a conversation, so that it outlives a crash.
    fn append(&self, id: &str, line: &str) -> Result<(), AppError>;

    /// The lines of a conversation.
    fn lines(&self, id: &str) -> Result<Vec<String>, AppError>;

    /// The ids of the latest conversations, newest first.
    fn latest(&self) -> Result<Vec<String>, AppError>;
}

/// A conversation.
pub struct Conversation {
    store: Arc<dyn ConversationStore>,
    id: String,
    messages: Vec<ChatMessage>,
    tokens: TokenCount,
    sources: ReadSources,
    /// The tokens of the last request and its answer, and the number of messages that they cover.
    measured: Option<(u64, usize)>,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line.
    Begin {
        /// The version of the format.
        version: u32,
        /// The folder that it is about.
        folder: String,
        /// The time.
        time: Timestamp,
    },
    /// A message.
    Message(ChatMessage),
    /// The tokens of a request.
    Tokens(TokenCount),
    /// The items by which the conversation has read data that rules about flows depend on.
    Read(ReadSources),
    /// All messages so far are replaced by these.
    Replaced(Vec<ChatMessage>),
}

// === impl Conversation ===

impl Conversation {
    /// Begins a conversation.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        store: Arc<dyn ConversationStore>,
        folder: &str,
        now: Timestamp,
    ) -> Result<Self, AppError> {
        let id = store.create(now)?;
        let (messages, tokens, sources) = Default::default();
        let conversation = Self { store, id, messages, tokens, sources, measured: None };
        let folder = folder.to_owned();
        conversation.write(&Line::Begin { version: VERSION, folder, time: now })?;
        Ok(conversation)
    }

    /// Reads the latest conversation about a folder.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn resume(store: Arc<dyn ConversationStore>, folder: &str) -> Result<Self, AppError> {
        for id in store.latest()? {
            let lines = store.lines(&id)?;
            let begin = lines.first().and_then(|line| serde_json::from_str(line).ok());
            let is_it = matches!(
                begin,
                Some(Line::Begin { version: VERSION, folder: known, .. }) if known == folder
            );
            if is_it {
                return Self::read(store, id, &lines);
            }
        }
        Err(AppError::not_found("there is no conversation to continue in this folder")
            .hint("begin one without `--continue`"))
    }

    fn read(
        store: Arc<dyn ConversationStore>,
        id: String,
        lines: &[String],
    ) -> Result<Self, AppError> {
        let (mut messages, mut tokens) = (Vec::new(), TokenCount::default());
        let mut sources = ReadSources::default();
        for (at, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                Ok(Line::Begin { .. }) => {}
                Ok(Line::Message(message)) => messages.push(message),
                Ok(Line::Tokens(more)) => tokens += more,
                Ok(Line::Read(read)) => sources = read,
                Ok(Line::Replaced(shorter)) => messages = shorter,
                // A crash cut the last line; it was never sent.
                Err(_) if at + 1 == lines.len() => {}
                Err(error) => {
                    let message = format!("line {} of the conversation `{id}`: {error}", at + 1);
                    return Err(AppError::new(ErrorKind::Config, message)
                        .hint("begin another conversation, without `--continue`"));
                }
            }
        }
        let mut conversation = Self { store, id, messages, tokens, sources, measured: None };
        conversation.answer_open_calls()?;
        Ok(conversation)
    }

    /// Adds results for calls that have none, because the program ended or the user left before.
    pub(super) fn answer_open_calls(&mut self) -> Result<(), AppError> {
        let Some(last) = self.messages.last().filter(|last| last.role == Role::Assistant) else {
            return Ok(());
        };
        let open: Vec<ChatPart> = last
            .calls()
            .map(|call| {
                ChatPart::Result(ToolResult {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    text: "The result was not awaited. The call may have run.".to_owned(),
                    images: Vec::new(),
                    is_error: true,
                })
            })
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        self.add(ChatMessage { role: Role::User, parts: open, written_by: None })
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// The tokens of all requests.
    pub fn tokens(&self) -> TokenCount {
        self.tokens
    }

    /// The items by which the conversation has read data that rules about flows depend on.
    pub fn sources(&self) -> &ReadSources {
        &self.sources
    }

    /// Keeps these items with the conversation, before their answers are added.
    pub(super) fn note(&mut self, sources: ReadSources) -> Result<(), AppError> {
        if self.sources != sources {
            self.write(&Line::Read(sources.clone()))?;
            self.sources = sources;
        }
        Ok(())
    }

    /// Tokens of the last request with its answer, and the number of messages that they cover.
    pub(super) fn measured(&self) -> Option<(u64, usize)> {
        self.measured
    }

    /// Adds a message.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, message: ChatMessage) -> Result<(), AppError> {
        self.write(&Line::Message(without_secrets(&message)))?;
        self.messages.push(message);
        Ok(())
    }

    /// Counts the tokens of a request whose answer was just added.
    pub(super) fn count(&mut self, tokens: TokenCount) -> Result<(), AppError> {
        self.tokens += tokens;
        let total = tokens.input.saturating_add(tokens.output);
        self.measured = (total > 0).then_some((total, self.messages.len()));
        self.write(&Line::Tokens(tokens))
    }

    /// Replaces all messages by fewer or shorter ones.
    pub(super) fn replace(&mut self, messages: Vec<ChatMessage>) -> Result<(), AppError> {
        self.write(&Line::Replaced(messages.iter().map(without_secrets).collect()))?;
        self.messages = messages;
        self.measured = None;
        Ok(())
    }

    fn write(&self, line: &Line) -> Result<(), AppError> {
        let text = serde_json::to_string(line);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        self.store.append(&self.id, &text)
    }
}

/// The message as it is written: secrets in results, arguments of calls and content that a message
/// names are masked. The user's own words stay, and so does signed reasoning, which its provider accepts only unchanged.
fn without_secrets(message: &ChatMessage) -> ChatMessage {
    let parts = message.parts.iter().map(|part| match part {
        ChatPart::Result(result) => ChatPart::Result(ToolResult {
            text: mask_prose(&result.text).into_owned(),
            ..result.clone()
        }),
        ChatPart::Call(call) => {
            let mut call = call.clone();
            if let Ok(mut value) = call.arguments.read() {
                mask_json(&mut value);
                call.arguments = Json::from_value(&value).unwrap_or(call.arguments);
            }
            ChatPart::Call(call)
        }
        ChatPart::Text { text, extra: None }
            if message.role == Role::Assistant || text.starts_with(INLINED) =>
        {
            ChatPart::text(mask_prose(text).into_owned())
        }
        ChatPart::Text { .. } | ChatPart::Image(_) | ChatPart::Reasoning(_) => part.clone(),
    });
    ChatMessage { parts: parts.collect(), ..message.clone() }
}
