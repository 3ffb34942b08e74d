//! Turns a typed text into messages for a model: prompts, resources and files after `@`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_app::AppError;
use capstan_app::api::{
    Answer, Ask, Event, GetPrompt, Interact, Local, Misfit, Operation as _, ReadResource, Slot,
};
use capstan_app::chat::{MAX_INLINE, inlined, of_prompt, of_resource};
use capstan_hub::catalog::Patience;
use capstan_hub::ports::{BoxFuture, ChatMessage, ChatPart, ImagePart, Role};

use crate::arguments::slots;
use crate::message::{self, Mention, Typed};

/// The largest image file, in bytes.
const MAX_IMAGE: u64 = 3 << 20;

/// The largest number of resources and files in a message.
const MAX_MENTIONS: usize = 32;

/// Reports what happens while a message is gathered.
pub trait Report: Send + Sync {
    /// Receives an event of an operation; must not block.
    fn event(&self, event: Event);

    /// Receives the reason why a resource or file is left out; must not block.
    fn left_out(&self, name: &str, error: &AppError);
}

/// The messages of a typed text: those of a prompt, or the text with what it mentions.
///
/// # Errors
/// If a prompt cannot be read. A resource or file that cannot be read is reported and left out.
pub async fn messages(
    local: &Local,
    typed: Typed<'_>,
    wait: Patience,
    report: &Arc<dyn Report>,
) -> Result<Vec<ChatMessage>, AppError> {
    match typed {
        Typed::Command(name, rest) => prompt(local, (name, rest), wait, report).await,
        Typed::Message(text) => {
            let parts = parts(local, text, report).await;
            Ok(vec![ChatMessage { role: Role::User, parts, written_by: None }])
        }
    }
}

/// The messages of a prompt that is typed as a command.
async fn prompt(
    local: &Local,
    (name, rest): (&str, &str),
    wait: Patience,
    report: &Arc<dyn Report>,
) -> Result<Vec<ChatMessage>, AppError> {
    let get = GetPrompt { name: name.to_owned(), wait, max_tokens: None };
    let words = message::words(rest);
    let front: Arc<dyn Interact> = Arc::new(TypedFront::new(report, words, Takes::All));
    let result = get.run(local, &front).await.map_err(|error| match error.hint {
        None => error.hint("`/help` lists the commands and prompts"),
        Some(_) => error,
    })?;
    let messages = of_prompt(&result);
    if messages.is_empty() {
        return Err(AppError::usage(format!("the prompt `{name}` has no messages")));
    }
    Ok(answerable(messages))
}

/// A model answers a user, so a prompt that ends with the model's own words is followed by a wish.
fn answerable(mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    if messages.last().is_some_and(|last| last.role == Role::Assistant) {
        let parts = vec![ChatPart::text("Continue.")];
        messages.push(ChatMessage { role: Role::User, parts, written_by: None });
    }
    messages
}

/// The parts of a message: its text as typed, then the content of resources and files in it.
async fn parts(local: &Local, text: &str, report: &Arc<dyn Report>) -> Vec<ChatPart> {
    let mut parts = vec![ChatPart::text(text)];
    for mention in message::mentions(text).iter().take(MAX_MENTIONS) {
        let server = mention.name.split_once(':').map(|(server, _)| server);
        let read = match server.filter(|server| local.setup.server(server).is_ok()) {
            Some(_) => resource(local, text, mention, report).await,
            None => file(mention.name),
        };
        match read {
            Ok(more) => parts.extend(more),
            Err(error) => report.left_out(mention.name, &error),
        }
    }
    parts
}

async fn resource(
    local: &Local,
    text: &str,
    mention: &Mention<'_>,
    report: &Arc<dyn Report>,
) -> Result<Vec<ChatPart>, AppError> {
    let following = text.get(mention.range.end..).unwrap_or_default();
    let front = TypedFront::new(report, message::words(following), Takes::AsManyAsSlots);
    let front: Arc<dyn Interact> = Arc::new(front);
    let name = mention.name.to_owned();
    let read = ReadResource { name, fills_template: false, max_tokens: None };
    let result = read.run(local, &front).await?;
    Ok(of_resource(&format!("@{}", mention.name), &result))
}

/// The content of a file; nothing if there is none, because the word may mean something else.
fn file(name: &str) -> Result<Vec<ChatPart>, AppError> {
    let path = Path::new(name);
    let Some(metadata) = path.metadata().ok().filter(fs::Metadata::is_file) else {
        return Ok(Vec::new());
    };
    let failed = |error: io::Error| AppError::usage(format!("it cannot be read: {error}"));
    let size = metadata.len();
    let image = image_type(path).filter(|_| size <= MAX_IMAGE);
    let limit = if image.is_some() { MAX_IMAGE } else { MAX_INLINE as u64 };
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if let Some(mime) = image {
        let (mime, data) = (mime.to_owned(), BASE64_STANDARD.encode(&bytes));
        return Ok(vec![ChatPart::Image(ImagePart { mime, data })]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = if bytes.contains(&0) {
        format!("[binary file, {size} bytes, not shown]")
    } else if size > limit {
        format!("{text}\n[{} more bytes are left out]", size - limit)
    } else {
        text.into_owned()
    };
    Ok(vec![ChatPart::text(inlined("file", name, &text))])
}

fn image_type(path: &Path) -> Option<&'static str> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    match end.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

/// The front of an operation that the user typed within a message.
struct TypedFront {
    report: Arc<dyn Report>,
    words: Vec<String>,
    takes: Takes,
}

/// How words become values.
#[derive(Clone, Copy)]
enum Takes {
    /// All words are for the prompt.
    All,
    /// A template takes as many words as it has placeholders; the others belong to the message.
    AsManyAsSlots,
}

// === impl TypedFront ===

impl TypedFront {
    fn new(report: &Arc<dyn Report>, words: Vec<String>, takes: Takes) -> Self {
        Self { report: Arc::clone(report), words, takes }
    }

    fn values(&self, slots: &[Slot]) -> Answer {
        let values = match self.takes {
            Takes::All => message::fill(&self.words, slots),
            Takes::AsManyAsSlots => {
                let words: Vec<String> = self.words.iter().take(slots.len()).cloned().collect();
                slots::fill(&words, slots)
            }
        };
        match values {
            Ok(values) => Answer::Values { values },
            Err(error) => Answer::Misfit(Misfit { problem: error.to_string(), hint: error.hint() }),
        }
    }
}

impl Interact for TypedFront {
    fn event(&self, event: Event) {
        self.report.event(event);
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        let answer = match ask {
            Ask::Values { slots } => self.values(&slots),
            // The user typed it, which approves it if only the default asks.
            Ask::Approve { .. } => Answer::Believed,
            Ask::Elicit { .. } => Answer::Declined,
            Ask::Arguments { .. } => Answer::Refused,
        };
        Box::pin(std::future::ready(answer))
    }
}
