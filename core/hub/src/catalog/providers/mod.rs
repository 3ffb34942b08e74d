//! Model API providers, and the tool definitions that each of them accepts.

mod gemini;

use capstan_wire::{Json, object};

use super::names::Alphabet;

/// Longest schema that is converted, in bytes.
pub(super) const MAX_SCHEMA: usize = 256 * 1024;

/// Deepest schema that is converted.
pub(super) const MAX_DEPTH: usize = 32;

/// Members that `OpenAI` and Anthropic refuse at the root of a schema.
const NOT_AT_ROOT: [&str; 5] = ["anyOf", "oneOf", "allOf", "not", "enum"];

/// A model API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Gemini and Vertex AI; accept a subset of OpenAPI schemas.
    Gemini,
    /// `OpenAI`, and providers with the same interface.
    OpenAi,
    /// Anthropic.
    Anthropic,
}

/// Why a schema cannot be converted for a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The schema is too long, as written or with its references expanded.
    #[error("its schema has more than {MAX_SCHEMA} bytes with its references written out")]
    TooLarge,
    /// The schema is nested too deeply.
    #[error("its schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The schema does not describe an object, as arguments must be.
    #[error("its schema is not that of an object")]
    NotObject,
    /// The schema has a member that the provider refuses at the root.
    #[error("its schema has `{0}` at its root")]
    Root(&'static str),
    /// A reference points to nothing, or out of the schema.
    #[error("its schema refers to `{0}`, which is not in it")]
    Reference(String),
    /// A member has an unexpected value.
    #[error("`{0}` in its schema is not what it should be")]
    Odd(String),
}

// === impl Provider ===

impl Provider {
    /// Returns the alphabet that the provider allows in tool names.
    pub fn alphabet(self) -> Alphabet {
        match self {
            Self::Gemini => Alphabet::LetterFirst,
            Self::OpenAi | Self::Anthropic => Alphabet::NoDots,
        }
    }

    /// Converts the schema of a tool's arguments into this provider's format.
    ///
    /// The result may allow more than the original. Arguments are validated against the original.
    ///
    /// # Errors
    /// Fails if the schema cannot be converted into one that the provider accepts.
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

/// Returns the schema unchanged if its root is a plain object schema.
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
