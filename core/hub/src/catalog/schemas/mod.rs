//! Validates a tool's arguments against its input schema.
//!
//! Only this module and `mismatch` use the JSON Schema library. A schema comes from a server: its
//! size is bounded before it is compiled, and nothing that it refers to is ever fetched.

mod cost;
mod fast_path;
mod mismatch;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, OnceLock, PoisonError};

use capstan_wire::Json;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use cost::MAX_WEIGHT;
use fast_path::{describes_arguments, fits, is_sound};

/// Longest schema that is used, in bytes.
const MAX_SCHEMA: usize = 256 * 1024;

/// Deepest schema that is used, and deepest arguments that are validated.
const MAX_DEPTH: usize = 64;

/// Most mismatches that an error lists.
const MAX_TOLD: usize = 5;

/// Limit on backtracking when a pattern is matched against one text.
const MAX_BACKTRACKING: usize = 100_000;

/// Largest compiled pattern, in bytes.
const MAX_PATTERN: usize = 1024 * 1024;

/// Most schemas whose check is cached; then the cache is cleared.
const MAX_KNOWN: usize = 1 << 16;

/// An input schema that can be used.
pub struct InputSchema {
    schema: Value,
    /// Compiled on first use if the fast path recognised the schema as sound.
    validator: OnceLock<Validator>,
    /// The names of the required arguments.
    required: Vec<String>,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchema {
    /// The schema is too long.
    #[error("its input schema has more than {MAX_SCHEMA} bytes")]
    TooLarge,
    /// The schema is nested too deeply.
    #[error("its input schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The schema does not describe an object, as arguments must be.
    #[error("its input schema is not that of an object")]
    NotObject,
    /// A reference points to nothing, or out of the schema; nothing is fetched.
    #[error("its input schema refers to `{0}`, which is not in it")]
    Reference(String),
    /// Schemas refer to themselves, or one value would be checked against too many schemas.
    #[error("its input schema refers to itself or to more than {MAX_WEIGHT} schemas at one place")]
    Entangled,
    /// The schema is not valid JSON Schema.
    #[error("its input schema cannot be used: {0}")]
    Invalid(String),
}

/// Why arguments do not fit a schema, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(String);

/// Cache of schema checks.
///
/// Lists are requested far more often than they change.
#[derive(Debug, Default)]
pub struct Schemas {
    hasher: RandomState,
    known: Mutex<HashMap<u64, Option<BadSchema>>>,
}

// === impl InputSchema ===

impl InputSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Fails if it is not the schema of an object, or exceeds a bound.
    pub fn compile(schema: &Json) -> Result<Self, BadSchema> {
        if schema.len() > MAX_SCHEMA {
            return Err(BadSchema::TooLarge);
        }
        let mut value: Value =
            schema.read().map_err(|error| BadSchema::Invalid(mismatch::cause(&error)))?;
        let kind = value.get("type");
        if !value.is_object() || kind.is_some_and(|kind| kind.is_string() && kind != "object") {
            return Err(BadSchema::NotObject);
        }
        if is_deeper(&value, MAX_DEPTH) {
            return Err(BadSchema::TooDeep);
        }
        match cost::of(&value) {
            Ok(weight) if weight <= MAX_WEIGHT => {}
            Ok(_) => return Err(BadSchema::Entangled),
            Err(reference) => return Err(BadSchema::Reference(mismatch::short(&reference))),
        }
        let required = required(&value);
        if is_sound(&value) {
            return Ok(Self { schema: value, validator: OnceLock::new(), required });
        }
        let first = match build(&value, None) {
            Ok(validator) => {
                return Ok(Self { schema: value, validator: validator.into(), required });
            }
            Err(bad) => bad,
        };
        // A schema that does not name its draft may be written for an older one.
        let says = value.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let drafts: &[Draft] = match says {
            "" => &[Draft::Draft7, Draft::Draft4],
            known if known.contains("://json-schema.org/") => &[],
            _ => &[Draft::Draft202012, Draft::Draft7, Draft::Draft4],
        };
        if let Some(members) = value.as_object_mut() {
            members.shift_remove("$schema");
        }
        let older = drafts.iter().find_map(|draft| build(&value, Some(*draft)).ok());
        let validator = older.ok_or(first)?.into();
        Ok(Self { schema: value, validator, required })
    }

    /// Validates arguments.
    ///
    /// # Errors
    /// Fails if the arguments do not fit. The error describes the mismatches, with secrets masked.
    pub fn check(&self, arguments: &Json) -> Result<(), Misfit> {
        let mut value: Value = arguments.read().map_err(|error| Misfit(mismatch::cause(&error)))?;
        if is_deeper(&value, MAX_DEPTH) {
            return Err(Misfit(format!("they are nested deeper than {MAX_DEPTH} levels")));
        }
        if let Some(members) = value.as_object_mut() {
            // Many clients write null for an argument that they leave out, and servers accept that.
            members.retain(|name, value| !value.is_null() || self.required.contains(name));
        }
        let validator = match self.validator.get() {
            Some(validator) => validator,
            None if fits(&self.schema, &value) => return Ok(()),
            None => {
                let made = build(&self.schema, None).map_err(|bad| Misfit(bad.to_string()))?;
                self.validator.get_or_init(|| made)
            }
        };
        let mut told = Vec::new();
        for error in validator.iter_errors(&value).filter(|error| !mismatch::is_doubtful(error)) {
            if told.len() == MAX_TOLD {
                told.push("and more".to_owned());
                break;
            }
            told.push(mismatch::tell(&error));
        }
        if told.is_empty() { Ok(()) } else { Err(Misfit(told.join("; "))) }
    }
}

// === impl Schemas ===

impl Schemas {
    /// Checks that a schema can be used.
    ///
    /// # Errors
    /// Fails if it cannot be used.
    pub fn check(&self, schema: &Json) -> Result<(), BadSchema> {
        if schema.len() <= MAX_SCHEMA && describes_arguments(schema) {
            return Ok(());
        }
        let key = self.hasher.hash_one(schema.as_bytes());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let bad = known.unwrap_or_else(|| {
            let bad = InputSchema::compile(schema).err();
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(key, bad.clone());
            bad
        });
        bad.map_or(Ok(()), Err)
    }
}

/// Returns the names of the arguments that a schema requires.
fn required(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(ToOwned::to_owned).collect()
}

fn build(schema: &Value, draft: Option<Draft>) -> Result<Validator, BadSchema> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKING)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN);
    let options = jsonschema::options().offline().should_validate_formats(false);
    let options = options.with_pattern_options(patterns);
    let options = match draft {
        Some(draft) => options.with_draft(draft),
        None => options,
    };
    options.build(schema).map_err(|error| BadSchema::Invalid(mismatch::tell_schema(&error)))
}

/// True if a value is nested more than `levels` deep.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests;
