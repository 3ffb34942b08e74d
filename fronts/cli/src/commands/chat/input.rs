//! Reads the message: from the command line and from a pipe.

use std::io::{self, IsTerminal as _, Read as _};
use std::time::Duration;

use capstan_app::AppError;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The longest text from a pipe, in bytes.
const MAX_PIPED: usize = 4 << 20;

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
