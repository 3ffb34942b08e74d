//! Step 4: fills in the item's own name and the fixed arguments, and checks the schema. The
//! operator fixes arguments in the configuration. The params are not changed after this step.

use capstan_model::{CallError, Front, ItemId, Kind};
use capstan_wire::{compose, object};

use super::resolve::Resolved;
use crate::catalog::check_arguments;
use crate::hub::Hub;
use crate::{Call, Check};

pub(super) fn settle(hub: &Hub, resolved: Resolved, check: Check) -> Result<Resolved, CallError> {
    let Resolved { id, effect, definition, fact, standing, lease, items, call } = resolved;
    let mut call = with_own_name(call, &id)?;
    if call.target.kind == Kind::Tool {
        let is_person = matches!(call.caller.front, Front::Cli | Front::Terminal);
        let caller = &call.caller;
        // A caller who may not see the tool gets no information about it, not even its schema.
        let may_know = || hub.could_permit(&id, Kind::Tool, effect, caller);
        if hub.catalog.overrides.settles(&id) && may_know() {
            call.params = hub.catalog.overrides.settle(&id, call.params)?;
        }
        match hub.refuse_bad_schema(&id, &definition, fact.as_deref()) {
            Err(hidden) if is_person || may_know() => return Err(hidden),
            Ok(()) | Err(_) => {}
        }
        if check == Check::Yes && !is_person && may_know() {
            check_arguments(&id, &definition, &call.arguments())?;
        }
    }
    Ok(Resolved { id, effect, definition, fact, standing, lease, items, call })
}

/// Replaces the caller's spelling with the name that the server uses.
pub(super) fn with_own_name(call: Call, id: &ItemId) -> Result<Call, CallError> {
    let name = compose::string(&id.item);
    let Call { caller, target, params, part } = call;
    let params = object::set_member(params, target.kind.name_key(), &name);
    let params = params.map_err(|_| {
        let problem = "the request's params are not an object".to_owned();
        CallError::InvalidArguments { item: id.to_string(), problem }
    })?;
    Ok(Call { caller, target, params, part })
}
