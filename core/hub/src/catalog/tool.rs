//! A tool as it is shown.

use capstan_model::{CallError, Effect, ItemId};
use capstan_wire::{Json, object};

use super::InputSchema;

/// Bytes of JSON that make about one token of a language model; an estimate, never a limit.
const BYTES_PER_TOKEN: usize = 4;

/// A tool of some server.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolView {
    /// Its server and its own name.
    pub id: ItemId,
    /// What it is called, which is its own name unless the operator has chosen another.
    pub name: String,
    /// What it is said to do.
    pub description: String,
    /// What it does to the world.
    pub effect: Effect,
    /// About how many tokens its definition costs a model.
    pub tokens: usize,
    /// The whole definition, as the server wrote it or the operator changed it.
    pub definition: Json,
}

// === impl ToolView ===

impl ToolView {
    /// A tool that does this.
    pub(super) fn new(id: ItemId, name: String, effect: Effect, definition: &Json) -> Self {
        let definition = definition.clone();
        Self {
            effect,
            description: object::get_string(&definition, "description").unwrap_or_default(),
            tokens: definition.len().div_ceil(BYTES_PER_TOKEN),
            id,
            name,
            definition,
        }
    }

    /// Its id by the name that it is called.
    pub fn shown_id(&self) -> ItemId {
        ItemId { server: self.id.server.clone(), item: self.name.clone() }
    }

    /// The schema of its arguments, as the server wrote it.
    pub fn input_schema(&self) -> Json {
        input_schema(&self.definition)
    }

    /// Validates arguments against that schema.
    ///
    /// # Errors
    /// What is wrong with them, or with the schema.
    pub fn check(&self, arguments: &Json) -> Result<(), CallError> {
        check(&self.id, &self.definition, arguments)
    }
}

/// Validates arguments against the schema of their tool.
pub(crate) fn check(id: &ItemId, definition: &Json, arguments: &Json) -> Result<(), CallError> {
    let item = || id.to_string();
    let schema = InputSchema::compile(&input_schema(definition))
        .map_err(|bad| CallError::Hidden { item: item(), reason: bad.to_string() })?;
    schema
        .check(arguments)
        .map_err(|misfit| CallError::InvalidArguments { item: item(), problem: misfit.to_string() })
}

/// The schema of a tool's arguments; one that is not given allows everything.
pub(super) fn input_schema(definition: &Json) -> Json {
    object::get(definition, "inputSchema").unwrap_or_else(Json::empty_object)
}
