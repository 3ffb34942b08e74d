//! Schemas that are plainly sound, and values that plainly fit them: nearly all do.
//!
//! Whether a schema is one is decided by a schema of schemas, and to compile that takes longer than
//! all else that a call from the command line does. It is needed only for what is not recognised
//! here.
//!
//! **Invariant:** a yes is certain; everything else is left to whoever knows all of JSON Schema.

use std::collections::HashSet;

use serde_json::Value;

/// The drafts by which what is recognised here means the same, as they are named in schemas.
const DRAFTS: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
];

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Whether this is a schema, for certain. One that may yet be a schema is not recognised.
pub(super) fn is_sound(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return schema.is_boolean() };
    members.iter().all(|(name, value)| match (name.as_str(), value) {
        ("$schema", Value::String(draft)) => DRAFTS.contains(&draft.as_str()),
        (name, value) => is_sound_member(name, value),
    })
}

fn is_sound_member(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("type", Value::String(kind)) => TYPES.contains(&kind.as_str()),
        ("title" | "description" | "format", value) => value.is_string(),
        ("default" | "const", _) => true,
        ("enum" | "examples", value) => value.is_array(),
        ("minimum" | "maximum", value) => value.is_number(),
        ("minLength" | "maxLength" | "minItems" | "maxItems", value) => value.is_u64(),
        ("required", Value::Array(names)) => {
            let mut known = HashSet::new();
            names.iter().all(|name| name.as_str().is_some_and(|name| known.insert(name)))
        }
        ("properties", Value::Object(properties)) => properties.values().all(is_sound_part),
        ("items" | "additionalProperties", part) => is_sound_part(part),
        ("anyOf" | "oneOf" | "allOf", Value::Array(parts)) => {
            !parts.is_empty() && parts.iter().all(is_sound_part)
        }
        _ => false,
    }
}

/// Whether this is a schema within another, by the draft of that one.
fn is_sound_part(part: &Value) -> bool {
    match part {
        Value::Object(members) => members.iter().all(|(name, value)| is_sound_member(name, value)),
        Value::Bool(_) => true,
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Whether a value fits a sound schema, for certain.
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
        // Of these they say nothing about values. What a format is, is not validated.
        "$schema" | "title" | "description" | "format" | "default" | "examples" => true,
        _ => false,
    })
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        // Some that are written with a point are whole too.
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
mod tests {
    use serde_json::json;

    use super::*;

    fn is_schema(schema: &Value) -> bool {
        jsonschema::options().offline().build(schema).is_ok()
    }

    fn full() -> Value {
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "title": "t",
            "description": "d",
            "properties": {
                "a": { "type": "string", "minLength": 0, "maxLength": 9, "format": "uri" },
                "b": { "type": "array", "items": { "enum": [1, "x"] }, "minItems": 1, "maxItems": 2 },
                "c": { "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 2.5 }, true] },
                "d": { "const": { "$ref": 5 }, "default": null, "examples": [{}] },
                "e": { "oneOf": [{}], "allOf": [{}] }
            },
            "required": ["a", "b"],
            "additionalProperties": false
        })
    }

    /// Every schema that has another value in one place.
    fn bent(schema: &Value, other: &Value) -> Vec<Value> {
        let mut all = vec![other.clone()];
        match schema {
            Value::Object(members) => {
                for (name, value) in members {
                    for part in bent(value, other) {
                        let mut members = members.clone();
                        members.insert(name.clone(), part);
                        all.push(Value::Object(members));
                    }
                }
            }
            Value::Array(items) => {
                for (place, value) in items.iter().enumerate() {
                    for part in bent(value, other) {
                        let mut items = items.clone();
                        items[place] = part;
                        all.push(Value::Array(items));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        all
    }

    #[test]
    fn what_is_recognised_is_a_schema_by_every_draft() {
        assert!(is_sound(&full()) && is_schema(&full()));
        let others = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1.5),
            json!(1),
            json!("object"),
            json!([]),
            json!(["a", "a"]),
            json!([1]),
            json!({}),
            json!({ "a": 1 }),
            json!({ "type": "x" }),
            json!({ "$ref": "#/x" }),
            json!({ "$id": 1 }),
            json!([{}]),
            json!([[]]),
        ];
        let drafts = DRAFTS.map(|draft| {
            let mut schema = full();
            schema["$schema"] = json!(draft);
            schema
        });
        let mut recognised = 0;
        for schema in others.iter().flat_map(|other| drafts.iter().flat_map(|one| bent(one, other)))
        {
            if is_sound(&schema) {
                recognised += 1;
                assert!(is_schema(&schema), "{schema}");
            }
        }
        assert!(recognised > 500, "{recognised}");
    }

    #[test]
    fn what_is_not_plain_is_left_to_those_who_know() {
        for odd in [
            json!({ "type": ["string"] }),
            json!({ "type": "text" }),
            json!({ "$ref": "#" }),
            json!({ "$schema": "http://json-schema.org/draft-04/schema#" }),
            json!({ "$schema": 1 }),
            json!({ "properties": { "a": { "$schema": DRAFTS[0] } } }),
            json!({ "properties": { "a": { "$id": "x" } } }),
            json!({ "pattern": "(" }),
            json!({ "required": ["a", "a"] }),
            json!({ "required": [1] }),
            json!({ "anyOf": [] }),
            json!({ "items": [{}] }),
            json!({ "exclusiveMinimum": true }),
            json!({ "description": 1 }),
            json!({ "minLength": -1 }),
            json!([]),
            json!("x"),
        ] {
            assert!(!is_sound(&odd), "{odd}");
        }
    }

    #[test]
    fn a_value_that_plainly_fits_is_valid() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(2),
            json!(1.0),
            json!(2.5),
            json!(-1),
            json!(9_007_199_254_740_993_u64),
            json!(""),
            json!("ab"),
            json!("éé"),
            json!([]),
            json!([1]),
            json!([1, "x"]),
            json!([1, 1, 1]),
            json!({}),
            json!({ "a": 1 }),
            json!({ "a": "b", "b": [1] }),
            json!({ "b": 1, "z": null }),
            json!({ "$ref": 5 }),
        ];
        let mut schemas: Vec<Value> =
            full()["properties"].as_object().unwrap().values().cloned().collect();
        schemas.extend([
            full(),
            json!(true),
            json!(false),
            json!({}),
            json!({ "type": "number" }),
            json!({ "enum": [1.0, "ab", [], {}] }),
            json!({ "const": 1 }),
            json!({ "maxLength": 2 }),
            json!({ "properties": { "a": { "type": "string" } } }),
            json!({ "required": ["b"] }),
            json!({ "properties": { "a": true }, "additionalProperties": false }),
            json!({ "additionalProperties": { "type": "integer" } }),
            json!({ "minimum": 0.5 }),
            json!({ "items": { "type": "integer" } }),
            json!({ "items": true, "maxItems": 1 }),
            json!({ "oneOf": [true, false] }),
            json!({ "allOf": [{ "minimum": 1 }, { "maximum": 1 }] }),
            json!({ "type": "boolean" }),
            json!({ "type": "null" }),
            json!({ "minLength": 2 }),
        ]);
        let mut fitting = 0;
        for schema in &schemas {
            assert!(is_sound(schema), "{schema}");
            let options = jsonschema::options().offline().should_validate_formats(false);
            let validator = options.build(schema).unwrap();
            for value in values.iter().filter(|value| fits(schema, value)) {
                fitting += 1;
                assert!(validator.is_valid(value), "{schema} {value}");
            }
        }
        assert!(fitting > 100, "{fitting}");
    }

    #[test]
    fn what_is_usual_plainly_fits() {
        for value in [
            json!({ "a": "x", "b": [1, "x"] }),
            json!({ "a": "", "b": ["x"], "c": 2, "d": { "$ref": 5 } }),
        ] {
            assert!(fits(&full(), &value), "{value}");
        }
        for other in [
            json!({ "b": ["x"] }),
            json!({ "a": 1, "b": ["x"] }),
            json!({ "a": "0123456789", "b": ["x"] }),
            json!({ "a": "x", "b": [] }),
            json!({ "a": "x", "b": [2] }),
            json!({ "a": "x", "b": ["x", "x", "x"] }),
            json!({ "a": "x", "b": ["x"], "z": 1 }),
            json!({ "a": "x", "b": ["x"], "d": {} }),
            json!({ "a": "x", "b": "x" }),
            json!([]),
        ] {
            assert!(!fits(&full(), &other), "{other}");
        }
    }
}
