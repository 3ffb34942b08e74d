//! Step 4: is there quota left, room in every rate, and an audit log to write to? If so, a ticket is
//! issued.

use capstan_model::{CallError, Effect, ItemId, Kind};
use capstan_wire::Json;

use super::confirm::Approved;
use super::resolve::Resolved;
use crate::hub::Hub;
use crate::ports::Unwritten;
use crate::{Part, Session};

/// Proof that a call may be sent. Only `admit` makes one, and backends take nothing else.
#[derive(Debug)]
pub struct Ticket {
    id: ItemId,
    kind: Kind,
    effect: Effect,
    params: Json,
}

pub(super) fn admit(hub: &Hub, session: &Session, approved: Approved) -> Result<Ticket, CallError> {
    let Approved { resolved: Resolved { id, effect, call, .. } } = approved;
    let ready = hub.audit.ready();
    ready.map_err(|Unwritten(reason)| CallError::Unrecordable { reason })?;
    let quota = || session.take_one().map_err(|limit| CallError::QuotaExceeded { limit });
    match call.part {
        Part::First => hub.rates.take(hub, &id, &call, quota)?,
        Part::Later { .. } => {}
    }
    Ok(Ticket { id, kind: call.target.kind, effect, params: call.params })
}

// === impl Ticket ===

impl Ticket {
    /// What is to be done, and by which server.
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Tool, resource or prompt.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it does.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The params of the request, with the name that the server knows.
    pub fn params(&self) -> &Json {
        &self.params
    }

    /// Replaces the params, and gives back those before.
    pub(super) fn replace_params(&mut self, params: Json) -> Json {
        std::mem::replace(&mut self.params, params)
    }
}
