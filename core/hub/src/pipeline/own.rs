//! Before the first step: replaces a call of `call_tool` by the call that it stands for, and answers
//! calls of Capstan's other own tools. No server is asked for those.

use std::sync::Arc;

use capstan_model::{By, CallError, Effect, ItemId, Kind, Ruling, ServerName, Verdict};

use super::admit::recordable;
use super::permit::Permitted;
use super::record::Record;
use super::screen::{Origin, Screened, check_size};
use super::spill::Deliverable;
use crate::hub::Hub;
use crate::own_tools::{self, Effects, OwnTool};
use crate::ports::OwnTools;
use crate::{Call, Requester};

/// The name of the server that own tools seem to come from.
const OWN: &str = "capstan";

/// A call, and the own tool that it is for.
pub(super) enum Meant {
    /// A tool of a server, which may have these effects.
    Real(Call, Effects),
    /// An own tool that calls no other.
    Own(Call, OwnTool),
}

/// Returns the call that is meant.
pub(super) fn meant(
    call: Call,
    requester: &mut Requester<'_>,
    record: &mut Record<'_>,
) -> Result<Meant, CallError> {
    let own = requester.own_tools;
    let Some(tool) = own.and_then(|own| OwnTool::of(own.calls, &call.target)) else {
        return Ok(Meant::Real(call, Effects::Any));
    };
    let Some(effects) = tool.calls() else { return Ok(Meant::Own(call, tool)) };
    let call = own_tools::called(call)?;
    record.asked(&call);
    // The client knows the schema of `call_tool`, which repeats no arguments.
    requester.repeated = None;
    Ok(Meant::Real(call, effects))
}

/// Answers a call of an own tool.
pub(super) async fn answer(
    hub: &Hub,
    call: &Call,
    tool: OwnTool,
    own: Option<OwnTools<'_>>,
    record: &mut Record<'_>,
) -> Result<Deliverable, CallError> {
    recordable(hub)?;
    record.resolved(Effect::Read);
    let rule = "one of Capstan's own tools".to_owned();
    record.ruled(&Ruling { verdict: Verdict::Allow, rule, by: By::Default });
    let unknown = || {
        let (kind, name) = (Kind::Tool, call.target.name.clone());
        CallError::Unknown { kind, name, nearest: Vec::new() }
    };
    let (Some(own), Some(offer)) = (own, hub.offer()) else { return Err(unknown()) };
    let pool = own.lists.load().await?;
    let arguments = call.arguments();
    let result = match tool {
        OwnTool::Search => own_tools::search(hub, offer, &pool, (own.calls, &arguments)).await?,
        OwnTool::Describe => own_tools::describe(hub, &pool, &arguments)?,
        OwnTool::Call | OwnTool::CallRead | OwnTool::CallWrite => return Err(unknown()),
    };
    check_size(hub.limits.max_answer, || call.target.name.clone(), result.len())?;
    let server: ServerName = OWN.parse().map_err(|_| unknown())?;
    let id = ItemId { server, item: call.target.name.clone() };
    let origin = Origin::new(id, Kind::Tool, Arc::clone(&call.caller));
    Ok(Deliverable::own(Screened::new(origin, result)))
}

/// Refuses a tool that may change something, if only reading is meant.
pub(super) fn check_effects(permitted: &Permitted, effects: Effects) -> Result<(), CallError> {
    let resolved = &permitted.resolved;
    if effects == Effects::Any || resolved.effect == Effect::Read {
        return Ok(());
    }
    let (item, own) = (resolved.id.to_string(), OwnTool::CallWrite.name());
    let problem = format!("the tool may change something; call it with `{own}`");
    Err(CallError::InvalidArguments { item, problem })
}
