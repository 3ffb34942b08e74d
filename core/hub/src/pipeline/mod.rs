//! The road of a call, one file a step:
//!
//! ```text
//! Call ─ resolve ─▶ Resolved ─ permit ─▶ Permitted ─ confirm ─▶ Approved ─ admit ─▶ Ticket
//!                                                                                    │
//!        Screened ◀─ screen ─ Answer ◀────────── send ◀─────────────────────────────┘
//! ```
//!
//! Each step consumes the value before it and returns the next, so a step can be neither left
//! out nor taken out of order: the next one would have nothing to take. A [`Ticket`] cannot be
//! made outside this module:
//!
//! ```compile_fail,E0451
//! use capstan_hub::Ticket;
//! let forged = Ticket { id: todo!(), kind: todo!(), effect: todo!(), params: todo!() };
//! ```
//!
//! `record` wraps the whole road, so that every exit is written to the audit log.

mod resolve;
mod permit;
mod confirm;
mod admit;
mod send;
mod screen;
mod flowing;

mod attempt;
mod errand;
mod record;

pub(crate) use permit::fallback;
pub(crate) use resolve::nearest;

pub use admit::Ticket;
pub use attempt::Attempt;
pub use errand::{Admitted, Asks};
pub use flowing::{Delivery, Flowing};
pub use screen::{Screened, Shape};

use std::sync::Arc;

use capstan_model::{CallError, Caller, ServerName};
use record::Record;
use resolve::Resolved;
use screen::Passed;

use crate::hub::Hub;
use crate::ports::{Item, Operator};
use crate::told::{Explained, Told};
use crate::{Call, Session};

/// Takes `call` down the whole road.
async fn walk(
    hub: &Hub,
    session: &Session,
    call: Call,
    operator: Arc<dyn Operator>,
    record: &mut Record<'_>,
) -> Result<Passed, CallError> {
    let resolved = resolve::resolve(hub, call, record).await?;
    let permitted = permit::permit(hub, resolved, record)?;
    let approved = confirm::confirm(hub, session, &*operator, permitted, record).await?;
    let mut ticket = admit::admit(hub, session, approved)?;
    let answer = send::send(hub, &mut ticket, operator).await?;
    screen::screen(hub.limits.max_answer, &ticket, answer)
}

/// Looks up the item that `call` means, with what its server says of it.
pub(crate) async fn find(hub: &Hub, call: Call) -> Result<(ServerName, Item), CallError> {
    let Resolved { id, definition, .. } = resolve::find(hub, call).await?;
    Ok((id.server, Item { name: id.item, definition }))
}

/// Takes `call` as far as the verdict and tells every rule on the way there.
///
/// Whether its arguments fit the tool is not looked at: who asks may not have them yet.
pub(crate) async fn explain(hub: &Hub, call: Call) -> Result<Explained, CallError> {
    if let Some((id, ruling)) = resolve::out_of_reach(hub, &call) {
        // As on the road: nothing is started for it, so nobody knows what it does.
        let told = Told::new(Caller::clone(&call.caller), id, call.target.kind);
        return Ok(Explained { ruling, ..told.explain(&hub.policy, hub.clock.now()) });
    }
    let Resolved { id, effect, standing, call, .. } = resolve::explain(hub, call).await?;
    let (kind, arguments) = (call.target.kind, call.arguments());
    let caller = Arc::unwrap_or_clone(call.caller);
    let told = Told { caller, id, kind, arguments, effect };
    let mut explained = told.explain(&hub.policy, hub.clock.now());
    let (ruling, step) = hub.pins.explain(&explained.id, standing, explained.ruling);
    explained.ruling = ruling;
    explained.steps.extend(step);
    Ok(explained)
}
