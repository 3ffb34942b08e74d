//! A tool as it is shown.

use capstan_model::{Effect, ItemId, Kind, ServerName};
use capstan_policy::Policy;
use capstan_wire::{Json, object};

use crate::ports::Item;

/// Bytes of JSON that make about one token of a language model; an estimate, never a limit.
const BYTES_PER_TOKEN: usize = 4;

/// A tool of some server.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolView {
    /// Its server and its own name.
    pub id: ItemId,
    /// What its server says it does.
    pub description: String,
    /// What it does to the world.
    pub effect: Effect,
    /// About how many tokens its definition costs a model.
    pub tokens: usize,
    /// The whole definition, as the server wrote it.
    pub definition: Json,
}

// === impl ToolView ===

impl ToolView {
    /// Looks at one line of a server's list.
    pub fn new(policy: &Policy, server: &ServerName, item: &Item) -> Self {
        let id = ItemId { server: server.clone(), item: item.name.clone() };
        let definition = item.definition.clone();
        Self {
            effect: policy.effect_of(&id, Kind::Tool, &definition),
            description: object::get_string(&definition, "description").unwrap_or_default(),
            tokens: definition.len().div_ceil(BYTES_PER_TOKEN),
            id,
            definition,
        }
    }

    /// The schema of its arguments, as the server wrote it.
    pub fn input_schema(&self) -> Json {
        object::get(&self.definition, "inputSchema").unwrap_or_else(Json::empty_object)
    }
}
