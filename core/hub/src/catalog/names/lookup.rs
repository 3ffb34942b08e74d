//! Finds an item by a public name that only lists can resolve: bare, shortened or respelled.

use std::sync::Arc;

use capstan_model::{CallError, Caller, ItemId, Kind, ServerName, ServerState, Target};
use capstan_wire::Json;
use futures::StreamExt;
use futures::stream::FuturesOrdered;

use super::naming::Alphabet;
use crate::Freshness;
use crate::hub::Hub;
use crate::life::Server;
use crate::pins::Odd;
use crate::pipeline::Found;
use crate::ports::{Item, Lane, Listing, Principal};

/// Finds the item with this public name, with its definition and its standing.
///
/// The standing compares the definition with the approved one. Only servers that may have such a
/// name are listed, all concurrently. The first match in the order of the configuration wins.
///
/// # Errors
/// Fails if a server that comes before the first match cannot be listed: the name may belong to
/// that server, and the call must not go to another one instead.
pub(crate) async fn find_public(
    hub: &Hub,
    caller: &Caller,
    target: &Target,
    lane: Lane,
) -> Result<Option<Found>, CallError> {
    let listing = match (target.kind, &target.server) {
        (Kind::Tool, None) => Listing::Tools,
        (Kind::Prompt, None) => Listing::Prompts,
        // If the caller names the server, no other server is searched, whatever its items are
        // called.
        (Kind::Resource, _) | (_, Some(_)) => return Ok(None),
    };
    // Servers that are out of the caller's reach are skipped: not even their failures are revealed.
    let may = |server: &&Arc<Server>| {
        let name = server.name();
        hub.catalog.names.may_name(name, &target.name)
            && hub.policy.out_of_reach(caller, name).is_none()
    };
    let asked = hub.servers.values().filter(may);
    let mut answers: FuturesOrdered<_> = asked
        .map(|server| async move { (server, listed(hub, server, listing, lane).await) })
        .collect();
    let mut lists: Vec<(&ServerName, Arc<[Item]>)> = Vec::new();
    let mut failure = None;
    while let Some((backend, answer)) = answers.next().await {
        match answer {
            Ok((items, _)) => lists.push((backend.name(), items)),
            Err(_) if is_switched_off(&backend.state()) => continue,
            // A caller without an account there has none of its items.
            Err(CallError::NeedsLogin { .. }) if lane.principal != Principal::Operator => continue,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        if let Some(found) = look(hub, target, Alphabet::Usual, &lists) {
            return current(hub, listing, found, lane).await;
        }
    }
    let found = Alphabet::ALL.into_iter().find_map(|alphabet| look(hub, target, alphabet, &lists));
    match (found, failure) {
        (Some(found), _) => current(hub, listing, found, lane).await,
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    }
}

/// Lists a server; one that callers use with accounts of their own, for the caller of the lane.
async fn listed(
    hub: &Hub,
    server: &Arc<Server>,
    listing: Listing,
    lane: Lane,
) -> Result<(Arc<[Item]>, Arc<Odd>), CallError> {
    if lane.principal == Principal::Operator || !hub.per_caller.contains(server.name()) {
        return hub.judged(server, listing, Freshness::Known).await;
    }
    let lease = server.wake(lane).await?;
    hub.judged_by(&lease, listing).await
}

/// Returns the item as its server lists it now: the lists may come from an earlier run.
async fn current(
    hub: &Hub,
    listing: Listing,
    (id, _): (ItemId, Json),
    lane: Lane,
) -> Result<Option<Found>, CallError> {
    let Some(server) = hub.servers.get(&id.server) else { return Ok(None) };
    let lease = server.wake(lane).await?;
    let (items, odd) = hub.judged_by(&lease, listing).await?;
    let Some(item) = items.iter().find(|item| item.name == id.item) else { return Ok(None) };
    let definition = item.definition.clone();
    let standing = hub.standing(&id, (&items, &odd)).await;
    let (lease, items) = (Some(lease), Some(items));
    Ok(Some(Found { id, definition, fact: None, standing, lease, items }))
}

fn look(
    hub: &Hub,
    target: &Target,
    alphabet: Alphabet,
    lists: &[(&ServerName, Arc<[Item]>)],
) -> Option<(ItemId, Json)> {
    for (server, items) in lists {
        hub.catalog.names.learn(target.kind, alphabet, server, items);
    }
    let id = hub.catalog.names.resolve(target.kind, alphabet, &target.name)?;
    let (_, items) = lists.iter().find(|(server, _)| **server == id.server)?;
    let item = items.iter().find(|item| item.name == id.item)?;
    let definition = item.definition.clone();
    Some((id, definition))
}

/// True if the server offers nothing because it is disabled or its file is not trusted yet.
fn is_switched_off(state: &ServerState) -> bool {
    match state {
        ServerState::Disabled | ServerState::AwaitingApproval => true,
        ServerState::Cached
        | ServerState::Connecting
        | ServerState::Connected
        | ServerState::Degraded(_)
        | ServerState::NeedsLogin
        | ServerState::Idle
        | ServerState::Failed(_) => false,
    }
}
