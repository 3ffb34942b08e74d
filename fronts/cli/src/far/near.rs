//! The shell's end: shows what a command says that runs somewhere else, and asks what it asks.

use std::sync::Arc;

use super::{Prompt, Said, To, Typed};
use crate::print::{Printer, write_bytes, write_data, write_note};
use crate::waiting::Waiting;

/// The terminal of the shell.
#[derive(Clone)]
pub struct Near(Arc<Waiting>);

// === impl Near ===

impl Near {
    pub(crate) fn new(print: &Printer, message: &str) -> Self {
        Self(Arc::new(Waiting::new(print, message)))
    }

    /// Shows something.
    pub fn show(&self, said: Said) {
        self.0.tell(move || {
            let bytes = if said.bytes.is_empty() { said.text.as_bytes() } else { &said.bytes };
            match said.to {
                To::Data => write_data(&said.text),
                To::Bytes => write_bytes(bytes),
                To::Notes => write_note(&said.text),
            }
        });
    }

    /// Asks something, in a thread of its own: a person takes time.
    pub async fn ask(&self, prompt: Prompt) -> Typed {
        let waiting = Waiting::clone(&self.0);
        let asked = tokio::task::spawn_blocking(move || waiting.ask(|| prompt.ask()));
        asked.await.unwrap_or(Typed::Closed)
    }
}
