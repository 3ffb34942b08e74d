//! Makes JSON schemas of what a document says: references are written out, and what only OpenAPI
//! knows is said in other words or left away.
//!
//! Everything is bounded. Where a schema contains itself, or the bound is reached, anything goes.

use serde_json::{Map, Value, json};

use crate::document::{Document, Object, reference};

/// Schemas that one tool may be made of.
const MAX_SCHEMAS: usize = 1_000;

/// How deep schemas may stand within schemas; a name on the way counts like one.
const MAX_DEPTH: usize = 24;

/// Longest description of a part, in bytes.
const MAX_WORDS: usize = 400;

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// What is sent, which is held to it.
    Input,
    /// What comes back. Interfaces keep their promises less well than callers must, so only the
    /// shape is told.
    Output,
}

/// Writes schemas out, for one tool.
pub(crate) struct Schemas<'d> {
    document: &'d Document,
    purpose: For,
    left: usize,
    /// The references that are being written out.
    open: Vec<&'d str>,
}

// === impl Schemas ===

impl<'d> Schemas<'d> {
    pub(crate) fn new(document: &'d Document, purpose: For) -> Self {
        Self { document, purpose, left: MAX_SCHEMAS, open: Vec::new() }
    }

    /// The schema that `schema` means.
    pub(crate) fn write(&mut self, schema: &'d Value) -> Value {
        let document = self.document;
        if let Some(reference) = reference(schema) {
            let known = document.target(reference).filter(|_| !self.open.contains(&reference));
            let Some(target) = known else { return Self::beside(schema, json!({})) };
            self.open.push(reference);
            let written = self.write(target);
            self.open.pop();
            return Self::beside(schema, written);
        }
        if self.left == 0 || self.open.len() >= MAX_DEPTH {
            return json!({});
        }
        self.left -= 1;
        match schema {
            Value::Bool(_) => schema.clone(),
            Value::Object(members) => self.object(members),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => json!({}),
        }
    }

    /// The schema that these members are.
    pub(crate) fn object(&mut self, members: &'d Object) -> Value {
        // A schema without a name counts as deep as one with a name.
        self.open.push("");
        let written = self.members(members);
        self.open.pop();
        nullable(members, written)
    }

    /// What stands beside a reference says more of it.
    fn beside(schema: &Value, mut written: Value) -> Value {
        let words = schema.get("description").and_then(Value::as_str);
        if let (Some(words), Value::Object(members)) = (words, &mut written) {
            members.insert("description".to_owned(), Value::from(short(words, MAX_WORDS)));
        }
        written
    }

    fn members(&mut self, members: &'d Object) -> Map<String, Value> {
        let mut written = Map::new();
        for (key, value) in members {
            let said = match (key.as_str(), value) {
                ("type", _) => kind(value),
                ("description", Value::String(words)) => Some(short(words, MAX_WORDS).into()),
                ("items" | "not" | "additionalProperties", Value::Object(_)) => {
                    Some(self.write(value))
                }
                ("properties", Value::Object(parts)) => Some(self.parts(parts)),
                ("allOf" | "anyOf" | "oneOf", Value::Array(some)) if !some.is_empty() => {
                    Some(some.iter().map(|one| self.write(one)).collect())
                }
                _ if self.purpose == For::Input => self.limit(members, key, value),
                _ => None,
            };
            if let Some(said) = said {
                // Of what comes back more than one may hold, since little is said of each.
                let key = if self.purpose == For::Output && key == "oneOf" { "anyOf" } else { key };
                written.insert(key.to_owned(), said);
            }
        }
        written
    }

    /// What a schema says about values beside their shape.
    fn limit(&self, members: &Object, key: &str, value: &Value) -> Option<Value> {
        let is_count = || value.as_u64().is_some();
        let fits = match key {
            "format" | "title" | "pattern" | "contentEncoding" | "contentMediaType" => {
                value.is_string()
            }
            "default" | "const" => true,
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => is_count(),
            "uniqueItems" | "additionalProperties" => value.is_boolean(),
            // Up to 3.0 these say whether the limit itself is left out.
            "minimum" | "maximum" => {
                let exclusive =
                    if key == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                value.is_number() && members.get(exclusive) != Some(&Value::Bool(true))
            }
            "exclusiveMinimum" | "exclusiveMaximum" => {
                let of = if key == "exclusiveMinimum" { "minimum" } else { "maximum" };
                return match value {
                    Value::Number(_) => Some(value.clone()),
                    Value::Bool(true) => members.get(of).filter(|limit| limit.is_number()).cloned(),
                    Value::Null
                    | Value::Bool(false)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => None,
                };
            }
            "required" => return self.required(members, value),
            _ => false,
        };
        fits.then(|| value.clone())
    }

    /// The parts that must be there; what only comes back is not among them.
    fn required(&self, members: &Object, value: &Value) -> Option<Value> {
        let parts = members.get("properties").and_then(Value::as_object);
        let sent = |name: &&Value| {
            let part = parts.zip(name.as_str()).and_then(|(parts, name)| parts.get(name));
            name.is_string() && part.is_none_or(|part| !self.is_left_out(part))
        };
        let names: Vec<Value> = value.as_array()?.iter().filter(sent).cloned().collect();
        (!names.is_empty()).then(|| names.into())
    }

    fn parts(&mut self, parts: &'d Object) -> Value {
        let mut written = Map::new();
        for (name, part) in parts {
            if !self.is_left_out(part) {
                let part = self.write(part);
                let part = if self.purpose == For::Output { or_nothing(part) } else { part };
                written.insert(name.clone(), part);
            }
        }
        Value::Object(written)
    }

    /// Whether a part only goes the other way.
    fn is_left_out(&self, part: &Value) -> bool {
        let mark = match self.purpose {
            For::Input => "readOnly",
            For::Output => "writeOnly",
        };
        let marked = |part: &Value| part.get(mark) == Some(&Value::Bool(true));
        marked(part) || self.document.follow(part).is_some_and(marked)
    }
}

/// The beginning of a text, in one piece.
pub(crate) fn short(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.len() <= limit {
        return text.to_owned();
    }
    let cut = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    format!("{}…", cut.trim_end())
}

/// The types that JSON Schema knows.
fn kind(value: &Value) -> Option<Value> {
    let known = |value: &Value| match value.as_str()? {
        // `file` is Swagger's word for what is uploaded.
        "string" | "file" => Some("string"),
        "number" => Some("number"),
        "integer" => Some("integer"),
        "boolean" => Some("boolean"),
        "array" => Some("array"),
        "object" => Some("object"),
        "null" => Some("null"),
        _ => None,
    };
    match value {
        Value::Array(kinds) => {
            let kinds: Vec<Value> = kinds.iter().filter_map(known).map(Value::from).collect();
            (!kinds.is_empty()).then(|| kinds.into())
        }
        Value::String(_) => known(value).map(Value::from),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Version 3.0 says with a word of its own that nothing may stand in the place of a value.
fn nullable(members: &Object, written: Map<String, Value>) -> Value {
    let written = Value::Object(written);
    if members.get("nullable") == Some(&Value::Bool(true)) { or_nothing(written) } else { written }
}

/// The schema, or nothing.
fn or_nothing(mut schema: Value) -> Value {
    let Value::Object(members) = &mut schema else { return schema };
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let combined = ["allOf", "anyOf", "oneOf"].iter().any(|key| members.contains_key(*key));
    let kinds = match members.get("type") {
        None if combined => return json!({ "anyOf": [schema, { "type": "null" }] }),
        None => return schema,
        Some(Value::Array(kinds)) => kinds.clone(),
        Some(kind) => vec![kind.clone()],
    };
    if !kinds.contains(&json!("null")) {
        let kinds: Vec<Value> = kinds.into_iter().chain([json!("null")]).collect();
        members.insert("type".to_owned(), kinds.into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(purpose: For, schema: &Value, named: &Value) -> Value {
        let root = json!({ "openapi": "3.0.0", "s": schema, "n": named });
        let document = Document::parse(&root.to_string()).unwrap();
        Schemas::new(&document, purpose).write(&document.root["s"])
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
        // Each of ten names the next ten times.
        let mut root = json!({"openapi": "3.0.0", "l10": {"type": "string"}});
        for level in 0..10 {
            let parts: Map<String, Value> = (0..10)
                .map(|n| (n.to_string(), json!({"$ref": format!("#/l{}", level + 1)})))
                .collect();
            root[format!("l{level}")] = json!({"type": "object", "properties": parts});
        }
        let document = Document::parse(&root.to_string()).unwrap();
        let whole = Schemas::new(&document, For::Input).write(&document.root["l0"]);
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
}
