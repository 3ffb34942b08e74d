//! Step 4: fills in the item's own name and the fixed arguments, and checks the schema and the
//! headers that repeat arguments. The operator fixes arguments in the configuration. The params are
//! not changed after this step.
//!
//! A problem with a tool is reported by `permit`, to a caller who may see the tool. A person gets to
//! know at once that the schema cannot be used.

use capstan_model::{CallError, Effect, Front, ItemId, Kind};
use capstan_policy::Tags;
use capstan_wire::{Json, compose, object};

use super::resolve::Resolved;
use crate::catalog::{RepeatedArguments, check_arguments};
use crate::hub::Hub;
use crate::{Call, Check, Standing};

/// A call whose params are final. Only this step creates one.
pub(super) struct Settled(Resolved);

pub(super) fn settle(
    hub: &Hub,
    mut resolved: Resolved,
    check: Check,
    repeated: Option<&RepeatedArguments>,
) -> Result<Settled, CallError> {
    resolved.call = with_own_name(resolved.call, &resolved.id)?;
    let settled = match resolved.call.target.kind {
        Kind::Tool => settle_tool(hub, &mut resolved, check, repeated),
        Kind::Prompt | Kind::Resource => {
            let Resolved { id, definition, fact, .. } = &resolved;
            hub.refuse_blocked(id, definition, fact.as_deref())
        }
    };
    if let Err(problem) = settled {
        let is_hidden = matches!(problem, CallError::Hidden { .. });
        if is_hidden && is_person(&resolved.call) {
            return Err(problem);
        }
        resolved.problem = Some(Box::new(problem));
    }
    Ok(Settled(resolved))
}

/// Settles an item that is not looked up in a list, for a side request.
pub(super) fn unlisted(id: ItemId, effect: Effect, call: Call) -> Result<Settled, CallError> {
    let call = with_own_name(call, &id)?;
    Ok(Settled(Resolved {
        id,
        effect,
        definition: Json::empty_object(),
        fact: None,
        standing: Standing::Approved,
        lease: None,
        items: None,
        problem: None,
        tags: Tags::NONE,
        call,
    }))
}

// === impl Settled ===

impl Settled {
    pub(super) fn into_resolved(self) -> Resolved {
        self.0
    }
}

fn settle_tool(
    hub: &Hub,
    resolved: &mut Resolved,
    check: Check,
    repeated: Option<&RepeatedArguments>,
) -> Result<(), CallError> {
    let Resolved { id, definition, fact, call, .. } = resolved;
    // Before arguments are filled in: the client repeats its own.
    if let (Some(repeated), Some(fact)) = (repeated, &*fact) {
        repeated.check(id, fact.headers(definition), &call.params)?;
    }
    if hub.catalog.overrides.settles(id) {
        call.params = hub.catalog.overrides.settle(id, call.params.clone())?;
    }
    hub.refuse_bad_schema(id, definition, fact.as_deref())?;
    if check == Check::Yes && !is_person(call) {
        check_arguments(id, definition, &call.arguments())?;
    }
    Ok(())
}

fn is_person(call: &Call) -> bool {
    matches!(call.caller.front, Front::Cli | Front::Terminal)
}

/// Replaces the caller's spelling with the name that the server uses.
fn with_own_name(call: Call, id: &ItemId) -> Result<Call, CallError> {
    let name = compose::string(&id.item);
    let Call { caller, target, params, part } = call;
    let params = object::set_member(params, target.kind.name_key(), &name);
    let params = params.map_err(|_| {
        let problem = "the request's params are not an object".to_owned();
        CallError::InvalidArguments { item: id.to_string(), problem }
    })?;
    Ok(Call { caller, target, params, part })
}
