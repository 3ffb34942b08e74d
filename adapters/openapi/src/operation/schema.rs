//! Converts the schemas of a document into JSON schemas.
//! References are inlined, and keywords that only OpenAPI has are translated or dropped.
//!
//! Everything is bounded. Where a schema contains itself, or there are too many, any value is
//! accepted; an operation that takes too many bytes gets no tool.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use crate::document::{Document, Object, reference};

/// The largest number of schemas in one tool.
const MAX_SCHEMAS: usize = 1_000;

/// The largest number of bytes of one tool, as written in the document.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// The largest number of bytes of all tools of a document. A schema that is referenced often is
/// inlined often.
pub(crate) const MAX_ALL_BYTES: usize = 64 * 1024 * 1024;

/// The size of each value besides its text, in bytes.
const VALUE: usize = 8;

/// The deepest nesting of schemas; each reference on the way counts as one level.
const MAX_DEPTH: usize = 24;

/// The longest description of a part, in bytes.
const MAX_WORDS: usize = 400;

/// The purpose of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Arguments, which are validated.
    Input,
    /// Responses. Servers follow their schemas less strictly than callers must, so only the shape
    /// is described.
    Output,
}

/// Inlines the schemas of one tool.
pub(crate) struct Schemas<'d> {
    document: &'d Document,
    purpose: For,
    left: usize,
    /// The bytes left for this tool; `all` has those left for all tools.
    bytes: usize,
    all: &'d Cell<usize>,
    lacking: Option<&'static str>,
    /// The references that are being inlined.
    open: Vec<&'d str>,
}

// === impl Schemas ===

impl<'d> Schemas<'d> {
    /// Creates a writer for one tool; `all` is the number of bytes left for the document's tools.
    pub(crate) fn new(document: &'d Document, purpose: For, all: &'d Cell<usize>) -> Self {
        let (left, bytes, lacking, open) = (MAX_SCHEMAS, MAX_BYTES, None, Vec::new());
        Self { document, purpose, left, bytes, all, lacking, open }
    }

    /// Takes this many bytes from the budget; `false` if they are not left.
    pub(crate) fn spend(&mut self, bytes: usize) -> bool {
        let all = self.all.get();
        if self.lacking.is_none() && bytes > self.bytes.min(all) {
            let own = "its definition is too large";
            let others =
                "the tools before it use up the size limit; select some with `tags` or `only`";
            self.lacking = Some(if self.bytes <= all { own } else { others });
            // Finding out that it is too large has processed that many bytes.
            self.all.set(all.saturating_sub(self.bytes));
        }
        if self.lacking.is_some() {
            return false;
        }
        self.bytes -= bytes;
        self.all.set(all - bytes);
        true
    }

    /// The reason why no tool can be made of what was written.
    pub(crate) fn lacking(&self) -> Option<&'static str> {
        self.lacking
    }

    fn affords(&mut self, value: &Value) -> bool {
        let limit = self.bytes.min(self.all.get());
        self.lacking.is_none() && self.spend(weight(value, limit))
    }

    /// Converts a schema into a JSON schema.
    pub(crate) fn write(&mut self, schema: &'d Value) -> Value {
        let document = self.document;
        let words = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        if !self.spend(VALUE + words.len().min(MAX_WORDS)) {
            return json!({});
        }
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

    /// Converts the members of a schema into a JSON schema.
    pub(crate) fn object(&mut self, members: &'d Object) -> Value {
        // An inline schema counts as deep as a referenced one.
        self.open.push("");
        let written = self.members(members);
        self.open.pop();
        nullable(members, written)
    }

    /// Adds the description beside a reference, which overrides that of the target.
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
                _ if self.lacking.is_some() => None,
                ("type", _) => self.affords(value).then(|| kind(value)).flatten(),
                ("description", Value::String(words)) => Some(short(words, MAX_WORDS).into()),
                ("items" | "not" | "additionalProperties", Value::Object(_)) => {
                    Some(self.write(value))
                }
                ("properties", Value::Object(parts)) => Some(self.parts(parts)),
                ("allOf" | "anyOf" | "oneOf", Value::Array(some)) if !some.is_empty() => {
                    let within = |one| self.lacking.is_none().then(|| self.write(one));
                    Some(some.iter().map_while(within).collect())
                }
                _ if self.purpose == For::Input => self.limit(members, key, value),
                _ => None,
            };
            if let Some(said) = said {
                // For responses more than one alternative may match, because little is said of
                // each.
                let key = if self.purpose == For::Output && key == "oneOf" { "anyOf" } else { key };
                written.insert(key.to_owned(), said);
            }
        }
        written
    }

    /// Converts a keyword that restricts values beyond their shape.
    fn limit(&mut self, members: &Object, key: &str, value: &Value) -> Option<Value> {
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
            // Up to 3.0 the exclusive keywords are flags that exclude the limit itself.
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
            "required" if !self.affords(value) => false,
            "required" => return self.required(members, value),
            _ => false,
        };
        (fits && self.affords(value)).then(|| value.clone())
    }

    /// The required properties, without those that are only used in the other direction.
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
            if !self.spend(VALUE + name.len()) {
                break;
            }
            if !self.is_left_out(part) {
                let part = self.write(part);
                let part = if self.purpose == For::Output { or_nothing(part) } else { part };
                written.insert(name.clone(), part);
            }
        }
        Value::Object(written)
    }

    /// True if a property is only used in the other direction.
    fn is_left_out(&self, part: &Value) -> bool {
        let mark = match self.purpose {
            For::Input => "readOnly",
            For::Output => "writeOnly",
        };
        let marked = |part: &Value| part.get(mark) == Some(&Value::Bool(true));
        marked(part) || self.document.follow(part).is_some_and(marked)
    }
}

/// Shortens a text to `limit` bytes, without splitting a character.
pub(crate) fn short(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.len() <= limit {
        return text.to_owned();
    }
    let cut = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    format!("{}…", cut.trim_end())
}

/// Estimates the size of a value in bytes; stops as soon as it exceeds `limit`.
fn weight(value: &Value, limit: usize) -> usize {
    let mut total = 0_usize;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        total = total.saturating_add(VALUE);
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => total = total.saturating_add(text.len()),
            // Every element takes at least one byte, so more elements than bytes are too many.
            Value::Array(items) if items.len() > limit => return usize::MAX,
            Value::Object(members) if members.len() > limit => return usize::MAX,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                total = members.keys().fold(total, |total, key| total.saturating_add(key.len()));
                open.extend(members.values());
            }
        }
        if total > limit {
            return total;
        }
    }
    total
}

/// Keeps the types that JSON Schema defines.
fn kind(value: &Value) -> Option<Value> {
    let known = |value: &Value| match value.as_str()? {
        // `file` is Swagger's type of an upload.
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

/// Translates `nullable` of version 3.0.
fn nullable(members: &Object, written: Map<String, Value>) -> Value {
    let written = Value::Object(written);
    if members.get("nullable") == Some(&Value::Bool(true)) { or_nothing(written) } else { written }
}

/// Extends a schema so that it also accepts `null`.
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
}
