//! A command that runs in a gateway for a shell somewhere else: what the shell sends along, and what
//! it is shown and asked meanwhile.
//!
//! **Invariant:** the command is the same code as in a shell of its own, so that it says the same.

mod near;
mod prompt;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

pub use near::Near;
pub use prompt::{Prompt, Typed};

pub(crate) use prompt::FarTerminal;

/// The most that a command may say, in bytes. What comes behind it is left out.
const MAX_SAID: usize = 256 * 1024 * 1024;

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
}

// === impl Far ===

impl Far {
    pub(crate) fn new(order: Order, events: UnboundedSender<Event>) -> Arc<Self> {
        Arc::new(Self { order, events, said: AtomicUsize::new(0) })
    }

    pub(crate) fn say(&self, to: To, bytes: &[u8]) {
        let before = self.said.fetch_add(bytes.len(), Ordering::Relaxed);
        if before.saturating_add(bytes.len()) > MAX_SAID {
            return;
        }
        let said = match std::str::from_utf8(bytes) {
            Ok(text) => Said { to, text: text.to_owned(), bytes: Vec::new() },
            Err(_) => Said { to, text: String::new(), bytes: bytes.to_vec() },
        };
        // A shell that is gone hears nothing.
        drop(self.events.send(Event::Said(said)));
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
