//! Step 2: a lease of the server that is meant; connects if need be.
//!
//! A resource need not be listed: its server is woken when the call is sent.

use std::pin::pin;
use std::sync::Arc;

use capstan_model::{CallError, ItemId, Kind};

use super::reach::Reached;
use crate::Call;
use crate::hub::Hub;
use crate::life::{Lease, Server};
use crate::ports::Listing;

/// A call whose server runs, where its name tells which one is meant.
pub(super) struct Awake {
    pub(super) call: Call,
    pub(super) first: Option<ItemId>,
    /// The lease of the first item's server.
    pub(super) lease: Option<Lease>,
}

pub(super) async fn wake(hub: &Hub, reached: Reached) -> Result<Awake, CallError> {
    let Reached { call, first } = reached;
    let server = first.as_ref().and_then(|id| within_reach(hub, &call, id));
    let lease = match (server, listing_of(call.target.kind)) {
        (Some(server), Some(listing)) => match server.lease() {
            Some(lease) => Some(lease),
            // Rare, and large: kept out of what every call carries along.
            None => Some(Box::pin(start(hub, server, listing)).await?),
        },
        (None, _) | (_, None) => None,
    };
    Ok(Awake { call, first, lease })
}

/// Connects, while the approved definitions are read.
pub(super) async fn start(
    hub: &Hub,
    server: &Arc<Server>,
    listing: Listing,
) -> Result<Lease, CallError> {
    hub.beside(server, listing, pin!(server.wake())).await
}

/// The server of an item, unless the caller can use nothing of it.
pub(super) fn within_reach<'a>(hub: &'a Hub, call: &Call, id: &ItemId) -> Option<&'a Arc<Server>> {
    let refused = hub.policy.out_of_reach(&call.caller, &id.server);
    hub.servers.get(&id.server).filter(|_| refused.is_none())
}

/// The list that an item must be on. A resource need not be on one: templates make more of them
/// than any list holds.
pub(super) fn listing_of(kind: Kind) -> Option<Listing> {
    match kind {
        Kind::Tool => Some(Listing::Tools),
        Kind::Prompt => Some(Listing::Prompts),
        Kind::Resource => None,
    }
}
