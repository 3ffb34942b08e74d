//! Makes JSON schemas of what a document says: references are written out, and what only OpenAPI
//! knows is said in other words or left away.
//!
//! Everything is bounded. Where a schema contains itself, or there are too many, anything goes; of
//! what takes too many bytes no tool is made.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use crate::document::{Document, Object, reference};

/// Schemas that one tool may be made of.
const MAX_SCHEMAS: usize = 1_000;

/// Bytes that one tool may be made of, as they stand in the document.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// Bytes that all tools of a document may be made of. What is named often is written out often.
pub(crate) const MAX_ALL_BYTES: usize = 64 * 1024 * 1024;

/// What each value takes beside its text.
const VALUE: usize = 8;

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
    /// The bytes that are left for the tool, and for all that follow.
    bytes: usize,
    all: &'d Cell<usize>,
    lacking: Option<&'static str>,
    /// The references that are being written out.
    open: Vec<&'d str>,
}

// === impl Schemas ===

impl<'d> Schemas<'d> {
    /// A writer for a tool; `all` is how many bytes are left for the document's tools.
    pub(crate) fn new(document: &'d Document, purpose: For, all: &'d Cell<usize>) -> Self {
        let (left, bytes, lacking, open) = (MAX_SCHEMAS, MAX_BYTES, None, Vec::new());
        Self { document, purpose, left, bytes, all, lacking, open }
    }

    /// Takes so many bytes, where they are left.
    pub(crate) fn spend(&mut self, bytes: usize) -> bool {
        let all = self.all.get();
        if self.lacking.is_none() && bytes > self.bytes.min(all) {
            let own = "it takes more bytes than one tool may";
            let others = "the tools before it take as many bytes as all may; choose some by `tags` or `only`";
            self.lacking = Some(if self.bytes <= all { own } else { others });
            // Who finds that something is too large has looked at that much of it.
            self.all.set(all.saturating_sub(self.bytes));
        }
        if self.lacking.is_some() {
            return false;
        }
        self.bytes -= bytes;
        self.all.set(all - bytes);
        true
    }

    /// Why no tool can be made of what was written.
    pub(crate) fn lacking(&self) -> Option<&'static str> {
        self.lacking
    }

    fn affords(&mut self, value: &Value) -> bool {
        let limit = self.bytes.min(self.all.get());
        self.lacking.is_none() && self.spend(weight(value, limit))
    }

    /// The schema that `schema` means.
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
                // Of what comes back more than one may hold, since little is said of each.
                let key = if self.purpose == For::Output && key == "oneOf" { "anyOf" } else { key };
                written.insert(key.to_owned(), said);
            }
        }
        written
    }

    /// What a schema says about values beside their shape.
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
            "required" if !self.affords(value) => false,
            "required" => return self.required(members, value),
            _ => false,
        };
        (fits && self.affords(value)).then(|| value.clone())
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

/// About how many bytes a value takes; no more of it is looked at than shows that it is too many.
fn weight(value: &Value, limit: usize) -> usize {
    let mut total = 0_usize;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        total = total.saturating_add(VALUE);
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => total = total.saturating_add(text.len()),
            // Each of the parts takes something, so there are too many of them as soon as that is.
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
#[path = "schema_tests.rs"]
mod tests;
