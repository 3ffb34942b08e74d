//! Conversations on the whole screen, with the terminal front.

use std::sync::Arc;

use capstan_app::{AppError, Environment};
use capstan_terminal::{Colours, End, Settings};
use capstan_text::conversation::Conversing;

use crate::logs;

/// Draws on the terminal of this process.
pub(crate) struct FullScreen(pub(crate) Arc<Environment>);

// === impl FullScreen ===

impl FullScreen {
    /// Holds a conversation until the person or a signal ends it.
    pub(crate) async fn hold(&self, conversing: Conversing<'_>) -> Result<End, AppError> {
        let colours = match self.0.filled_variable("NO_COLOR") {
            Some(_) => Colours::None,
            None => Colours::OfTerminal,
        };
        capstan_terminal::run(conversing, Settings { colours, divert_log: logs::divert }).await
    }
}
