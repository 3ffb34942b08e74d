//! Step 1: checks that the caller may use the server at all. Starts nothing and reveals nothing.

use capstan_model::{CallError, ItemId, Kind, Ruling, Target};
use capstan_wire::duplicate::refuse_duplicates;

use super::record::Record;
use crate::Call;
use crate::hub::Hub;
use crate::ports::ResourceLists;

/// Members of the params that decisions read, or that the pipeline replaces or removes. No other
/// member may resemble one of them: a lenient server could read `Name` as `name`.
const PROTECTED: &[&str] =
    &["name", "uri", "arguments", "_meta", "task", "requestState", "inputResponses"];

/// A call for which at least one possible server is within the caller's reach.
pub(super) struct Reached {
    pub(super) call: Call,
    /// The first item that the name can stand for.
    pub(super) first: Option<ItemId>,
}

pub(super) fn reach(
    hub: &Hub,
    call: Call,
    resources: Option<&dyn ResourceLists>,
    record: &mut Record<'_>,
) -> Result<Reached, CallError> {
    // A URI names no server. `resolve` finds one among the servers within reach.
    if resources.is_some() && is_uri(&call.target) {
        return checked(call, None);
    }
    let first = hub.ids_of(&call.target).next();
    if let Some(id) = &first {
        record.meant(id);
    }
    // To callers who may use nothing of a server, it does not exist. The answer does not even
    // reveal whether the server starts.
    if let Some((id, ruling)) = out_of_reach(hub, &call) {
        record.ruled(&ruling);
        return Err(CallError::Denied { item: id.to_string(), rule: ruling.rule });
    }
    checked(call, first)
}

/// True if the target is a resource that is named by its URI alone.
pub(super) fn is_uri(target: &Target) -> bool {
    target.kind == Kind::Resource && target.server.is_none()
}

/// Refuses params that a server could read differently than the rules do.
pub(super) fn checked(call: Call, first: Option<ItemId>) -> Result<Reached, CallError> {
    match refuse_duplicates(&call.params, PROTECTED) {
        Ok(()) => Ok(Reached { call, first }),
        Err(problem) => {
            let (item, problem) = (call.target.name.clone(), problem.to_string());
            Err(CallError::InvalidArguments { item, problem })
        }
    }
}

/// Returns the refusal of a call if none of its possible items is within the caller's reach. It
/// consists of the first of these items and the ruling.
pub(super) fn out_of_reach(hub: &Hub, call: &Call) -> Option<(ItemId, Ruling)> {
    if !hub.policy.binds(&call.caller) {
        return None;
    }
    let mut refused = None;
    for id in hub.ids_of(&call.target) {
        let ruling = hub.policy.out_of_reach(&call.caller, &id.server)?;
        refused = refused.or(Some((id, ruling)));
    }
    refused
}
