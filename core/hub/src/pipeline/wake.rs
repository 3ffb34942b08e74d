//! Step 2: picks the lane of the caller, and takes a lease of the target server; connects if there
//! is no connection.
//!
//! A resource need not be listed, so its server is woken when the call is sent.

use std::pin::pin;
use std::sync::Arc;

use capstan_model::{CallError, ItemId, Kind};

use super::reach::Reached;
use super::sign_in::{self, Asked};
use crate::Call;
use crate::hub::Hub;
use crate::life::{Lease, Server};
use crate::ports::{ClientSide, Lane, Listing};

/// A call whose server runs, if the name determines the server.
pub(super) struct Awake {
    pub(super) call: Call,
    pub(super) first: Option<ItemId>,
    /// The lease of the first item's server.
    pub(super) lease: Option<Lease>,
    /// The lane of the caller.
    pub(super) lane: Lane,
}

pub(super) async fn wake(
    hub: &Hub,
    reached: Reached,
    lane: Lane,
    client: Option<&dyn ClientSide>,
) -> Result<Awake, CallError> {
    let Reached { call, first } = reached;
    let server = first.as_ref().and_then(|id| within_reach(hub, &call, id));
    let lease = match (server, listing_of(call.target.kind)) {
        (Some(server), Some(listing)) => Some(if let Some(lease) = server.lease(lane) {
            lease
        } else {
            let asked = Asked { caller: &call.caller, client };
            // Boxed because it is rare and large, to keep the future of every call small.
            Box::pin(start(hub, server, listing, lane, asked)).await?
        }),
        (None, _) | (_, None) => None,
    };
    Ok(Awake { call, first, lease, lane })
}

/// Connects to the server while the approved definitions are read.
pub(super) async fn start(
    hub: &Hub,
    server: &Arc<Server>,
    listing: Listing,
    lane: Lane,
    asked: Asked<'_>,
) -> Result<Lease, CallError> {
    hub.beside(server, listing, pin!(sign_in::wake(hub, server, lane, asked))).await
}

/// Returns the server of an item, unless the caller may use nothing of it.
pub(super) fn within_reach<'a>(hub: &'a Hub, call: &Call, id: &ItemId) -> Option<&'a Arc<Server>> {
    let refused = hub.policy.out_of_reach(&call.caller, &id.server);
    hub.servers.get(&id.server).filter(|_| refused.is_none())
}

/// Returns the list that an item must be on. A resource need not be listed: templates produce more
/// resources than any list holds.
pub(super) fn listing_of(kind: Kind) -> Option<Listing> {
    match kind {
        Kind::Tool => Some(Listing::Tools),
        Kind::Prompt => Some(Listing::Prompts),
        Kind::Resource => None,
    }
}
