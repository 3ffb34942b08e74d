//! Step 7: counts the call against quota and rates, and issues the ticket.

use std::sync::Arc;

use capstan_model::{CallError, Caller, Effect, ItemId, Kind};
use capstan_wire::Json;

use super::confirm::Approved;
use super::resolve::Resolved;
use crate::hub::Hub;
use crate::life::Lease;
use crate::ports::{Item, Unwritten};
use crate::{Call, Part, Session};

/// Proof that a call may be sent. Only `admit` creates one.
pub struct Ticket {
    id: ItemId,
    kind: Kind,
    effect: Effect,
    params: Json,
    caller: Arc<Caller>,
    /// The definition that the decision was based on.
    definition: Json,
    /// The list that contained the definition.
    items: Option<Arc<[Item]>>,
    /// The connection that listed it; `send` takes it.
    lease: Option<Lease>,
}

pub(super) fn admit(hub: &Hub, session: &Session, approved: Approved) -> Result<Ticket, CallError> {
    let Approved { resolved } = approved;
    let Resolved { id, effect, definition, items, lease, call, .. } = resolved;
    let ready = hub.audit.ready();
    ready.map_err(|Unwritten(reason)| CallError::Unrecordable { reason })?;
    let quota = || session.take_one().map_err(|limit| CallError::QuotaExceeded { limit });
    match call.part {
        Part::First => hub.rates.take(hub, &id, &call, quota)?,
        Part::Later { .. } => {}
    }
    let Call { caller, target, params, .. } = call;
    Ok(Ticket { id, kind: target.kind, effect, params, caller, definition, items, lease })
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
