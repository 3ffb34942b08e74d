//! Tests of which schemas are recognised as sound, and which values as fitting.

use serde_json::json;

use super::*;
use crate::catalog::InputSchema;

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

/// Returns every variant of a schema with one value replaced by `other`.
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
    let drafts = [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
    ];
    let drafts = drafts.map(|draft| {
        let mut schema = full();
        schema["$schema"] = json!(draft);
        schema
    });
    let mut recognised = 0;
    for schema in others.iter().flat_map(|other| drafts.iter().flat_map(|one| bent(one, other))) {
        if is_sound(&schema) {
            recognised += 1;
            assert!(is_schema(&schema), "{schema}");
        }
        let text = Json::from_value(&schema).unwrap();
        let describes = describes_arguments(&text);
        assert!(!describes || InputSchema::compile(&text).is_ok(), "{schema}");
        let is_object = schema.get("type").is_none_or(|kind| kind == "object");
        assert_eq!(describes, is_sound(&schema) && schema.is_object() && is_object, "{schema}");
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
        json!({ "properties": { "a": { "$schema": "http://json-schema.org/draft-07/schema" } } }),
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

/// Holes 3.
#[test]
fn a_schema_of_arguments_that_cannot_be_used_is_never_recognised() {
    let branches = vec![r#"{"type":"string"}"#; 10_000].join(",");
    let lists = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    for text in [
        format!(r#"{{"properties":{{"a":{{"anyOf":[{branches}]}}}}}}"#),
        format!(r#"{{"properties":{{"a":{{"oneOf":[{}]}}}}}}"#, vec!["{}"; 10_000].join(",")),
        format!(r#"{{"properties":{{"a":{{"allOf":[{}]}}}}}}"#, vec!["true"; 10_000].join(",")),
        format!(r#"{{"default":{lists}}}"#),
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#.to_owned(),
        r#"{"type":"string"}"#.to_owned(),
        r#"{"type":"object","type":"string"}"#.to_owned(),
        r#"{"properties":{"a":{"type":"text"}}}"#.to_owned(),
        r#"{"const":{"$ref":"file:///a"}}"#.to_owned(),
        r#"{"enum":[[{"\u0024ref":"file:///a"}]]}"#.to_owned(),
        r#"{"default":1e999}"#.to_owned(),
        r#"{"default":"\ud800"}"#.to_owned(),
        r#"{"properties":{"\ud800":{}}}"#.to_owned(),
        "true".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
    ] {
        let schema = Json::parse(text.clone()).unwrap();
        assert!(!describes_arguments(&schema), "{text:.80}");
        assert!(InputSchema::compile(&schema).is_err(), "{text:.80}");
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
