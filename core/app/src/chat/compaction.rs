//! Shortens a conversation before it is longer than the model can read.
//!
//! First the turns before the current one are replaced by a summary of the model. If that is not
//! enough, results of the current turn except the last ones are left out.

use std::fmt::Write as _;

use capstan_hub::ports::{ChatMessage, ChatPart, ChatRequest, Role, ToolOffer};

use super::conversation::Conversation;

/// Bytes of text that make about one token; an estimate where the provider has not counted.
const BYTES_PER_TOKEN: usize = 4;

/// The tokens of an image, roughly.
const IMAGE_TOKENS: usize = 1_500;

/// The longest part of a message in the text that is summarized, in bytes.
const MAX_EXCERPT: usize = 4_000;

/// The results of this many messages at the end of a turn are never left out.
const KEPT: usize = 2;

/// Begins the message that holds a summary.
const SUMMARY: &str = "Summary of the conversation so far:\n";

/// The request for a summary.
const SUMMARIZE: &str = "Summarize the conversation below for the assistant who continues it and sees \
    nothing else of it. Keep what the user wants, decisions, facts, names, paths, numbers, what was done with \
    which tools, and what is still open. Write only the summary.";

/// True if the next request would be longer than `limit` tokens.
pub(super) fn is_too_long(conversation: &Conversation, tools: &[ToolOffer], limit: u64) -> bool {
    let messages = conversation.messages();
    let estimate = if let Some((tokens, covered)) = conversation.measured() {
        // The provider has counted everything up to here.
        let rest = messages.get(covered..).unwrap_or_default();
        tokens.saturating_add(estimate(rest))
    } else {
        let size = |tool: &ToolOffer| tool.name.len() + tool.description.len() + tool.schema.len();
        let tools = tools.iter().map(size).sum::<usize>() / BYTES_PER_TOKEN;
        estimate(messages).saturating_add(u64::try_from(tools).unwrap_or(u64::MAX))
    };
    estimate > limit
}

/// The request for a summary of all turns before the current one; `None` if there are none.
pub(super) fn summary_request(messages: &[ChatMessage], limit: u64) -> Option<ChatRequest> {
    let history = messages.get(..turn_start(messages))?;
    if history.is_empty() {
        return None;
    }
    let mut text = String::new();
    for message in history {
        write_message(&mut text, message);
    }
    // Half of what the model can read; the latest part matters most.
    let most = usize::try_from(limit / 2).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    let text = text.get(start..).unwrap_or_default();
    let messages = vec![ChatMessage::user(format!("{SUMMARIZE}\n\n{text}"))];
    Some(ChatRequest { system: String::new(), messages, tools: Vec::new() })
}

/// The messages with a summary in place of all turns before the current one.
pub(super) fn with_summary(messages: &[ChatMessage], summary: &str) -> Vec<ChatMessage> {
    let current = messages.get(turn_start(messages)..).unwrap_or_default();
    let summary = ChatMessage::user(format!("{SUMMARY}{summary}"));
    std::iter::once(summary).chain(current.iter().cloned()).collect()
}

/// The messages with the older results of the current turn left out; `None` if there are none.
pub(super) fn without_old_results(messages: &[ChatMessage]) -> Option<Vec<ChatMessage>> {
    let last = messages.len().saturating_sub(KEPT);
    let mut changed = false;
    let mut shorter = messages.to_vec();
    for part in shorter.iter_mut().take(last).flat_map(|message| &mut message.parts) {
        if let ChatPart::Result(result) = part
            && (result.text.len() > MAX_EXCERPT || !result.images.is_empty())
        {
            let start = cut(&result.text, 200);
            result.text = format!("{start}\n[the rest is left out to save space]");
            result.images.clear();
            changed = true;
        }
    }
    changed.then_some(shorter)
}

/// The index of the message that begins the current turn: the last of the user that is no result.
fn turn_start(messages: &[ChatMessage]) -> usize {
    let begins = |message: &ChatMessage| {
        let is_result = |part: &ChatPart| matches!(part, ChatPart::Result(_));
        message.role == Role::User && !message.parts.iter().any(is_result)
    };
    messages.iter().rposition(begins).unwrap_or(0)
}

fn estimate(messages: &[ChatMessage]) -> u64 {
    let size = |part: &ChatPart| match part {
        ChatPart::Text { text, .. } => text.len() / BYTES_PER_TOKEN,
        ChatPart::Image(_) => IMAGE_TOKENS,
        ChatPart::Call(call) => (call.name.len() + call.arguments.len()) / BYTES_PER_TOKEN,
        ChatPart::Result(result) => {
            result.text.len() / BYTES_PER_TOKEN + result.images.len() * IMAGE_TOKENS
        }
        ChatPart::Reasoning(data) => data.data.len() / BYTES_PER_TOKEN,
    };
    // Each part also has a frame.
    let tokens: usize =
        messages.iter().flat_map(|message| &message.parts).map(|part| size(part) + 8).sum();
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

fn write_message(text: &mut String, message: &ChatMessage) {
    for part in &message.parts {
        let _ = match part {
            ChatPart::Text { text: said, .. } => {
                let role = if message.role == Role::User { "User" } else { "Assistant" };
                writeln!(text, "{role}: {}", cut(said, MAX_EXCERPT))
            }
            ChatPart::Image(image) => writeln!(text, "User: [image: {}]", image.mime),
            ChatPart::Call(call) => {
                let arguments = cut(call.arguments.as_str(), MAX_EXCERPT);
                writeln!(text, "Assistant calls {} with {arguments}", call.name)
            }
            ChatPart::Result(result) => {
                writeln!(text, "Result of {}: {}", result.name, cut(&result.text, MAX_EXCERPT))
            }
            ChatPart::Reasoning(_) => Ok(()),
        };
    }
}

fn cut(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
}
