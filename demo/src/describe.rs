//! How tools describe themselves: names, schemas and annotations.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::fault::Fault;

/// One tool as `tools/list` shows it.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
    pub(crate) effect: Effect,
}

/// The effect of a tool on the world around it.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    Reads,
    Adds,
    Deletes,
}

/// Something a tool made known beside its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    ResourcesChanged,
}

/// The answer of a tool.
pub(crate) struct Answer {
    pub(crate) content: Vec<Value>,
    pub(crate) structured: Option<Value>,
    pub(crate) event: Option<Event>,
}

/// The members of an object schema.
pub(crate) struct Members(Vec<(&'static str, Value)>);

// === impl Tool ===

impl Tool {
    pub(crate) fn into_value(self) -> Value {
        let mut tool = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input,
            "annotations": self.effect.annotations(),
        });
        if let (Some(object), Some(output)) = (tool.as_object_mut(), self.output) {
            object.insert("outputSchema".to_owned(), output);
        }
        tool
    }
}

// === impl Effect ===

impl Effect {
    fn annotations(self) -> Value {
        match self {
            Self::Reads => json!({ "readOnlyHint": true, "openWorldHint": false }),
            Self::Adds => json!({
                "readOnlyHint": false, "destructiveHint": false,
                "idempotentHint": false, "openWorldHint": false,
            }),
            Self::Deletes => json!({
                "readOnlyHint": false, "destructiveHint": true,
                "idempotentHint": false, "openWorldHint": false,
            }),
        }
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { content: vec![text_block(text)], structured: None, event: None }
    }

    /// The value itself, and the same as text for clients that read only text.
    pub(crate) fn structured(value: Value) -> Self {
        Self { content: vec![text_block(value.to_string())], structured: Some(value), event: None }
    }

    pub(crate) fn with(mut self, event: Event) -> Self {
        self.event = Some(event);
        self
    }

    /// The result of `tools/call`.
    pub(crate) fn into_result(self) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert("content".to_owned(), Value::Array(self.content));
        if let Some(structured) = self.structured {
            result.insert("structuredContent".to_owned(), structured);
        }
        result.insert("isError".to_owned(), Value::Bool(false));
        result
    }
}

// === impl Members ===

impl Members {
    pub(crate) fn new<const N: usize>(members: [(&'static str, Value); N]) -> Self {
        Self(members.into())
    }

    /// An object that has exactly these members, of which `required` must be there.
    pub(crate) fn requiring(self, required: &[&str]) -> Value {
        let properties: Map<String, Value> =
            self.0.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

/// A block of text in an answer.
pub(crate) fn text_block(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// The schema of a text.
pub(crate) fn string(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// The schema of a whole number that is at least `minimum`.
pub(crate) fn integer(description: &str, minimum: u64) -> Value {
    json!({ "type": "integer", "minimum": minimum, "description": description })
}

/// The schema of a yes or no.
pub(crate) fn boolean(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// The schema of a list.
pub(crate) fn array(description: &str, items: &Value) -> Value {
    json!({ "type": "array", "description": description, "items": items })
}

/// Reads the arguments of a tool; what does not fit its schema is refused in words for a model.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, arguments: Value) -> Result<T, Fault> {
    serde_json::from_value(arguments)
        .map_err(|problem| Fault::refused(format!("invalid arguments for `{tool}`: {problem}")))
}
