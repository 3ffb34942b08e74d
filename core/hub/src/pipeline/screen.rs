//! Step 9: is the answer fit to be delivered?

use std::sync::Arc;

use capstan_model::{CallError, Caller, ItemId, Kind, ServerName};
use capstan_wire::{Json, Noted, Walk, object};

use super::admit::Ticket;
use super::flowing::Stream;
use super::task::TaskHandle;
use crate::Answer;
use crate::life::Lease;

/// An answer that may be delivered; the only thing a front ever receives.
#[derive(Clone, Debug)]
pub struct Screened {
    origin: Origin,
    result: Json,
    shape: Shape,
}

/// The call that was answered.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    id: ItemId,
    kind: Kind,
    caller: Arc<Caller>,
}

/// What may be delivered.
pub(super) enum Passed {
    Whole(Screened),
    /// It is screened while it comes.
    Flowing(Stream),
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

pub(super) fn screen(
    limit: usize,
    ticket: Ticket,
    answer: Answer,
    lease: Lease,
) -> Result<Passed, CallError> {
    let caller = Arc::clone(ticket.caller());
    let origin = Origin { kind: ticket.kind(), id: ticket.into_id(), caller };
    match answer {
        Answer::Whole(result) => {
            check_size(limit, || origin.id.to_string(), result.len())?;
            check_kind(&origin.id.server, &result)?;
            Ok(Passed::Whole(Screened::new(origin, result)))
        }
        Answer::Flowing(flow) => Ok(Passed::Flowing(Stream::new(limit, origin, flow, lease))),
    }
}

/// Whether an answer of that size may be delivered.
pub(super) fn check_size(
    limit: usize,
    item: impl FnOnce() -> String,
    size: usize,
) -> Result<(), CallError> {
    if size > limit {
        return Err(CallError::AnswerTooLarge { item: item(), size, limit });
    }
    Ok(())
}

/// Whether it is a result at all: in every revision that is an object.
fn check_kind(server: &ServerName, result: &Json) -> Result<(), CallError> {
    if result.as_bytes().starts_with(b"{") {
        return Ok(());
    }
    let problem = "a result that is no object".to_owned();
    Err(CallError::Protocol { server: server.clone(), problem })
}

// === impl Shape ===

impl Shape {
    /// The members that are looked at.
    pub(crate) const KEYS: [&str; 4] = ["isError", "resultType", "structuredContent", "ttlMs"];

    fn of(result: &Json) -> Self {
        let [is_error, result_type, structure, ttl] = object::peek(result, Self::KEYS);
        Self {
            is_error: is_error.is_some_and(|json| json.as_bytes() == b"true"),
            result_type: result_type.and_then(|json| json.read().ok()),
            odd_structure: structure.is_some_and(|json| !json.as_bytes().starts_with(b"{")),
            has_ttl: ttl.is_some(),
        }
    }

    /// The same, by a walk over a result.
    pub(crate) fn walked(walk: &Walk) -> Self {
        let [is_error, result_type, structure, ttl] = Self::KEYS.map(|key| walk.noted(key));
        let value = |noted: Option<&Noted>| noted.and_then(|noted| noted.value.clone());
        Self {
            is_error: value(is_error).is_some_and(|json| json.as_bytes() == b"true"),
            result_type: value(result_type).and_then(|json| json.read().ok()),
            odd_structure: structure.is_some_and(|noted| noted.first != b'{'),
            has_ttl: ttl.is_some(),
        }
    }
}

// === impl Origin ===

impl Origin {
    pub(super) fn id(&self) -> &ItemId {
        &self.id
    }
}

// === impl Screened ===

impl Screened {
    pub(super) fn new(origin: Origin, result: Json) -> Self {
        let shape = Shape::of(&result);
        Self { origin, result, shape }
    }

    /// The result, byte for byte as the server wrote it.
    pub fn result(&self) -> &Json {
        &self.result
    }

    /// Who answered.
    pub fn server(&self) -> &ServerName {
        &self.origin.id.server
    }

    /// The task that the call has become, for its caller; `None` if the result names none.
    pub fn task(&self) -> Option<TaskHandle> {
        let task = match self.shape.result_type.as_deref() {
            Some("task") => self.result.clone(),
            Some(_) | None => object::get(&self.result, "task")?,
        };
        let Origin { id, kind, caller } = self.origin.clone();
        Some(TaskHandle::new(id, kind, caller, object::get_string(&task, "taskId")?))
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
