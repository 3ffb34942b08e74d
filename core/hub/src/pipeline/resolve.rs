//! Step 3: finds the item in the lists of the running server. Decides nothing.

use std::sync::Arc;

use capstan_model::name::SEPARATOR;
use capstan_model::{CallError, Caller, Effect, ItemId, Kind, Target};
use capstan_policy::Tags;
use capstan_wire::Json;

use super::reach::is_uri;
use super::record::Record;
use super::sign_in::Asked;
use super::wake::{Awake, listing_of, start, within_reach};
use crate::catalog::{Fact, find_public};
use crate::hub::Hub;
use crate::life::Lease;
use crate::ports::{Item, Lane, Listing, ResourceLists};
use crate::{Call, Freshness, Standing};

/// The maximum number of similar names in the error for an unknown name.
const MAX_NEAREST: usize = 3;

/// The minimum similarity (Jaro-Winkler) of a suggested name.
const LIKENESS: f64 = 0.7;

/// A call whose item exists.
pub(super) struct Resolved {
    pub(super) id: ItemId,
    pub(super) effect: Effect,
    /// The definition that its server lists.
    pub(super) definition: Json,
    /// Cached facts about the item, if its server lists it.
    pub(super) fact: Option<Arc<Fact>>,
    /// The definition compared with the approved one.
    pub(super) standing: Standing,
    /// The connection that lists the item; `None` for items that need not be listed.
    pub(super) lease: Option<Lease>,
    /// The list that contains the item.
    pub(super) items: Option<Arc<[Item]>>,
    /// The reason why the tool cannot be called in this way. `permit` reports it to a caller who may
    /// see the tool.
    pub(super) problem: Option<Box<CallError>>,
    /// The tags that flows are judged by, known after `permit`; none if there are no such rules.
    pub(super) tags: Tags,
    pub(super) call: Call,
}

/// An item with the list and the connection that it was found on.
pub(crate) struct Found {
    pub(crate) id: ItemId,
    pub(crate) definition: Json,
    pub(crate) fact: Option<Arc<Fact>>,
    pub(crate) standing: Standing,
    pub(crate) lease: Option<Lease>,
    pub(crate) items: Option<Arc<[Item]>>,
}

pub(super) async fn resolve(
    hub: &Hub,
    mut awake: Awake,
    resources: Option<&dyn ResourceLists>,
    record: &mut Record<'_>,
) -> Result<Resolved, CallError> {
    if let Some(resources) = resources.filter(|_| is_uri(&awake.call.target)) {
        let Call { caller, target, .. } = &awake.call;
        // Boxed because calls of tools are more frequent; it keeps their future small.
        let id = Box::pin(by_uri(hub, caller, &target.name, resources)).await?;
        awake.call.target = Target::exact(Kind::Resource, id.clone());
        awake.first = Some(id);
    }
    let resolved = find(hub, awake).await?;
    record.meant(&resolved.id);
    record.resolved(resolved.effect);
    Ok(resolved)
}

/// Finds the resource that a client knows by this URI.
pub(crate) async fn by_uri(
    hub: &Hub,
    caller: &Caller,
    uri: &str,
    resources: &dyn ResourceLists,
) -> Result<ItemId, CallError> {
    // What a server owns stays its own, so a URI that has an owner needs no list.
    if !hub.catalog.uris.is_owned(uri) {
        resources.load(Listing::Resources).await;
        resources.load(Listing::Templates).await;
    }
    let found = hub.catalog.uris.resolve(uri).filter(|id| {
        // A server beyond the caller's reach does not exist for them.
        hub.servers.contains_key(&id.server)
            && hub.policy.out_of_reach(caller, &id.server).is_none()
    });
    found.ok_or_else(|| {
        let (kind, name) = (Kind::Resource, uri.to_owned());
        CallError::Unknown { kind, name, nearest: Vec::new() }
    })
}

/// Looks up the item, on the leased server first.
pub(super) async fn find(hub: &Hub, awake: Awake) -> Result<Resolved, CallError> {
    let Awake { call, first, lease, lane } = awake;
    let found = match at_once(hub, &call, first.as_ref(), lease) {
        Ok(found) => found,
        // Boxed because it is rare and large, to keep the future of every call small.
        Err(lease) => Box::pin(look_for(hub, &call, first, lease, lane)).await?,
    };
    let Found { id, definition, fact, standing, lease, items } = found;
    let effect = match &fact {
        Some(fact) => fact.effect,
        None => hub.effect_of(&id, call.target.kind, &definition),
    };
    let (problem, tags) = (None, Tags::NONE);
    Ok(Resolved { id, effect, definition, fact, standing, lease, items, problem, tags, call })
}

/// Finds the item without waiting; otherwise returns the lease.
fn at_once(
    hub: &Hub,
    call: &Call,
    first: Option<&ItemId>,
    lease: Option<Lease>,
) -> Result<Found, Option<Lease>> {
    let kind = call.target.kind;
    let (Some(id), Some(leased), Some(listing)) = (first, &lease, listing_of(kind)) else {
        return Err(lease);
    };
    let found = hub.judged_at_once(leased, listing).and_then(|(items, odd)| {
        let (id, definition, fact) = offered(hub, kind, id, &items)?;
        match Standing::of(&odd, &id.item) {
            known @ (Standing::Approved | Standing::Unexpected) => {
                Some((id, definition, fact, known, items))
            }
            // `look_for` compares these again, which may have to wait.
            Standing::New | Standing::Changed | Standing::Lost => None,
        }
    });
    match found {
        Some((id, definition, fact, standing, items)) => {
            let (fact, items) = (Some(fact), Some(items));
            Ok(Found { id, definition, fact, standing, lease, items })
        }
        None => Err(lease),
    }
}

/// Finds the item by its assigned name, its spelling, or its public name in the lists.
async fn look_for(
    hub: &Hub,
    call: &Call,
    first: Option<ItemId>,
    mut lease: Option<Lease>,
    lane: Lane,
) -> Result<Found, CallError> {
    let tried = first.clone();
    let others = std::iter::once_with(|| hub.ids_of(&call.target)).flatten();
    let others = others.filter(|id| Some(id) != tried.as_ref());
    for id in first.into_iter().chain(others) {
        let Some(server) = within_reach(hub, call, &id) else { continue };
        let Some(listing) = listing_of(call.target.kind) else {
            let (definition, standing) = (Json::empty_object(), Standing::Approved);
            return Ok(Found { id, definition, fact: None, standing, lease: None, items: None });
        };
        let lease = if let Some(lease) = lease.take() {
            lease
        } else {
            // The caller was asked to sign in before, when its server was woken.
            let asked = Asked { caller: &call.caller, client: None };
            start(hub, server, listing, lane, asked).await?
        };
        let (items, odd) = hub.judged_by(&lease, listing).await?;
        if let Some((id, definition, fact)) = offered(hub, call.target.kind, &id, &items) {
            let standing = hub.standing(&id, (&items, &odd)).await;
            let (fact, lease, items) = (Some(fact), Some(lease), Some(items));
            return Ok(Found { id, definition, fact, standing, lease, items });
        }
    }
    match find_public(hub, &call.caller, &call.target, lane).await? {
        Some(found) => Ok(found),
        None => Err(unknown(hub, call).await),
    }
}

/// Finds an item by its name or its own name, with its definition and cached facts.
fn offered(
    hub: &Hub,
    kind: Kind,
    id: &ItemId,
    items: &Arc<[Item]>,
) -> Option<(ItemId, Json, Arc<Fact>)> {
    let facts = &hub.facts;
    let index = facts.of(&id.server, kind, items);
    let overlay = match kind {
        Kind::Tool => hub.catalog.overrides.learn(&id.server, items),
        Kind::Resource | Kind::Prompt => None,
    };
    let mut id = id.clone();
    if let Some(overlay) = overlay {
        id.item = overlay.own_name(&id.item).to_owned();
    }
    let (definition, fact) = facts.get(&hub.policy, &index, kind, &id)?;
    Some((id, definition, fact))
}

/// Returns the error for a name that matches no item, with the most similar names.
async fn unknown(hub: &Hub, call: &Call) -> CallError {
    let (kind, typed) = (call.target.kind, call.target.name.as_str());
    let Some(id) = call.target.id().or_else(|| hub.id_of(typed)) else {
        let nearest = with_near_server(hub, typed);
        return CallError::Unknown { kind, name: typed.to_owned(), nearest };
    };
    let listing = if kind == Kind::Prompt { Listing::Prompts } else { Listing::Tools };
    let items = match hub.servers.get(&id.server) {
        // From memory: the list was requested just now.
        Some(server) => server.list(listing, Freshness::Known).await.unwrap_or_default(),
        None => Arc::default(),
    };
    // Suggestions must not reveal items that the caller may not see.
    let shown = |item: &&Item| {
        let near = ItemId { server: id.server.clone(), item: item.name.clone() };
        let effect = hub.effect_of(&near, kind, &item.definition);
        hub.could_permit(&near, kind, effect, &call.caller)
            && (kind != Kind::Tool || hub.is_usable(&id.server, item))
    };
    let called = |item: &Item| {
        let near = ItemId { server: id.server.clone(), item: item.name.clone() };
        let shown = hub.catalog.overrides.shown(&near).filter(|_| kind == Kind::Tool);
        shown.map_or(near.item, |shown| shown.name.clone())
    };
    let names = items.iter().filter(shown).map(called);
    let near = nearest(&id.item, names).into_iter();
    let nearest = near.map(|near| format!("{}{SEPARATOR}{near}", id.server)).collect();
    CallError::Unknown { kind, name: id.to_string(), nearest }
}

/// Returns the name with its server part replaced by the names of similar servers.
fn with_near_server(hub: &Hub, name: &str) -> Vec<String> {
    let split = ["__", ":", "."].iter().find_map(|separator| name.split_once(separator));
    let Some((server, item)) = split else { return Vec::new() };
    let near = nearest(server, hub.servers.keys().map(ToString::to_string));
    near.into_iter().map(|near| format!("{near}{SEPARATOR}{item}")).collect()
}

/// Returns the names most similar to `wanted`, best first.
pub(crate) fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = names
        .map(|name| (strsim::jaro_winkler(wanted, &name), name))
        .filter(|(score, _)| *score >= LIKENESS)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(MAX_NEAREST).map(|(_, name)| name).collect()
}
