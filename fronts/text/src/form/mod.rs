//! Answers the questions of servers: by asking a person, from defaults, from a file.
//!
//! Read in this order: `field` is one question of a form, `rule` checks its answer, `ask` asks
//! a person the questions, `page` asks a person to visit an address, and `prompt` is the
//! terminal.
//!
//! **Invariant:** every question shows which server asks, in a place that text from the server
//! cannot reach.

mod field;
mod rule;
mod ask;
mod page;
mod prompt;
#[cfg(test)]
mod tests;

use capstan_wire::{Json, compose, object};

pub use self::ask::ask;
pub use self::prompt::{Closed, Prompter, Terminal};

use self::field::Field;
use crate::clean::one_line;

/// Maximum length of a field's name in a message.
const MAX_NAME: usize = 60;

/// The way in which questions of servers are answered.
#[derive(Clone, Debug)]
pub enum Elicit {
    /// Ask a person.
    Ask,
    /// Use the defaults of the form, if they suffice.
    Defaults,
    /// Always decline.
    Decline,
    /// Use these values.
    File(Json),
}

/// The reason why a form cannot be filled in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The schema does not describe a form.
    #[error("the server's form has no fields that can be read")]
    NotAForm,
    /// A required field has a kind that forms do not support.
    #[error("the field `{name}` must be answered and is of an unknown kind")]
    Unsupported {
        /// The field.
        name: String,
    },
    /// The values are not an object.
    #[error("the values are not a JSON object")]
    NotObject,
    /// The form asks for none of the values.
    #[error("the form asks for none of the values that are given")]
    NothingFits,
    /// A required field has no value.
    #[error("the field `{name}` must be answered")]
    Missing {
        /// The field.
        name: String,
    },
    /// A value breaks a rule of its field.
    #[error("the value of `{name}` {reason}")]
    Invalid {
        /// The field.
        name: String,
        /// The reason, as the end of a sentence.
        reason: String,
    },
}

/// The answer from the form's defaults; `None` if a required field has no default.
pub fn fill_defaults(schema: &Json) -> Option<Json> {
    let mut answer = Answer::default();
    for field in field::read(schema).ok()? {
        match &field.default {
            Some(value) => answer.put(&field, value.clone()),
            None if field.required => return None,
            None => {}
        }
    }
    Some(answer.into_json())
}

/// The answer from a file's values; missing values take their defaults.
///
/// Values that the form does not ask for are never sent, so that one file can answer several
/// questions.
pub fn from_file(schema: &Json, values: &Json) -> Result<Json, FormError> {
    let fields = field::read(schema)?;
    let given = object::members(values).map_err(|_| FormError::NotObject)?;
    let mut answer = Answer::default();
    let mut used = 0;
    for field in &fields {
        let value = given.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value);
        if let Some(value) = value {
            used += 1;
            let invalid = |reason| FormError::Invalid { name: shown(&field.name), reason };
            field.kind.check(value).map_err(invalid)?;
        }
        match value.or(field.default.as_ref()) {
            Some(value) => answer.put(field, value.clone()),
            None if field.required => {
                return Err(FormError::Missing { name: shown(&field.name) });
            }
            None => {}
        }
    }
    if used == 0 && !given.is_empty() && !fields.is_empty() {
        return Err(FormError::NothingFits);
    }
    Ok(answer.into_json())
}

/// The values of a form, in the form's order.
#[derive(Default)]
struct Answer(Vec<(String, Json)>);

impl Answer {
    fn put(&mut self, field: &Field, value: Json) {
        self.0.push((field.name.clone(), value));
    }

    fn into_json(self) -> Json {
        let members: Vec<(&str, &Json)> = self.0.iter().map(|(k, v)| (k.as_str(), v)).collect();
        compose::object(&members)
    }
}

/// Shortens a name that a server chose, for a message.
fn shown(name: &str) -> String {
    one_line(name, MAX_NAME)
}
