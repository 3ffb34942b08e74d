//! A command that runs in a gateway for a shell somewhere else: what the shell sends along, and what
//! it is shown and asked meanwhile.
//!
//! **Invariant:** the command is the same code as in a shell of its own, so that it says the same.

mod attach;
mod near;
mod prompt;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use capstan_app::AppError;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

pub use attach::{Attach, Inside};
pub use near::Near;
pub use prompt::{Prompt, Typed};

pub(crate) use prompt::FarTerminal;

use crate::exit::Exit;
use crate::print::Printer;

/// The most that a command may say, in bytes: twice what a server may answer, because it is laid out
/// for reading. It waits in memory for the shell. What comes behind it is left out, and told of.
const MAX_SAID: usize = 32 * 1024 * 1024;

/// A command, as a shell wants it run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// What was typed.
    pub words: Vec<String>,
    /// What came on stdin, where the words ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The folder of the shell.
    pub here: PathBuf,
    /// Whether a person reads stdout.
    pub terminal: bool,
    /// How wide their terminal is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Whether a person can be asked.
    pub person: bool,
    /// Runs only where everything is configured as it is for the shell; this says how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Something for the shell to show.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Said {
    /// Where it goes.
    pub to: To,
    /// What it is.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub text: String,
    /// The same, where it is no text.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bytes: Vec<u8>,
}

/// Where something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    /// To stdout, without colours where nobody sees them.
    Data,
    /// To stdout, byte for byte.
    Bytes,
    /// To stderr.
    Notes,
}

/// What happens while a command runs.
#[derive(Debug)]
pub enum Event {
    /// Something is to be shown.
    Said(Said),
    /// Something is to be asked; the answer is waited for.
    Ask(Prompt, std::sync::mpsc::SyncSender<Typed>),
}

/// The shell, as the command sees it.
#[derive(Debug)]
pub(crate) struct Far {
    order: Order,
    events: UnboundedSender<Event>,
    said: AtomicUsize,
    /// Whether something was left out.
    cut: AtomicBool,
}

// === impl Far ===

impl Far {
    pub(crate) fn new(order: Order, events: UnboundedSender<Event>) -> Arc<Self> {
        let (said, cut) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { order, events, said, cut })
    }

    pub(crate) fn say(&self, to: To, bytes: &[u8]) {
        let before = self.said.fetch_add(bytes.len(), Ordering::Relaxed);
        if before.saturating_add(bytes.len()) > MAX_SAID {
            self.cut.store(true, Ordering::Relaxed);
        }
        // Nothing comes behind a gap, or it would not be seen.
        if self.cut.load(Ordering::Relaxed) {
            return;
        }
        let said = match std::str::from_utf8(bytes) {
            Ok(text) => Said { to, text: text.to_owned(), bytes: Vec::new() },
            Err(_) => Said { to, text: String::new(), bytes: bytes.to_vec() },
        };
        // A shell that is gone hears nothing.
        drop(self.events.send(Event::Said(said)));
    }

    /// How the command ends that had this result; says what went wrong.
    pub(crate) fn end(&self, print: &Printer, result: Result<Exit, AppError>) -> Exit {
        let cut = self.cut.swap(false, Ordering::Relaxed);
        if cut {
            // There must be room to say so.
            self.said.store(0, Ordering::Relaxed);
        }
        let mut exit = result.unwrap_or_else(|failure| {
            print.failure(&failure);
            failure.kind.into()
        });
        if cut {
            let most = MAX_SAID / 1024 / 1024;
            let failure = AppError::internal(format!(
                "the output is cut: it is longer than the {most} MiB that a gateway passes on"
            ));
            print.failure(&failure.hint("without the gateway there is no limit: `--no-attach`"));
            exit = Exit::Internal;
        }
        exit
    }

    pub(crate) fn width(&self) -> Option<usize> {
        self.order.width
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.order.terminal
    }

    pub(crate) fn has_person(&self) -> bool {
        self.order.person
    }

    pub(crate) fn here(&self) -> &Path {
        &self.order.here
    }

    pub(crate) fn terminal(&self) -> FarTerminal {
        FarTerminal::new(self.events.clone())
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::args::Options;

    /// How a command ends that says pieces of this size, and what of it arrives.
    fn said(pieces: &[usize], result: Result<Exit, AppError>) -> (Exit, Vec<String>) {
        let (events, mut heard) = unbounded_channel();
        let far = Far::new(Order::default(), events);
        let print = Printer::new(&Options::default()).far(Arc::clone(&far));
        for size in pieces {
            far.say(To::Data, "x".repeat(*size).as_bytes());
        }
        let exit = far.end(&print, result);
        let mut texts = Vec::new();
        while let Ok(Event::Said(said)) = heard.try_recv() {
            texts.push(said.text);
        }
        (exit, texts)
    }

    #[test]
    fn output_that_fits_arrives_whole() {
        let (exit, texts) = said(&[MAX_SAID - 1, 1], Ok(Exit::Ok));
        assert_eq!((exit, texts.len()), (Exit::Ok, 2));
        let (exit, texts) = said(&[1], Err(AppError::usage("no")));
        assert_eq!((exit, texts.len()), (Exit::Usage, 2));
    }

    #[test]
    fn output_that_is_cut_ends_with_an_error_that_says_so() {
        for pieces in [&[1, MAX_SAID, 1][..], &[1, MAX_SAID]] {
            for result in [Ok(Exit::Ok), Ok(Exit::ToolError), Err(AppError::usage("no"))] {
                let (exit, texts) = said(pieces, result);
                assert_eq!(exit, Exit::Internal);
                assert_eq!(texts.iter().filter(|text| *text == "x").count(), 1);
                assert!(texts.iter().any(|text| text.contains("the output is cut")), "{texts:?}");
            }
        }
    }
}
