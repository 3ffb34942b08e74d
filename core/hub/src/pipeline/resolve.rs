//! Step 1: which item of which server is meant?

use std::sync::Arc;

use capstan_model::name::SEPARATOR;
use capstan_model::{CallError, Effect, Front, ItemId, Kind, Ruling};
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, compose, object};

use super::record::Record;
use crate::catalog::{Fact, check_arguments, find_public};
use crate::hub::Hub;
use crate::ports::{Backend, Item, Listing};
use crate::{Call, Check, Freshness, Standing};

/// How many names a typo is answered with.
const MAX_NEAREST: usize = 3;

/// How alike two names must be for one to be offered for the other.
const LIKENESS: f64 = 0.7;

/// Members of the params that decisions read, or that are replaced or left out before the params are
/// sent. A server could take another spelling for one of them.
const PROTECTED: &[&str] =
    &["name", "uri", "arguments", "_meta", "task", "requestState", "inputResponses"];

/// A call whose item is known to exist; its params name the item as the server does.
pub(super) struct Resolved {
    pub(super) id: ItemId,
    pub(super) effect: Effect,
    /// What its server says of it.
    pub(super) definition: Json,
    /// What is known of it, where its server lists it.
    pub(super) fact: Option<Arc<Fact>>,
    /// How that stands to what was approved.
    pub(super) standing: Standing,
    pub(super) call: Call,
}

pub(super) async fn resolve(
    hub: &Hub,
    call: Call,
    record: &mut Record<'_>,
) -> Result<Resolved, CallError> {
    let first = hub.ids_of(&call.target).next();
    if let Some(id) = &first {
        record.meant(id);
    }
    refuse_out_of_reach(hub, &call, record)?;
    let resolved = find_checked(hub, call, first, hub.limits.check_arguments).await?;
    record.meant(&resolved.id);
    record.resolved(resolved.effect);
    Ok(resolved)
}

/// Refuses what is on servers of which the caller can have nothing. For those it is as if they were
/// not there: not even whether they start can be told from the answer.
fn refuse_out_of_reach(hub: &Hub, call: &Call, record: &mut Record<'_>) -> Result<(), CallError> {
    let Some((id, ruling)) = out_of_reach(hub, call) else { return Ok(()) };
    record.ruled(&ruling);
    Err(CallError::Denied { item: id.to_string(), rule: ruling.rule })
}

/// The item that is meant, where all that can be meant are on such servers, and what refuses it.
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

/// Looks the item up; connects to its server, and to no other unless it is offered by bare name.
pub(super) async fn find(hub: &Hub, call: Call) -> Result<Resolved, CallError> {
    let first = hub.ids_of(&call.target).next();
    find_checked(hub, call, first, hub.limits.check_arguments).await
}

/// The same for a call that is only asked about.
pub(super) async fn explain(hub: &Hub, call: Call) -> Result<Resolved, CallError> {
    let first = hub.ids_of(&call.target).next();
    find_checked(hub, call, first, Check::No).await
}

/// Looks up the item; `first` is the one that is meant in the first place.
async fn find_checked(
    hub: &Hub,
    call: Call,
    first: Option<ItemId>,
    check: Check,
) -> Result<Resolved, CallError> {
    let name = &call.target.name;
    // Before anything is decided: what the rules read must be what the server reads. For the same
    // reason the name is put in place here, and the params are never touched again.
    if let Err(problem) = refuse_duplicates(&call.params, PROTECTED) {
        let problem = problem.to_string();
        return Err(CallError::InvalidArguments { item: name.clone(), problem });
    }
    let (id, definition, fact, standing) = match at_once(hub, &call, first.as_ref()) {
        Some(found) => found,
        // Rare, and large: kept out of what every call carries along.
        None => Box::pin(look_for(hub, &call, first)).await?,
    };
    let call = with_own_name(call, &id)?;
    let effect = match &fact {
        Some(fact) => fact.effect,
        None => hub.effect_of(&id, call.target.kind, &definition),
    };
    let call = settled(hub, &id, effect, call)?;
    if call.target.kind == Kind::Tool {
        // Of a tool that the caller may not know of nothing is told, its schema included.
        let may_know = || match call.caller.front {
            Front::Cli | Front::Terminal => true,
            Front::Gateway => hub.could_permit(&id, Kind::Tool, effect, &call.caller),
        };
        match hub.refuse_bad_schema(&id, &definition, fact.as_deref()) {
            Err(hidden) if may_know() => return Err(hidden),
            Ok(()) | Err(_) => {}
        }
        match (call.caller.front, check) {
            (Front::Gateway, Check::Yes) if may_know() => {
                check_arguments(&id, &definition, &call.arguments())?;
            }
            (Front::Gateway, Check::Yes | Check::No) | (Front::Cli | Front::Terminal, _) => {}
        }
    }
    Ok(Resolved { id, effect, definition, fact, standing, call })
}

/// What the operator has settled for a tool is put into its call before anything is decided.
fn settled(hub: &Hub, id: &ItemId, effect: Effect, call: Call) -> Result<Call, CallError> {
    let overrides = &hub.catalog.overrides;
    let is_settled = call.target.kind == Kind::Tool && overrides.settles(id);
    // Of a tool that the caller may not know of nothing is told.
    if !is_settled || !hub.could_permit(id, Kind::Tool, effect, &call.caller) {
        return Ok(call);
    }
    let params = overrides.settle(id, call.params)?;
    Ok(Call { params, ..call })
}

/// An item, with what its server says of it, what is known of it, and how that stands to what was
/// approved.
type Found = (ItemId, Json, Option<Arc<Fact>>, Standing);

/// The item that is meant, where nothing has to be waited for to know it.
fn at_once(hub: &Hub, call: &Call, first: Option<&ItemId>) -> Option<Found> {
    let (id, kind) = (first?, call.target.kind);
    let (backend, listing) = (within_reach(hub, call, id)?, listing_of(kind)?);
    let (items, odd) = hub.judged_at_once(backend, listing)?;
    let (id, definition, fact) = offered(hub, kind, id, &items)?;
    match Standing::of(&odd, &id.item) {
        known @ (Standing::Approved | Standing::Unexpected) => {
            Some((id, definition, Some(fact), known))
        }
        // Looked at again, which may take a while.
        Standing::New | Standing::Changed | Standing::Lost => None,
    }
}

/// The item that the name was given to, or that it spells, or that is offered by that name.
async fn look_for(hub: &Hub, call: &Call, first: Option<ItemId>) -> Result<Found, CallError> {
    let tried = first.clone();
    let others = std::iter::once_with(|| hub.ids_of(&call.target)).flatten();
    let others = others.filter(|id| Some(id) != tried.as_ref());
    for id in first.into_iter().chain(others) {
        let Some(backend) = within_reach(hub, call, &id) else { continue };
        let Some(listing) = listing_of(call.target.kind) else {
            return Ok((id, Json::empty_object(), None, Standing::Approved));
        };
        let (items, odd) = hub.judged(backend, listing, Freshness::Current).await?;
        if let Some((id, definition, fact)) = offered(hub, call.target.kind, &id, &items) {
            let standing = hub.standing(&id, (&items, &odd)).await;
            return Ok((id, definition, Some(fact), standing));
        }
    }
    match find_public(hub, &call.caller, &call.target).await? {
        Some((id, definition, standing)) => Ok((id, definition, None, standing)),
        None => Err(unknown(hub, call).await),
    }
}

/// The server of an item. For whoever can have nothing of a server, nothing is called as its items
/// are.
fn within_reach<'a>(hub: &'a Hub, call: &Call, id: &ItemId) -> Option<&'a Arc<dyn Backend>> {
    let refused = hub.policy.out_of_reach(&call.caller, &id.server);
    hub.servers.get(&id.server).filter(|_| refused.is_none())
}

/// The list that an item must be on. A resource need not be listed: templates make more of them than
/// any list holds.
fn listing_of(kind: Kind) -> Option<Listing> {
    match kind {
        Kind::Tool => Some(Listing::Tools),
        Kind::Prompt => Some(Listing::Prompts),
        Kind::Resource => None,
    }
}

/// An item of these, by its own name, with what its server says of it and what is known of it.
fn offered(
    hub: &Hub,
    kind: Kind,
    id: &ItemId,
    items: &Arc<[Item]>,
) -> Option<(ItemId, Json, Arc<Fact>)> {
    let facts = &hub.catalog.facts;
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

/// The caller's spelling makes way for the name that the server knows.
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

/// Nobody of that name; perhaps it is misspelt.
async fn unknown(hub: &Hub, call: &Call) -> CallError {
    let (kind, typed) = (call.target.kind, call.target.name.as_str());
    let Some(id) = call.target.id().or_else(|| hub.id_of(typed)) else {
        let nearest = with_near_server(hub, typed);
        return CallError::Unknown { kind, name: typed.to_owned(), nearest };
    };
    let listing = if kind == Kind::Prompt { Listing::Prompts } else { Listing::Tools };
    let items = match hub.servers.get(&id.server) {
        // From memory: it was asked for just now.
        Some(backend) => backend.list(listing).await.unwrap_or_default(),
        None => Arc::default(),
    };
    // A hint must not tell of what the caller is not shown.
    let shown = |item: &&Item| {
        let near = ItemId { server: id.server.clone(), item: item.name.clone() };
        let effect = hub.effect_of(&near, kind, &item.definition);
        hub.could_permit(&near, kind, effect, &call.caller)
            && (kind != Kind::Tool || hub.is_usable(item))
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

/// The name with the names of servers that are like the one in it.
fn with_near_server(hub: &Hub, name: &str) -> Vec<String> {
    let split = ["__", ":", "."].iter().find_map(|separator| name.split_once(separator));
    let Some((server, item)) = split else { return Vec::new() };
    let near = nearest(server, hub.servers.keys().map(ToString::to_string));
    near.into_iter().map(|near| format!("{near}{SEPARATOR}{item}")).collect()
}

/// The names most like `wanted`, best first.
pub(crate) fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = names
        .map(|name| (strsim::jaro_winkler(wanted, &name), name))
        .filter(|(score, _)| *score >= LIKENESS)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(MAX_NEAREST).map(|(_, name)| name).collect()
}
