//! Schemas are written in the keywords of JSON Schema, and within bounds.

use super::*;

fn written(purpose: For, schema: &Value, named: &Value) -> Value {
    let root = json!({ "openapi": "3.0.0", "s": schema, "n": named });
    let document = Document::parse(&root.to_string()).unwrap();
    Schemas::new(&document, purpose, &Cell::new(MAX_ALL_BYTES)).write(&document.root["s"])
}

#[test]
fn what_only_openapi_says_is_said_in_the_words_of_json_schema() {
    for (schema, expected) in [
        (
            json!({"type": "string", "nullable": true, "example": "x", "xml": {}}),
            json!({"type": ["string", "null"]}),
        ),
        (
            json!({"type": "string", "enum": ["a"], "nullable": true}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9}),
            json!({"type": "integer", "exclusiveMinimum": 1, "maximum": 9}),
        ),
        (
            json!({"type": "integer", "exclusiveMaximum": 5, "exclusiveMinimum": false}),
            json!({"type": "integer", "exclusiveMaximum": 5}),
        ),
        (
            json!({"type": "file", "minLength": "three", "required": true}),
            json!({"type": "string"}),
        ),
        (
            json!({"$ref": "#/n", "description": "mine"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                "description": "mine"}),
        ),
        (
            json!({"allOf": [{"$ref": "#/n"}], "nullable": true}),
            json!({"anyOf": [{"allOf": [{"type": "object", "properties": {"a": {"type": "string"}},
                "required": ["a"]}]}, {"type": "null"}]}),
        ),
        (
            json!({"type": "object", "additionalProperties": false, "patternProperties": {}}),
            json!({"type": "object", "additionalProperties": false}),
        ),
        (
            json!({"type": "array", "items": {"$ref": "else.yaml#/x"}}),
            json!({"type": "array", "items": {}}),
        ),
    ] {
        let named = json!({"type": "object", "required": ["a", "id"], "properties":
            {"a": {"type": "string"}, "id": {"type": "string", "readOnly": true}}});
        assert_eq!(written(For::Input, &schema, &named), expected, "{schema}");
    }
}

#[test]
fn what_contains_itself_ends_and_what_is_huge_is_cut() {
    let tree = json!({"type": "object", "properties": {"left": {"$ref": "#/n"}}});
    let expected = json!({"type": "object", "properties": {"left": {}}});
    assert_eq!(written(For::Input, &json!({"$ref": "#/n"}), &tree), expected);
    // Each of ten schemas references the next one ten times.
    let mut root = json!({"openapi": "3.0.0", "l10": {"type": "string"}});
    for level in 0..10 {
        let parts: Map<String, Value> = (0..10)
            .map(|n| (n.to_string(), json!({"$ref": format!("#/l{}", level + 1)})))
            .collect();
        root[format!("l{level}")] = json!({"type": "object", "properties": parts});
    }
    let document = Document::parse(&root.to_string()).unwrap();
    let all = Cell::new(MAX_ALL_BYTES);
    let whole = Schemas::new(&document, For::Input, &all).write(&document.root["l0"]);
    assert!(whole.to_string().len() < 200_000);
}

#[test]
fn of_what_comes_back_only_the_shape_is_told() {
    let schema = json!({"type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "string", "maxLength": 3, "enum": ["x"]},
                       "pin": {"type": "string", "writeOnly": true},
                       "b": {"oneOf": [{"type": "integer"}]}}});
    assert_eq!(
        written(For::Output, &schema, &json!({})),
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"]},
            "b": {"anyOf": [{"anyOf": [{"type": "integer"}]}, {"type": "null"}]}}})
    );
}

#[test]
fn what_takes_too_many_bytes_is_said_and_no_more_of_it_is_copied() {
    let words: Vec<String> = (0..1000).map(|n| format!("{n:0>100}")).collect();
    let long = "x".repeat(100_000);
    for named in [
        json!({"enum": words}),
        json!({"default": {"a": [long]}}),
        json!({"const": {long.as_str(): 1}}),
        json!({"pattern": long}),
        json!({"required": words}),
        json!({"type": vec!["string"; 10_000]}),
        json!({"properties": {long.as_str(): {}}}),
    ] {
        let parts = |count: usize| -> Value {
            (0..count).map(|n| (n.to_string(), json!({"$ref": "#/n"}))).collect()
        };
        let root = json!({"openapi": "3.0.0", "n": named, "few": {"properties": parts(5)},
            "many": {"properties": parts(500)}});
        let document = Document::parse(&root.to_string()).unwrap();
        let write = |key: &str, all: usize| {
            let all = Cell::new(all);
            let mut schemas = Schemas::new(&document, For::Input, &all);
            let written = schemas.write(&document.root[key]).to_string().len();
            assert!(written < 2 * MAX_BYTES, "{written}");
            (schemas.lacking(), all.get())
        };
        let (lacking, left) = write("few", MAX_ALL_BYTES);
        assert!(lacking.is_none() && left < MAX_ALL_BYTES - 400_000, "{lacking:?} {left}");
        let (lacking, left) = write("many", MAX_ALL_BYTES);
        assert!(lacking.unwrap().contains("too large"));
        assert_eq!(left, MAX_ALL_BYTES - MAX_BYTES, "what was looked at counts");
        let (lacking, left) = write("few", 200_000);
        assert!(lacking.unwrap().contains("before it"));
        assert_eq!(left, 0);
    }
}
