//! A tool as clients and models see it, and the validation of its arguments.

use capstan_model::{CallError, Effect, ItemId};
use capstan_wire::{Json, object};

use super::InputSchema;

/// Bytes of JSON that make about one token of a language model; an estimate, never a limit.
const BYTES_PER_TOKEN: usize = 4;

/// A tool of one server, with the operator's overrides applied.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolView {
    /// Its server, and the server's own name for it.
    pub id: ItemId,
    /// Its shown name: the own name, unless the operator has chosen another.
    pub name: String,
    /// The description from its definition; empty if there is none.
    pub description: String,
    /// Its effect: read, write or unknown.
    pub effect: Effect,
    /// Estimated number of tokens that its definition costs a model.
    pub tokens: usize,
    /// The whole definition, as the server wrote it or the operator changed it.
    pub definition: Json,
}

// === impl ToolView ===

impl ToolView {
    /// Creates a view from a definition.
    pub(super) fn new(id: ItemId, name: String, effect: Effect, definition: &Json) -> Self {
        let definition = definition.clone();
        Self {
            effect,
            description: object::get_string(&definition, "description").unwrap_or_default(),
            tokens: tokens(&definition),
            id,
            name,
            definition,
        }
    }

    /// Returns the id with the shown name in place of the own name.
    pub fn shown_id(&self) -> ItemId {
        ItemId { server: self.id.server.clone(), item: self.name.clone() }
    }

    /// Returns the schema of its arguments; an empty schema if the definition has none.
    pub fn input_schema(&self) -> Json {
        input_schema(&self.definition)
    }

    /// Validates arguments against the input schema.
    ///
    /// # Errors
    /// Fails if the arguments do not fit the schema, or if the schema cannot be used.
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

/// Estimates how many tokens a definition costs a model.
pub(crate) fn tokens(definition: &Json) -> usize {
    definition.len().div_ceil(BYTES_PER_TOKEN)
}

/// Returns the schema of a tool's arguments. A missing schema allows everything.
pub(super) fn input_schema(definition: &Json) -> Json {
    object::get(definition, "inputSchema").unwrap_or_else(Json::empty_object)
}
