//! Step 1: may this caller use the server at all? Starts nothing and reveals nothing.

use capstan_model::{CallError, ItemId, Ruling};
use capstan_wire::duplicate::refuse_duplicates;

use super::record::Record;
use crate::Call;
use crate::hub::Hub;

/// Members of the params that decisions read, or that are replaced or left out before the params are
/// sent. A server could take another spelling for one of them.
const PROTECTED: &[&str] =
    &["name", "uri", "arguments", "_meta", "task", "requestState", "inputResponses"];

/// A call that its caller may make of at least one server.
pub(super) struct Reached {
    pub(super) call: Call,
    /// The item that is meant in the first place.
    pub(super) first: Option<ItemId>,
}

pub(super) fn reach(hub: &Hub, call: Call, record: &mut Record<'_>) -> Result<Reached, CallError> {
    let first = hub.ids_of(&call.target).next();
    if let Some(id) = &first {
        record.meant(id);
    }
    // For callers who can use nothing of a server it is as if it were not there: not even whether
    // it starts can be told from the answer.
    if let Some((id, ruling)) = out_of_reach(hub, &call) {
        record.ruled(&ruling);
        return Err(CallError::Denied { item: id.to_string(), rule: ruling.rule });
    }
    checked(call, first)
}

/// Refuses params that a server could read otherwise than the rules do.
pub(super) fn checked(call: Call, first: Option<ItemId>) -> Result<Reached, CallError> {
    match refuse_duplicates(&call.params, PROTECTED) {
        Ok(()) => Ok(Reached { call, first }),
        Err(problem) => {
            let (item, problem) = (call.target.name.clone(), problem.to_string());
            Err(CallError::InvalidArguments { item, problem })
        }
    }
}

/// The item that is meant and the ruling that refuses it, where every item that can be meant is out
/// of the caller's reach.
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
