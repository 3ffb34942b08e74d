//! Continuations: requests that belong to a call which was decided on and counted before.
//!
//! A server may ask for input before it answers a call. The client then sends the call again, with
//! the input. Only the pipeline creates the proof that such a call was made, so that no front can
//! claim one:
//!
//! ```compile_fail,E0423
//! fn any<T>() -> T { loop {} }
//! let forged = capstan_hub::Continuation(any());
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_model::rpc_code::URL_REQUIRED;
use capstan_model::{CallError, Caller, ItemId};

use super::admit::Ticket;

/// Proof that a call was made, for one more request of its caller for its item. It does not count
/// against quota and rates, and an approval of the call holds for it.
#[derive(Clone, Debug)]
pub struct Continuation(Arc<MadeCall>);

#[derive(Debug)]
struct MadeCall {
    id: ItemId,
    caller: Arc<Caller>,
    /// The answer of the operator, if a rule asked.
    consent: Consent,
    /// True once a request has continued the call.
    used: AtomicBool,
}

/// The approval of a call by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// The operator was asked, and approved it.
    Given,
    /// The operator was not asked.
    NotAsked,
}

// === impl Continuation ===

impl Continuation {
    pub(super) fn of(id: ItemId, caller: Arc<Caller>, consent: Consent) -> Self {
        Self(Arc::new(MadeCall { id, caller, consent, used: AtomicBool::new(false) }))
    }

    /// The continuation of a call that failed because its client must visit a page first.
    pub(super) fn after(error: &CallError, ticket: &Ticket) -> Option<Self> {
        let is_open = matches!(error, CallError::Server { code: URL_REQUIRED, .. });
        let of = || Self::of(ticket.id().clone(), Arc::clone(ticket.caller()), ticket.consent());
        is_open.then(of)
    }

    /// True if a request of this caller for this item can still use the continuation.
    pub(super) fn is_open_for(&self, id: &ItemId, caller: &Caller) -> bool {
        let made = &*self.0;
        let is_same = made.id == *id && made.caller.is_same(caller);
        is_same && !made.used.load(Ordering::Acquire)
    }

    /// Uses the continuation for a request; `None` if it was used before, or is of another item or
    /// caller.
    pub(super) fn claim(&self, id: &ItemId, caller: &Caller) -> Option<Consent> {
        let made = &*self.0;
        let is_same = made.id == *id && made.caller.is_same(caller);
        (is_same && !made.used.swap(true, Ordering::AcqRel)).then_some(made.consent)
    }
}
