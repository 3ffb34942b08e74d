//! The pipeline of a call, one file per step:
//!
//! ```text
//! reach → wake → resolve → settle → permit → confirm → admit → send → screen
//! ```
//!
//! Each step consumes the value of the step before and returns the value for the next. A step can
//! therefore be neither left out nor taken out of order: its input would be missing. The lease that
//! `wake` takes is carried to `screen`. A [`Ticket`] cannot be made outside this module:
//!
//! ```compile_fail,E0616
//! // `offset_of` compiles only where the field is visible; types of other fields do not matter.
//! const FORGED: usize = std::mem::offset_of!(capstan_hub::Ticket, id);
//! ```
//!
//! Before the first step, `own` replaces a call of `call_tool` by the call that it stands for.
//!
//! `record` wraps all steps, so that every exit is written to the audit log. [`Outgoing`] is the
//! only type that reaches a server, besides the [`System`] messages of the hub itself.

mod reach;
mod wake;
mod resolve;
mod settle;
mod permit;
mod confirm;
mod admit;
mod send;
mod screen;
mod streaming;
mod spill;

mod attempt;
mod continuation;
mod extension;
mod outgoing;
mod own;
mod record;
mod side;
mod sign_in;
mod task;

pub(crate) use permit::fallback;
pub(crate) use resolve::{Found, by_uri, nearest};

pub use admit::Ticket;
pub use attempt::{Attempt, OpenAttempt};
pub use continuation::Continuation;
pub use extension::{ExtensionMethod, ExtensionNotification};
pub use outgoing::{
    Message, Outgoing, System, SystemMessage, TaskOp, TaskRequest, TaskSubscription,
};
pub use screen::{Screened, Shape};
pub use side::{Admission, ApprovalFrom, SideOp};
pub use streaming::{Delivery, Streaming};
pub use task::{OpenTask, TaskHandle};

use std::sync::{Arc, OnceLock};

use capstan_model::{CallError, Caller, ServerName, Verdict};
use capstan_policy::{Step, Tags};
use own::Meant;
use record::Record;
use resolve::Resolved;
use spill::Deliverable;

use crate::explain::{DescribedCall, Explanation};
use crate::hub::Hub;
use crate::ports::{Item, Lane};
use crate::{Call, Check, Requester, Session};

/// Runs all steps of `call`.
async fn walk(
    hub: &Hub,
    session: &Session,
    call: Call,
    mut requester: Requester<'_>,
    record: &mut Record<'_>,
) -> Result<Deliverable, CallError> {
    if spill::reads_page(&call.target) {
        // Boxed because it is rare, to keep the future of every call small.
        return Box::pin(spill::read(hub, session, &call, record)).await;
    }
    let (call, effects) = match own::meant(call, &mut requester, record)? {
        Meant::Real(call, effects) => (call, effects),
        Meant::Own(call, tool) => {
            let own = requester.own_tools;
            return Box::pin(own::answer(hub, &call, tool, own, record)).await;
        }
    };
    let max_tokens = hub.limits.max_tokens.or(requester.max_tokens);
    let uris = hub.merged_uris(&requester);
    let reached = reach::reach(hub, call, requester.resources, record)?;
    let awake = wake::wake(hub, reached, requester.lane, Some(&*requester.client)).await?;
    let resolved = resolve::resolve(hub, awake, requester.resources, record).await?;
    let settled = settle::settle(hub, resolved, hub.limits.check_arguments, requester.repeated)?;
    let permitted = permit::permit(hub, session, settled, record)?;
    own::check_effects(&permitted, effects)?;
    let approved = confirm::confirm(hub, session, requester.approver, permitted, record).await?;
    let mut ticket = admit::admit(hub, session, approved)?;
    let continued = requester.continued;
    let sent = send::send(hub, &mut ticket, requester).await;
    let (answer, lease) = sent.inspect_err(|error| {
        offer(continued, error, &ticket);
        // The text of the error comes from the server, and goes to the caller like an answer.
        if matches!(error, CallError::Server { .. }) {
            session.taint.add(ticket.tags(), ticket.id());
        }
    })?;
    let tainting = (ticket.tags() != Tags::NONE).then(|| (ticket.tags(), ticket.id().clone()));
    let screened = screen::screen(hub, uris, ticket, answer, lease)?;
    if let Some((tags, id)) = tainting {
        session.taint.add(tags, &id);
    }
    spill::shorten(hub, max_tokens, screened).await
}

/// Lets the front continue a call whose client must do something first.
fn offer(continued: Option<&OnceLock<Continuation>>, error: &CallError, ticket: &Ticket) {
    if let Some(slot) = continued
        && let Some(continuation) = Continuation::after(error, ticket)
    {
        slot.get_or_init(|| continuation);
    }
}

/// Looks up the item that `call` names, with the definition that its server lists.
pub(crate) async fn find(hub: &Hub, call: Call) -> Result<(ServerName, Item), CallError> {
    let resolved = settled(hub, call, hub.limits.check_arguments).await?;
    let Resolved { id, definition, problem, .. } = resolved;
    if let Some(problem) = problem {
        return Err(*problem);
    }
    Ok((id.server, Item { name: id.item, definition }))
}

/// Runs the steps up to `settle` for a call that is not made.
async fn settled(hub: &Hub, call: Call, check: Check) -> Result<Resolved, CallError> {
    let first = hub.ids_of(&call.target).next();
    let awake = wake::wake(hub, reach::checked(call, first)?, Lane::ANY, None).await?;
    let settled = settle::settle(hub, resolve::find(hub, awake).await?, check, None)?;
    Ok(settled.into_resolved())
}

/// Runs `call` up to the verdict and returns every rule that was considered.
///
/// Arguments are not checked against the schema: they may not be known yet.
pub(crate) async fn explain(hub: &Hub, call: Call) -> Result<Explanation, CallError> {
    if let Some((id, ruling)) = reach::out_of_reach(hub, &call) {
        // As for a real call, no server is started, so the item's effect is unknown.
        let described = DescribedCall::new(Caller::clone(&call.caller), id, call.target.kind);
        return Ok(Explanation { ruling, ..described.explain(&hub.policy, hub.clock.now()) });
    }
    let Resolved { id, effect, definition, standing, problem, call, .. } =
        settled(hub, call, Check::No).await?;
    let (kind, arguments) = (call.target.kind, call.arguments());
    let caller = Arc::unwrap_or_clone(call.caller);
    let described = DescribedCall { caller, id, kind, arguments, effect };
    let mut explained = described.explain(&hub.policy, hub.clock.now());
    let (ruling, step) = hub.pins.explain(&explained.id, standing, explained.ruling);
    if ruling.verdict != Verdict::Deny
        && let Some(problem) = problem
    {
        return Err(*problem);
    }
    explained.ruling = ruling;
    explained.steps.extend(step);
    let rules = hub.policy.flows();
    if rules.are_on() {
        explained.tags = hub.policy.tags_of(&explained.id, kind, &definition, effect);
        explained.by_flows = rules
            .ending_with(explained.tags)
            .map(|(flow, verdict)| {
                let read = flow.begins_with().words();
                let rule = format!("{}: after an answer of an item that {read}", flow.key());
                Step { engine: "flows", rule, verdict: Some(verdict) }
            })
            .collect();
    }
    Ok(explained)
}
