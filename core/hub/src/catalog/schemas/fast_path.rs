//! Fast path that recognises sound schemas and fitting values without the JSON Schema library.
//!
//! Nearly all schemas and values are recognised. Without the fast path, a schema is validated
//! against the JSON Schema meta-schema, and compiling that takes longer than everything else in a
//! call from the command line. The library is used only for what is not recognised here.
//!
//! **Invariant:** a positive result is certain; everything else is left to the full library.

use std::collections::HashSet;
use std::fmt;

use capstan_wire::Json;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Most objects and lists in a schema that is recognised from its text alone, and most schemas in
/// one list of it.
///
/// A schema with so few can neither be nested too deeply nor apply too many schemas to one value.
const FEW: usize = 60;

/// A schema in which every member is recognised, by its position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schema {
    /// The schema of a tool's arguments, which must describe an object.
    OfArguments,
    /// A complete schema, which may name its draft.
    Whole,
    /// A schema within another one, whose draft applies.
    Part,
}

/// Schemas within a schema.
#[derive(Clone, Copy)]
enum Parts {
    /// Schemas by name.
    Named,
    /// A list of at least one schema.
    Listed,
}

/// A value that is not a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Text,
    /// Anything but a string.
    NoText,
    List,
    Any,
}

/// A member name in a plain value; deserializes to true if it starts with `$`, like references.
struct Key;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Keyword {
    #[serde(rename = "$schema")]
    Draft,
    Type,
    Title,
    Description,
    Format,
    Default,
    Const,
    Enum,
    Examples,
    Minimum,
    Maximum,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    Required,
    Properties,
    Items,
    AdditionalProperties,
    AnyOf,
    OneOf,
    AllOf,
}

/// The drafts in which the recognised keywords have the same meaning.
#[derive(Deserialize)]
enum Draft {
    #[serde(
        rename = "https://json-schema.org/draft/2020-12/schema",
        alias = "https://json-schema.org/draft/2019-09/schema",
        alias = "http://json-schema.org/draft-07/schema#",
        alias = "http://json-schema.org/draft-07/schema"
    )]
    Known,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Type {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    Null,
}

/// True if this is certainly a schema. Unrecognised schemas give false.
pub(super) fn is_sound(schema: &Value) -> bool {
    Schema::Whole.deserialize(schema).is_ok()
}

/// True if this certainly is a usable schema of a tool's arguments.
///
/// It takes one pass over the text, because every tool of every list is checked.
pub(super) fn describes_arguments(schema: &Json) -> bool {
    let text = schema.as_bytes();
    text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= FEW
        && Schema::OfArguments.deserialize(&mut serde_json::Deserializer::from_slice(text)).is_ok()
}

// === impl Schema ===

impl<'de> DeserializeSeed<'de> for Schema {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Schema {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain schema")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        if self == Self::OfArguments { Err(E::custom("no object")) } else { Ok(()) }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(keyword) = map.next_key()? {
            match keyword {
                Keyword::Draft if self == Self::Part => return Err(A::Error::custom("a draft")),
                Keyword::Draft => {
                    map.next_value::<Draft>()?;
                }
                Keyword::Type => {
                    if map.next_value::<Type>()? != Type::Object && self == Self::OfArguments {
                        return Err(A::Error::custom("no object"));
                    }
                }
                Keyword::Title | Keyword::Description | Keyword::Format => {
                    map.next_value_seed(Plain::Text)?;
                }
                Keyword::Default | Keyword::Const => map.next_value_seed(Plain::Any)?,
                Keyword::Enum | Keyword::Examples => map.next_value_seed(Plain::List)?,
                Keyword::Minimum | Keyword::Maximum => {
                    map.next_value::<Number>()?;
                }
                Keyword::MinLength | Keyword::MaxLength | Keyword::MinItems | Keyword::MaxItems => {
                    map.next_value::<u64>()?;
                }
                Keyword::Required => {
                    let (names, mut known) = (map.next_value::<Vec<String>>()?, HashSet::new());
                    if !names.iter().all(|name| known.insert(name)) {
                        return Err(A::Error::custom("a name twice"));
                    }
                }
                Keyword::Properties => map.next_value_seed(Parts::Named)?,
                Keyword::Items | Keyword::AdditionalProperties => {
                    map.next_value_seed(Self::Part)?;
                }
                Keyword::AnyOf | Keyword::OneOf | Keyword::AllOf => {
                    map.next_value_seed(Parts::Listed)?;
                }
            }
        }
        Ok(())
    }
}

// === impl Parts ===

impl<'de> DeserializeSeed<'de> for Parts {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self {
            Self::Named => from.deserialize_map(self),
            Self::Listed => from.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Parts {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain schemas")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry_seed(Plain::Text, Schema::Part)?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        list.next_element_seed(Schema::Part)?.ok_or_else(|| A::Error::custom("none"))?;
        for _ in 1..FEW {
            if list.next_element_seed(Schema::Part)?.is_none() {
                return Ok(());
            }
        }
        match list.next_element_seed(Schema::Part)? {
            None => Ok(()),
            Some(()) => Err(A::Error::custom("many schemas")),
        }
    }
}

// === impl Plain ===

impl Plain {
    fn must_be<E: Error>(self, one_of: &[Self]) -> Result<(), E> {
        if one_of.contains(&self) { Ok(()) } else { Err(E::custom("another type")) }
    }
}

impl<'de> DeserializeSeed<'de> for Plain {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.must_be(&[Self::Any, Self::NoText])
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.must_be(&[Self::Any, Self::NoText])
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.must_be(&[Self::Any, Self::NoText])
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.must_be(&[Self::Any, Self::NoText])
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.must_be(&[Self::Any, Self::NoText])
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.must_be(&[Self::Any, Self::Text])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Self::Any)?.is_some() {}
        self.must_be(&[Self::Any, Self::NoText, Self::List])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(refers) = map.next_key_seed(Key)? {
            // References are followed anywhere in a document, so a `$` member must not be a string.
            map.next_value_seed(if refers { Self::NoText } else { Self::Any })?;
        }
        self.must_be(&[Self::Any, Self::NoText])
    }
}

// === impl Key ===

impl<'de> DeserializeSeed<'de> for Key {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name.starts_with('$'))
    }
}

/// True if a value certainly fits a sound schema.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let Value::Object(members) = schema else { return *schema == Value::Bool(true) };
    members.iter().all(|(name, rule)| match name.as_str() {
        "type" => rule.as_str().is_some_and(|kind| is_of(kind, value)),
        "enum" => rule.as_array().is_some_and(|all| all.contains(value)),
        "const" => rule == value,
        "minimum" => whole(value).zip(whole(rule)).is_some_and(|(value, least)| value >= least),
        "maximum" => whole(value).zip(whole(rule)).is_some_and(|(value, most)| value <= most),
        "minLength" => {
            characters(value).zip(rule.as_u64()).is_some_and(|(has, least)| has >= least)
        }
        "maxLength" => characters(value).zip(rule.as_u64()).is_some_and(|(has, most)| has <= most),
        "minItems" => items(value).zip(rule.as_u64()).is_some_and(|(has, least)| has >= least),
        "maxItems" => items(value).zip(rule.as_u64()).is_some_and(|(has, most)| has <= most),
        "required" => {
            let has = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
            rule.as_array().is_some_and(|names| names.iter().all(has))
        }
        "properties" => value.as_object().is_some_and(|members| {
            members
                .iter()
                .all(|(name, member)| rule.get(name).is_none_or(|rule| fits(rule, member)))
        }),
        "additionalProperties" => value.as_object().is_some_and(|all| {
            let named = |name| members.get("properties").and_then(|all| all.get(name)).is_some();
            all.iter().all(|(name, member)| named(name) || fits(rule, member))
        }),
        "items" => value.as_array().is_some_and(|all| all.iter().all(|item| fits(rule, item))),
        "anyOf" => rule.as_array().is_some_and(|all| all.iter().any(|one| fits(one, value))),
        "allOf" => rule.as_array().is_some_and(|all| all.iter().all(|one| fits(one, value))),
        // These keywords do not restrict values. Formats are not validated.
        "$schema" | "title" | "description" | "format" | "default" | "examples" => true,
        _ => false,
    })
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        // Some numbers that are written with a point are integers too; they are left to the
        // library.
        "integer" => whole(value).is_some(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64()
}

fn characters(value: &Value) -> Option<u64> {
    u64::try_from(value.as_str()?.chars().count()).ok()
}

fn items(value: &Value) -> Option<u64> {
    u64::try_from(value.as_array()?.len()).ok()
}

#[cfg(test)]
#[path = "fast_path_tests.rs"]
mod tests;
