//! Step 7: counts the call against quota and rates, and issues the ticket.

use std::sync::Arc;

use capstan_model::{CallError, Caller, Effect, ItemId, Kind};
use capstan_policy::Tags;
use capstan_wire::Json;

use super::confirm::{Approved, Count};
use super::continuation::Consent;
use super::resolve::Resolved;
use crate::hub::Hub;
use crate::life::Lease;
use crate::ports::{Item, Unwritten};
use crate::{Call, Session};

/// Proof that a call may be sent. Only `admit` creates one.
pub struct Ticket {
    id: ItemId,
    kind: Kind,
    effect: Effect,
    tags: Tags,
    params: Json,
    caller: Arc<Caller>,
    consent: Consent,
    /// The definition that the decision was based on.
    definition: Json,
    /// The list that contained the definition.
    items: Option<Arc<[Item]>>,
    /// The connection that listed it; `send` takes it.
    lease: Option<Lease>,
}

pub(super) fn admit(hub: &Hub, session: &Session, approved: Approved) -> Result<Ticket, CallError> {
    let Approved { resolved, consent, count } = approved;
    let Resolved { id, effect, tags, definition, items, lease, call, .. } = resolved;
    recordable(hub)?;
    let quota = || session.take_one().map_err(|limit| CallError::QuotaExceeded { limit });
    match count {
        Count::Yes => hub.rates.take(hub, &id, &call, quota)?,
        Count::No => {}
    }
    let Call { caller, target, params, .. } = call;
    let kind = target.kind;
    Ok(Ticket { id, kind, effect, tags, params, caller, consent, definition, items, lease })
}

/// Checks that the audit log can be written, before anything is sent or read that must be recorded.
pub(super) fn recordable(hub: &Hub) -> Result<(), CallError> {
    hub.audit.ready().map_err(|Unwritten(reason)| CallError::Unrecordable { reason })
}

// === impl Ticket ===

impl Ticket {
    /// The item and its server.
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Tool, resource or prompt.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The effect of the item.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The params of the request, with the server's own name of the item.
    pub fn params(&self) -> &Json {
        &self.params
    }

    pub(super) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The tags that flows are judged by.
    pub(super) fn tags(&self) -> Tags {
        self.tags
    }

    pub(super) fn consent(&self) -> Consent {
        self.consent
    }

    pub(super) fn definition(&self) -> &Json {
        &self.definition
    }

    pub(super) fn items(&self) -> Option<&Arc<[Item]>> {
        self.items.as_ref()
    }

    pub(super) fn take_lease(&mut self) -> Option<Lease> {
        self.lease.take()
    }

    pub(super) fn into_id(self) -> ItemId {
        self.id
    }

    /// Replaces the params and returns the previous ones.
    pub(super) fn replace_params(&mut self, params: Json) -> Json {
        std::mem::replace(&mut self.params, params)
    }
}
