//! The makers of model APIs, and what each of them takes as the definition of a tool.

use capstan_wire::{Json, object};

use super::gemini;
use super::naming::Alphabet;

/// Longest schema that is made to fit, in bytes.
pub(super) const MAX_SCHEMA: usize = 256 * 1024;

/// Deepest schema that is made to fit.
pub(super) const MAX_DEPTH: usize = 32;

/// Members that a schema must not have at its root, for those who want a plain object there.
const NOT_AT_ROOT: [&str; 5] = ["anyOf", "oneOf", "allOf", "not", "enum"];

/// A model API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Gemini and Vertex AI: a part of OpenAPI's schemas.
    Gemini,
    /// `OpenAI`, and whoever offers the same interface.
    OpenAi,
    /// Anthropic.
    Anthropic,
}

/// Why a schema cannot be made to fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Too much text, or too much once its references are written out.
    #[error("its schema has more than {MAX_SCHEMA} bytes with its references written out")]
    TooLarge,
    /// Schemas within schemas within schemas.
    #[error("its schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Arguments are an object.
    #[error("its schema is not that of an object")]
    NotObject,
    /// A member that the provider refuses at the root.
    #[error("its schema has `{0}` at its root")]
    Root(&'static str),
    /// A reference that leads nowhere, or out of the schema.
    #[error("its schema refers to `{0}`, which is not in it")]
    Reference(String),
    /// A member that is not what it should be.
    #[error("`{0}` in its schema is not what it should be")]
    Odd(String),
}

// === impl Provider ===

impl Provider {
    /// The characters that its names may have.
    pub fn alphabet(self) -> Alphabet {
        match self {
            Self::Gemini => Alphabet::LetterFirst,
            Self::OpenAi | Self::Anthropic => Alphabet::NoDots,
        }
    }

    /// The schema of a tool's arguments as this provider takes it.
    ///
    /// It may allow more than the original does: that is what arguments are validated against.
    ///
    /// # Errors
    /// When nothing useful that it takes can be made of the schema.
    pub fn fit(self, schema: &Json) -> Result<Json, Unfit> {
        if schema.len() > MAX_SCHEMA {
            return Err(Unfit::TooLarge);
        }
        match self {
            Self::Gemini => gemini::fit(schema),
            Self::OpenAi | Self::Anthropic => plain_object(schema),
        }
    }
}

/// The schema as it is, if it says at its root what the members of an object are.
fn plain_object(schema: &Json) -> Result<Json, Unfit> {
    if object::get_string(schema, "type").as_deref() != Some("object") {
        return Err(Unfit::NotObject);
    }
    match NOT_AT_ROOT.into_iter().find(|key| object::get(schema, key).is_some()) {
        Some(key) => Err(Unfit::Root(key)),
        None => Ok(schema.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn schemas_of_plain_objects_stay_byte_for_byte_where_they_are_taken_as_they_are() {
        let schema =
            json(r#"{ "$schema":"x", "type":"object","additionalProperties":false,"n":1.0}"#);
        for provider in [Provider::OpenAi, Provider::Anthropic] {
            assert_eq!(provider.fit(&schema), Ok(schema.clone()));
        }
    }

    #[test]
    fn what_no_provider_takes_is_refused_with_the_reason() {
        let large = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(MAX_SCHEMA));
        for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini] {
            assert_eq!(provider.fit(&json(&large)), Err(Unfit::TooLarge));
            for odd in ["true", "[]", "7", r#"{"type":"string"}"#] {
                assert_eq!(provider.fit(&json(odd)), Err(Unfit::NotObject), "{provider:?} {odd}");
            }
        }
        let choice = json(r#"{"type":"object","anyOf":[{}]}"#);
        assert_eq!(Provider::OpenAi.fit(&choice), Err(Unfit::Root("anyOf")));
    }
}
