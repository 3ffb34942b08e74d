//! Step 1: which item of which server is meant?

use capstan_model::name::SEPARATOR;
use capstan_model::{CallError, Effect, ItemId, Kind};
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, compose, object};

use super::record::Record;
use crate::Call;
use crate::hub::Hub;
use crate::ports::{Item, Listing};

/// How many names a typo is answered with.
const MAX_NEAREST: usize = 3;

/// How alike two names must be for one to be offered for the other.
const LIKENESS: f64 = 0.7;

/// A call whose item is known to exist; its params name the item as the server does.
pub(super) struct Resolved {
    pub(super) id: ItemId,
    pub(super) effect: Effect,
    /// What its server says of it.
    pub(super) definition: Json,
    pub(super) call: Call,
}

pub(super) async fn resolve(
    hub: &Hub,
    call: Call,
    record: &mut Record<'_>,
) -> Result<Resolved, CallError> {
    if let Some(id) = hub.id_of(&call.target.name) {
        record.meant(&id);
    }
    let resolved = find(hub, call).await?;
    record.resolved(resolved.effect);
    Ok(resolved)
}

/// Looks the item up; connects to its server, and to no other.
pub(super) async fn find(hub: &Hub, call: Call) -> Result<Resolved, CallError> {
    let name = &call.target.name;
    // Before anything is decided: what the rules read must be what the server reads. For the same
    // reason the name is put in place here, and the params are never touched again.
    if let Err(problem) = refuse_duplicates(&call.params) {
        let problem = problem.to_string();
        return Err(CallError::InvalidArguments { item: name.clone(), problem });
    }
    let Some(id) = hub.id_of(name) else { return Err(unknown(hub, &call)) };
    let Some(backend) = hub.backends.get(&id.server) else { return Err(unknown(hub, &call)) };
    let call = with_own_name(call, &id)?;
    let definition = match call.target.kind {
        Kind::Tool => lookup(hub, &call, &id, &backend.list(Listing::Tools).await?)?,
        Kind::Prompt => lookup(hub, &call, &id, &backend.list(Listing::Prompts).await?)?,
        // A resource need not be listed: templates make more of them than any list holds.
        Kind::Resource => Json::empty_object(),
    };
    let effect = hub.policy.effect_of(&id, call.target.kind, &definition);
    Ok(Resolved { id, effect, definition, call })
}

/// The caller's spelling makes way for the name that the server knows.
fn with_own_name(call: Call, id: &ItemId) -> Result<Call, CallError> {
    let name = compose::string(&id.item);
    let params = object::with_member(&call.params, call.target.kind.name_key(), &name);
    let params = params.map_err(|_| {
        let problem = "the request's params are not an object".to_owned();
        CallError::InvalidArguments { item: id.to_string(), problem }
    })?;
    Ok(Call { params, ..call })
}

fn lookup(hub: &Hub, call: &Call, id: &ItemId, items: &[Item]) -> Result<Json, CallError> {
    if let Some(item) = items.iter().find(|item| item.name == id.item) {
        return Ok(item.definition.clone());
    }
    let kind = call.target.kind;
    // A hint must not tell of what the caller is not shown.
    let shown = |item: &&Item| {
        let near = ItemId { server: id.server.clone(), item: item.name.clone() };
        let effect = hub.policy.effect_of(&near, kind, &item.definition);
        hub.could_permit(&near, kind, effect, call.caller.front)
    };
    let names = items.iter().filter(shown).map(|item| item.name.clone());
    let near = nearest(&id.item, names).into_iter();
    let nearest = near.map(|near| format!("{}{SEPARATOR}{near}", id.server)).collect();
    Err(CallError::Unknown { kind, name: id.to_string(), nearest })
}

/// Nobody of that name; perhaps the server's name is misspelt.
fn unknown(hub: &Hub, call: &Call) -> CallError {
    let name = call.target.name.clone();
    let split = ["__", ":", "."].iter().find_map(|separator| name.split_once(separator));
    let near = match split {
        Some((server, item)) => {
            let names = hub.backends.keys().map(ToString::to_string);
            nearest(server, names)
                .into_iter()
                .map(|near| format!("{near}{SEPARATOR}{item}"))
                .collect()
        }
        None => Vec::new(),
    };
    CallError::Unknown { kind: call.target.kind, name, nearest: near }
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
