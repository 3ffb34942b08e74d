//! The arguments of a call, as they were written: a number keeps its digits on the way.

use std::collections::HashMap;

use capstan_wire::{BadJson, Json, object};
use serde_json::Value;

use crate::parameter::{Parameter, Style};

/// What a caller gives.
#[derive(Debug, Default)]
pub(crate) struct Arguments(HashMap<String, Json>);

// === impl Arguments ===

impl Arguments {
    /// Reads an object.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read(json: &Json) -> Result<Self, BadJson> {
        Ok(Self(object::members(json)?.into_iter().collect()))
    }

    /// An argument as it was written.
    pub(crate) fn written(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// What a parameter is given, as text where it is written as JSON; `None` for nothing.
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

    /// An argument that is there and not nothing. A number is its digits.
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
