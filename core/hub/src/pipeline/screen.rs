//! Step 6: is the answer fit to be delivered?

use capstan_model::{CallError, ServerName};
use capstan_wire::{Json, object};

use super::admit::Ticket;
use crate::Answer;

/// An answer that may be delivered; the only thing a front ever receives.
#[derive(Clone, Debug, PartialEq)]
pub struct Screened {
    /// Who answered.
    server: ServerName,
    answer: Answer,
    shape: Shape,
}

/// What a result is, told by a look at its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// What kind of result it says it is; servers before 2026-07-28 do not say.
    pub result_type: Option<String>,
    /// Whether it has structured content that is no object, which only newer clients expect.
    pub odd_structure: bool,
    /// Whether it says for how long it may be kept.
    pub has_ttl: bool,
}

pub(super) fn screen(limit: usize, ticket: &Ticket, answer: Answer) -> Result<Screened, CallError> {
    let size = answer.0.len();
    if size > limit {
        let item = ticket.id().to_string();
        return Err(CallError::AnswerTooLarge { item, size, limit });
    }
    let shape = Shape::of(&answer.0);
    Ok(Screened { server: ticket.id().server.clone(), answer, shape })
}

// === impl Shape ===

impl Shape {
    fn of(result: &Json) -> Self {
        let keys = ["isError", "resultType", "structuredContent", "ttlMs"];
        let [is_error, result_type, structure, ttl] = object::peek(result, keys);
        Self {
            is_error: is_error.is_some_and(|json| json.as_bytes() == b"true"),
            result_type: result_type.and_then(|json| json.read().ok()),
            odd_structure: structure.is_some_and(|json| !json.as_bytes().starts_with(b"{")),
            has_ttl: ttl.is_some(),
        }
    }
}

// === impl Screened ===

impl Screened {
    /// The result, byte for byte as the server wrote it.
    pub fn result(&self) -> &Json {
        &self.answer.0
    }

    /// Who answered.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.shape.is_error
    }

    /// What the result is.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}
