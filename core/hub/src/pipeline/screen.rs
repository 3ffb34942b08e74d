//! Step 9: checks that the answer may be delivered.

use std::sync::Arc;

use capstan_model::{CallError, Caller, ItemId, Kind, ServerName};
use capstan_policy::Tags;
use capstan_wire::protocol::INPUT_REQUIRED;
use capstan_wire::{Json, Noted, Walk, object};

use super::admit::Ticket;
use super::continuation::{Consent, Continuation};
use super::streaming::{Flagger, Stream};
use super::task::TaskHandle;
use crate::Answer;
use crate::catalog::{StreamedUris, Uris};
use crate::hub::Hub;
use crate::life::Lease;
use crate::ports::Lane;

/// An answer that may be delivered. Fronts receive no other kind of answer.
#[derive(Clone, Debug)]
pub struct Screened {
    origin: Origin,
    result: Json,
    shape: Shape,
}

/// The call that was answered.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) id: ItemId,
    pub(super) kind: Kind,
    pub(super) caller: Arc<Caller>,
    consent: Consent,
    /// The lane that the call was sent in.
    pub(super) lane: Lane,
    /// The tags that flows are judged by.
    tags: Tags,
}

/// An answer that passed screening, or is screened while it arrives.
pub(super) enum Passed {
    Whole(Screened),
    /// Screened while it arrives.
    Streaming(Stream),
}

/// Properties of a result, read from its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// True if the tool reports a failure.
    pub is_error: bool,
    /// The type that the result declares; servers before 2026-07-28 declare none.
    pub result_type: Option<String>,
    /// True if the structured content is not an object, which only newer clients expect.
    pub odd_structure: bool,
    /// True if the result says how long it may be cached.
    pub has_ttl: bool,
}

/// Checks an answer. With `uris`, the URIs in it are shown in the form that leads back to its server.
pub(super) fn screen(
    hub: &Hub,
    uris: Option<&Arc<Uris>>,
    ticket: Ticket,
    answer: Answer,
    lease: Lease,
) -> Result<Passed, CallError> {
    let limit = hub.limits.max_answer;
    let caller = Arc::clone(ticket.caller());
    let (kind, consent, lane, tags) =
        (ticket.kind(), ticket.consent(), lease.lane(), ticket.tags());
    let origin = Origin { id: ticket.into_id(), kind, caller, consent, lane, tags };
    match answer {
        Answer::Whole(result) => {
            check_size(limit, || origin.id.to_string(), result.len())?;
            check_kind(&origin.id.server, &result)?;
            let screens = &hub.catalog.screens;
            let masked = screens.answer(&origin.id.server, &origin.id.item, &result)?;
            let result = masked.unwrap_or(result);
            let shown = uris.and_then(|uris| uris.shown_result(&origin.id.server, &result));
            Ok(Passed::Whole(Screened::new(origin, shown.unwrap_or(result))))
        }
        Answer::Streaming(flow) => {
            let uris = uris.map(|uris| StreamedUris::new(uris, &origin.id.server));
            let screens = &hub.catalog.screens;
            let flagger = screens.flags(&origin.id.server).then(Flagger::default);
            Ok(Passed::Streaming(Stream { origin, flow, limit, uris, flagger, _lease: lease }))
        }
    }
}

/// Checks that an answer of this size may be delivered.
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

/// Returns the answer to a request that is not a call, which is never streamed.
pub(super) fn not_streamed(server: &ServerName, answer: Answer) -> Result<Json, CallError> {
    match answer {
        Answer::Whole(answer) => Ok(answer),
        Answer::Streaming(_) => {
            let problem = "a streamed answer to a request that is not a call".to_owned();
            Err(CallError::Protocol { server: server.clone(), problem })
        }
    }
}

/// Checks that the result is an object, as every revision requires.
fn check_kind(server: &ServerName, result: &Json) -> Result<(), CallError> {
    if result.as_bytes().starts_with(b"{") {
        return Ok(());
    }
    let problem = "a result that is not an object".to_owned();
    Err(CallError::Protocol { server: server.clone(), problem })
}

// === impl Shape ===

impl Shape {
    /// The members that are read.
    pub(crate) const KEYS: [&str; 4] = ["isError", "resultType", "structuredContent", "ttlMs"];

    pub(super) fn of(result: &Json) -> Self {
        let [is_error, result_type, structure, ttl] = object::peek(result, Self::KEYS);
        Self {
            is_error: is_error.is_some_and(|json| json.as_bytes() == b"true"),
            result_type: result_type.and_then(|json| json.read().ok()),
            odd_structure: structure.is_some_and(|json| !json.as_bytes().starts_with(b"{")),
            has_ttl: ttl.is_some(),
        }
    }

    /// Reads the properties from a walk over a result.
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
    pub(super) fn new(id: ItemId, kind: Kind, caller: Arc<Caller>) -> Self {
        let (consent, lane, tags) = (Consent::NotAsked, Lane::ANY, Tags::NONE);
        Self { id, kind, caller, consent, lane, tags }
    }

    pub(super) fn id(&self) -> &ItemId {
        &self.id
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn tags(&self) -> Tags {
        self.tags
    }
}

// === impl Screened ===

impl Screened {
    pub(super) fn new(origin: Origin, result: Json) -> Self {
        let shape = Shape::of(&result);
        Self { origin, result, shape }
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The result, byte for byte as the server wrote it except for [URIs](crate::catalog::Uris) of
    /// other servers' spelling, or the first page of a long one.
    pub fn result(&self) -> &Json {
        &self.result
    }

    /// The server that answered.
    pub fn server(&self) -> &ServerName {
        &self.origin.id.server
    }

    /// The lane whose own connection the call was sent on; [`Lane::ANY`] if it was sent on the home
    /// connection.
    pub fn lane(&self) -> Lane {
        self.origin.lane
    }

    /// Returns the task that the call has become, for its caller; `None` if the result names none.
    pub fn task(&self) -> Option<TaskHandle> {
        let task = match self.shape.result_type.as_deref() {
            Some("task") => self.result.clone(),
            Some(_) | None => object::get(&self.result, "task")?,
        };
        let id = object::get_string(&task, "taskId")?;
        Some(TaskHandle::new(self.origin.clone(), id))
    }

    /// Returns the proof that the call was made, if the server asks for input before it answers.
    pub fn continuation(&self) -> Option<Continuation> {
        let asks = self.shape.result_type.as_deref() == Some(INPUT_REQUIRED);
        let Origin { id, caller, consent, .. } = &self.origin;
        asks.then(|| Continuation::of(id.clone(), Arc::clone(caller), *consent))
    }

    /// True if the tool reports a failure.
    pub fn is_error(&self) -> bool {
        self.shape.is_error
    }

    /// The properties of the result.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}
