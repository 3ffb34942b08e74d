//! The types of values in a file: how they are read, written and described.

use std::marker::PhantomData;
use std::time::Duration;

use capstan_model::Secret;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value as Json;

use crate::fields::{Fields, Words};
use crate::show;
use crate::source::Origin;
use crate::units::{show_duration, show_size};

/// The type of a key's value in a file.
pub(crate) trait Form {
    /// The type of the value in the settings.
    type Value: Clone;
    /// The type that describes it in the schema.
    type Schema: JsonSchema;

    /// Reads the value of a key and reports problems with it.
    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Self::Value>;

    /// Returns the value in the syntax of a file; null for a table.
    fn write(value: &Self::Value) -> Json;
}

/// A table whose keys are defined by `keys!`.
pub(crate) trait Table {
    /// The type that describes the keys in the schema.
    type Keys: JsonSchema;
}

/// An enumeration whose values are written as words.
pub(crate) trait OneOf: Copy + PartialEq + 'static {
    /// The words and their values.
    const WORDS: Words<Self>;

    /// The word of the value.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.map(|(word, _)| *word).unwrap_or_default()
    }
}

/// A value with its origin.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    /// The value with secrets masked.
    pub(crate) shown: String,
    pub(crate) origin: Origin,
}

/// The form of a number of bytes with a unit.
pub(crate) struct Size;

/// The form of a duration with a unit, which must not be zero.
pub(crate) struct Time;

/// The form of a time limit, with a warning if it is unusually short or long.
pub(crate) struct Limit;

/// The form of a duration that may be zero.
pub(crate) struct Wait;

/// The form of a secret string.
pub(crate) struct SecretText;
/// The form of a number from 0 to 1.
pub(crate) struct Share;

/// The schema of a [`Share`].
pub(crate) struct ShareSchema;

/// The schema of a [`Size`].
pub(crate) struct SizeSchema;

/// The schema of a duration.
pub(crate) struct DurationSchema;

/// The schema of an enumeration.
pub(crate) struct WordSchema<T>(PhantomData<T>);

// === impl Setting ===

impl<T> Setting<T> {
    /// Reads a key; `None` if it is absent or wrong.
    pub(crate) fn read<F: Form<Value = T>>(
        fields: &mut Fields<'_, '_>,
        key: &'static str,
    ) -> Option<Self> {
        let value = F::read(fields, key);
        let entry = fields.peek(key)?;
        let origin = fields.report().file.origin(&entry.key);
        Some(Self { value: value?, shown: show::leaf(key, &entry.node), origin })
    }
}

// === impl Form ===

/// Implements [`Form`]: a form, its value, its schema, the method of [`Fields`] that reads it, and
/// how it is written.
macro_rules! forms {
    ($($Form:ty: $Value:ty, $Schema:ty, $read:ident, $write:expr;)+) => { $(
        impl Form for $Form {
            type Value = $Value;
            type Schema = $Schema;

            fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<$Value> {
                fields.$read(key)
            }

            fn write(value: &$Value) -> Json {
                let write: fn(&$Value) -> Json = $write;
                write(value)
            }
        }
    )+ };
}

forms! {
    bool: bool, bool, flag, |value| Json::from(*value);
    u32: u32, u32, count, |value| Json::from(*value);
    String: String, String, string, |value| Json::from(value.as_str());
    Vec<String>: Vec<String>, Vec<String>, strings, |value| Json::from(value.as_slice());
    Size: u64, SizeSchema, size, |value| Json::from(show_size(*value));
    Time: Duration, DurationSchema, duration, |value| Json::from(show_duration(*value));
    Limit: Duration, DurationSchema, limit, |value| Json::from(show_duration(*value));
    Share: f64, ShareSchema, share, |value| Json::from(*value);
    Wait: Duration, DurationSchema, wait, |value| Json::from(show_duration(*value));
}

impl Form for SecretText {
    type Value = Secret<String>;
    type Schema = String;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Secret<String>> {
        fields.string(key).map(Secret::new)
    }

    fn write(_: &Secret<String>) -> Json {
        Json::Null
    }
}

impl<T: OneOf> Form for T {
    type Value = T;
    type Schema = WordSchema<T>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<T> {
        fields.word(key, T::WORDS)
    }

    fn write(value: &T) -> Json {
        Json::from(value.word())
    }
}

// === impl JsonSchema ===

impl JsonSchema for SizeSchema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": "size", "examples": ["10MiB", "512KiB"] })
    }
}

impl JsonSchema for ShareSchema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

impl JsonSchema for DurationSchema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": "duration", "examples": ["30s", "2m", "500ms"] })
    }
}

impl<T: OneOf> JsonSchema for WordSchema<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        words.join("_").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
