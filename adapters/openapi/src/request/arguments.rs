//! The arguments of a call, as the caller wrote them: numbers keep their digits.

use std::collections::HashMap;

use capstan_wire::{BadJson, Json, object};
use serde_json::Value;

use crate::operation::parameter::{Parameter, Style};

/// The arguments of a call, by name.
#[derive(Debug, Default)]
pub(crate) struct Arguments(HashMap<String, Json>);

// === impl Arguments ===

impl Arguments {
    /// Reads an object.
    ///
    /// # Errors
    /// If it is not an object.
    pub(crate) fn read(json: &Json) -> Result<Self, BadJson> {
        Ok(Self(object::members(json)?.into_iter().collect()))
    }

    /// An argument as the caller wrote it.
    pub(crate) fn written(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// The value of a parameter, as text if its style is JSON; `None` if it is missing or null.
    pub(crate) fn of(&self, parameter: &Parameter) -> Option<Value> {
        let value = self.value(&parameter.argument)?;
        match parameter.style {
            Style::Json => self.written(&parameter.argument).map(|json| json.as_str().into()),
            Style::Simple(_)
            | Style::Label(_)
            | Style::Matrix(_)
            | Style::Repeated
            | Style::Joined(_)
            | Style::Deep => Some(value),
        }
    }

    /// An argument that is present and not null. A number becomes its digits.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        let written = self.0.get(name)?;
        match written.read().ok()? {
            Value::Null => None,
            Value::Number(_) => Some(Value::from(written.as_str())),
            value @ (Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                Some(value)
            }
        }
    }
}
