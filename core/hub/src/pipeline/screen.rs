//! Step 6: is the answer fit to be delivered?

use capstan_model::CallError;
use capstan_wire::Json;

use super::admit::Ticket;
use crate::Answer;

/// An answer that may be delivered; the only thing a front ever receives.
#[derive(Clone, Debug, PartialEq)]
pub struct Screened {
    answer: Answer,
}

pub(super) fn screen(limit: usize, ticket: &Ticket, answer: Answer) -> Result<Screened, CallError> {
    let size = answer.0.len();
    if size > limit {
        let item = ticket.id().to_string();
        return Err(CallError::AnswerTooLarge { item, size, limit });
    }
    Ok(Screened { answer })
}

// === impl Screened ===

impl Screened {
    /// The result, byte for byte as the server wrote it.
    pub fn result(&self) -> &Json {
        &self.answer.0
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.answer.is_error()
    }
}
