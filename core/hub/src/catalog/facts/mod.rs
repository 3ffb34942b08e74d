//! Caches facts about listed items by name, so that a call does not compute them again.

mod effects;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use capstan_model::{Effect, Front, ItemId, Kind, Ruling, ServerName};
use capstan_policy::{Policy, Tags};
use capstan_wire::Json;
use rustc_hash::FxHashMap;

use effects::Effects;

use super::argument_headers::{self, ArgumentHeader};
use super::schemas::BadSchema;
use crate::ports::Item;

/// Cached facts of every list in which a call was looked up. They depend on the rules, so each hub
/// has its own.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    lists: Mutex<FxHashMap<(ServerName, Kind), Arc<Index>>>,
    effects: Effects,
}

/// An index of one list by item name.
#[derive(Debug)]
pub(crate) struct Index {
    items: Arc<[Item]>,
    /// The position of each item, and its facts once it was looked up for the first time.
    by_name: HashMap<String, (usize, OnceLock<Arc<Fact>>)>,
}

/// Cached facts about one item.
#[derive(Debug)]
pub(crate) struct Fact {
    /// Its effect: read, write or unknown.
    pub(crate) effect: Effect,
    /// Why its input schema cannot be used, if so; computed at its first call.
    schema: OnceLock<Option<BadSchema>>,
    /// Why its definition is blocked, if so; computed at its first call.
    blocked: OnceLock<Option<Arc<str>>>,
    /// Its tags, for rules about flows; read at its first call under such a rule.
    tags: OnceLock<Tags>,
    /// The arguments that a request over HTTP repeats in headers; read at its first such call.
    headers: OnceLock<Box<[ArgumentHeader]>>,
    /// The ruling at each front; `None` if rulings can depend on the call.
    rulings: Option<[OnceLock<Ruling>; 3]>,
}

// === impl Facts ===

impl Facts {
    /// Returns the index of a list. It is rebuilt only when the server has another list.
    pub(crate) fn of(&self, server: &ServerName, kind: Kind, items: &Arc<[Item]>) -> Arc<Index> {
        let mut known = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (server.clone(), kind);
        if let Some(index) = known.get(&key).filter(|index| Arc::ptr_eq(&index.items, items)) {
            return Arc::clone(index);
        }
        let index = Arc::new(Index::new(items));
        known.insert(key, Arc::clone(&index));
        drop(known);
        index
    }

    /// Looks up an item by name in an index: its definition and its facts.
    pub(crate) fn get(
        &self,
        policy: &Policy,
        index: &Index,
        kind: Kind,
        id: &ItemId,
    ) -> Option<(Json, Arc<Fact>)> {
        let (place, fact) = index.by_name.get(&id.item)?;
        let item = index.items.get(*place)?;
        let fact = fact.get_or_init(|| {
            let effect = self.effects.of(policy, id, kind, &item.definition);
            let rulings = policy.is_steady().then(Default::default);
            let (schema, headers, tags) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
            Arc::new(Fact { effect, schema, blocked: OnceLock::new(), tags, headers, rulings })
        });
        Some((item.definition.clone(), Arc::clone(fact)))
    }

    /// Returns the effect of an item.
    pub(crate) fn effect(
        &self,
        policy: &Policy,
        id: &ItemId,
        kind: Kind,
        definition: &Json,
    ) -> Effect {
        self.effects.of(policy, id, kind, definition)
    }
}

// === impl Index ===

impl Index {
    fn new(items: &Arc<[Item]>) -> Self {
        let mut by_name = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            // If two items have the same name, the first one counts, as everywhere.
            by_name.entry(item.name.clone()).or_insert_with(|| (place, OnceLock::new()));
        }
        Self { items: Arc::clone(items), by_name }
    }
}

// === impl Fact ===

impl Fact {
    /// Returns why its input schema cannot be used, if so. `judge` runs only once.
    pub(crate) fn bad_schema(
        &self,
        judge: impl FnOnce() -> Option<BadSchema>,
    ) -> Option<&BadSchema> {
        self.schema.get_or_init(judge).as_ref()
    }

    /// Returns why its definition is blocked, if so. `judge` runs only once.
    pub(crate) fn blocked(&self, judge: impl FnOnce() -> Option<Arc<str>>) -> Option<&Arc<str>> {
        self.blocked.get_or_init(judge).as_ref()
    }

    /// Returns its tags. `judge` runs only once.
    pub(crate) fn tags(&self, judge: impl FnOnce() -> Tags) -> Tags {
        *self.tags.get_or_init(judge)
    }

    /// Returns the arguments that a request over HTTP repeats in headers, by the tool's definition.
    pub(crate) fn headers(&self, definition: &Json) -> &[ArgumentHeader] {
        self.headers.get_or_init(|| argument_headers::read(definition).into())
    }

    /// Returns the ruling at this front. `decide` runs only if no ruling is cached.
    pub(crate) fn ruling(&self, front: Front, decide: impl FnOnce() -> Ruling) -> Ruling {
        let place = match front {
            Front::Cli => 0,
            Front::Terminal => 1,
            Front::Gateway => 2,
        };
        match self.rulings.as_ref().and_then(|rulings| rulings.get(place)) {
            Some(known) => known.get_or_init(decide).clone(),
            None => decide(),
        }
    }
}
