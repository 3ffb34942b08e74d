//! What is known of the items of a list, looked up by name and not worked out anew for every call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use capstan_model::{Effect, Front, ItemId, Kind, Ruling, ServerName};
use capstan_policy::Policy;
use capstan_wire::Json;

use super::effects::Effects;
use super::input::BadSchema;
use crate::ports::Item;

/// The facts of every list that a call was looked up in.
#[derive(Debug, Default)]
pub struct Facts {
    lists: Mutex<HashMap<(ServerName, Kind), Arc<Index>>>,
    effects: Effects,
}

/// One list, by name.
#[derive(Debug)]
pub(crate) struct Index {
    items: Arc<[Item]>,
    /// Where each item stands, and what is known of it since it was first asked for.
    by_name: HashMap<String, (usize, OnceLock<Arc<Fact>>)>,
}

/// What is known of one item.
#[derive(Debug)]
pub(crate) struct Fact {
    /// What it does.
    pub(crate) effect: Effect,
    /// Why its input schema cannot be used, found out when it is first called.
    schema: OnceLock<Option<BadSchema>>,
    /// What the rules say of it at each front, where that does not depend on the call.
    rulings: Option<[OnceLock<Ruling>; 3]>,
}

// === impl Facts ===

impl Facts {
    /// The list by name. As long as it is the same list, nothing is worked out twice.
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

    /// The item of that name in a list: its definition, and what is known of it.
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
            Arc::new(Fact { effect, schema: OnceLock::new(), rulings })
        });
        Some((item.definition.clone(), Arc::clone(fact)))
    }

    /// What an item does.
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
            // Of two items of one name the first is meant, as everywhere.
            by_name.entry(item.name.clone()).or_insert_with(|| (place, OnceLock::new()));
        }
        Self { items: Arc::clone(items), by_name }
    }
}

// === impl Fact ===

impl Fact {
    /// Why its input schema cannot be used; `judge` is asked once.
    pub(crate) fn bad_schema(
        &self,
        judge: impl FnOnce() -> Option<BadSchema>,
    ) -> Option<&BadSchema> {
        self.schema.get_or_init(judge).as_ref()
    }

    /// What the rules say at this front; `decide` is asked only for what is not known yet.
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
