//! Gathers the message: the command line, a pipe, resources and files after `@`.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_app::AppError;
use capstan_app::api::{Interact, Local, Operation as _, ReadResource};
use capstan_app::chat::{MAX_INLINE, inlined, of_resource};
use capstan_hub::ports::{ChatPart, ImagePart};
use capstan_text::message::{self, Mention};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::front::TypedFront;
use crate::context::Context;

/// The longest text from a pipe, in bytes.
const MAX_PIPED: usize = 4 << 20;

/// The largest image file, in bytes.
const MAX_IMAGE: u64 = 3 << 20;

/// The largest number of resources and files in a message.
const MAX_MENTIONS: usize = 32;

/// How long a pipe beside a message may be silent before it counts as unused.
const PIPE_WAIT: Duration = Duration::from_secs(3);

/// The given texts.
pub(super) struct Given {
    /// The message.
    pub(super) typed: String,
    /// The text from a pipe beside it.
    pub(super) piped: Option<String>,
}

/// Reads the message and the pipe; a pipe alone is the message.
pub(super) async fn read(words: &[String]) -> Result<Given, AppError> {
    let typed = words.join(" ");
    let beside = if typed.is_empty() { Beside::Nothing } else { Beside::Message };
    let piped = if io::stdin().is_terminal() { None } else { pipe(beside).await? };
    let piped = piped.filter(|text| !text.trim().is_empty());
    match (typed.trim().is_empty(), piped) {
        (false, piped) => Ok(Given { typed, piped }),
        (true, Some(typed)) => Ok(Given { typed, piped: None }),
        (true, None) => Err(AppError::usage("there is no message")
            .hint("write it after `-p`, or pipe it: `echo 'Hello' | capstan -p`")),
    }
}

/// What is given besides a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Message,
    Nothing,
}

/// Reads stdin to its end. Beside a message, a pipe that nothing comes through is left alone.
async fn pipe(beside: Beside) -> Result<Option<String>, AppError> {
    let (sender, mut pieces) = mpsc::channel::<io::Result<Vec<u8>>>(4);
    // Its own thread, because reading from a pipe cannot be cancelled.
    std::thread::spawn(move || {
        loop {
            let mut piece = vec![0; 64 << 10];
            let read = io::stdin().read(&mut piece);
            let is_last = !matches!(read, Ok(1..));
            let read = read.map(|length| {
                piece.truncate(length);
                piece
            });
            if sender.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    let first = match timeout(PIPE_WAIT, pieces.recv()).await {
        Ok(first) => first,
        Err(_) if beside == Beside::Message => return Ok(None),
        Err(_) => pieces.recv().await,
    };
    let mut next = first;
    while let Some(piece) = next {
        let piece =
            piece.map_err(|error| AppError::usage(format!("cannot read stdin: {error}")))?;
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_PIPED {
            let message = format!("stdin has more than {MAX_PIPED} bytes");
            return Err(AppError::usage(message).hint("pipe a smaller part of it"));
        }
        next = pieces.recv().await;
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| AppError::usage("stdin is not UTF-8 text"))?;
    Ok(Some(text))
}

/// The parts of a message: its text as typed, then the content of resources and files in it.
///
/// If one cannot be read, this is reported, and the message stays.
pub(super) async fn parts(context: &Context, local: &Local, text: &str) -> Vec<ChatPart> {
    let mut parts = vec![ChatPart::text(text)];
    for mention in message::mentions(text).iter().take(MAX_MENTIONS) {
        let server = mention.name.split_once(':').map(|(server, _)| server);
        let read = match server.filter(|server| local.setup.server(server).is_ok()) {
            Some(_) => resource(context, local, text, mention).await,
            None => file(mention.name),
        };
        match read {
            Ok(more) => parts.extend(more),
            Err(error) => {
                context.print.warning(&format!("`@{}`: {}", mention.name, error.message));
                if let Some(hint) = &error.hint {
                    context.print.hint(hint);
                }
            }
        }
    }
    parts
}

async fn resource(
    context: &Context,
    local: &Local,
    text: &str,
    mention: &Mention<'_>,
) -> Result<Vec<ChatPart>, AppError> {
    let following = text.get(mention.range.end..).unwrap_or_default();
    let front: Arc<dyn Interact> =
        Arc::new(TypedFront::mention(&context.print, message::words(following)));
    let name = mention.name.to_owned();
    let read = ReadResource { name, fills_template: false, max_tokens: None };
    let result = read.run(local, &front).await?;
    Ok(of_resource(&format!("@{}", mention.name), &result))
}

/// The content of a file; nothing if there is none, because the word may mean something else.
fn file(name: &str) -> Result<Vec<ChatPart>, AppError> {
    let path = Path::new(name);
    let Some(metadata) = path.metadata().ok().filter(std::fs::Metadata::is_file) else {
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
