//! The body of an operation: its kind, and the arguments that it consists of.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::document::{Document, Object};
use crate::operation::parameter::{Need, with_words};
use crate::operation::schema::{For, Schemas};

/// The body of an operation's requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub(crate) kind: BodyKind,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

/// The encoding of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// JSON of this content type.
    Json(String),
    /// A URL-encoded form.
    Form,
    /// A multipart form.
    Parts,
    /// Text of this content type.
    Text(String),
    /// Bytes of this content type, which callers pass in base64.
    Bytes(String),
}

/// The arguments that a body consists of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A single argument.
    Whole(Field),
    /// One argument per member.
    Members(Vec<Field>),
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The name of the tool's argument.
    pub(crate) argument: String,
    /// The name in the body.
    pub(crate) name: String,
    pub(crate) need: Need,
    pub(crate) schema: Value,
    /// True if callers pass it in base64 and it is sent as the decoded bytes.
    pub(crate) is_bytes: bool,
}

// === impl Body ===

impl Body {
    /// Reads the request body of version 3.
    pub(crate) fn read<'d>(said: &'d Object, schemas: &mut Schemas<'d>) -> Option<Self> {
        let content = said.get("content")?.as_object()?;
        if !content.keys().all(|media| schemas.spend(media.len())) {
            return None;
        }
        let (kind, content) = best(content)?;
        let required = said.get("required") == Some(&Value::Bool(true));
        let need = if required { Need::Required } else { Need::Optional };
        let schema =
            content.get("schema").map_or_else(|| json!({}), |schema| schemas.write(schema));
        let words = said.get("description").and_then(Value::as_str).unwrap_or_default();
        Some(Self::new(kind, need, schema, words))
    }

    /// Creates a body of this kind.
    pub(crate) fn new(kind: BodyKind, need: Need, schema: Value, words: &str) -> Self {
        let schema = match kind {
            BodyKind::Json(_) | BodyKind::Form | BodyKind::Parts => schema,
            BodyKind::Text(_) => json!({ "type": "string" }),
            BodyKind::Bytes(_) => json!({ "type": "string", "contentEncoding": "base64" }),
        };
        let shape = if let Some(mut fields) = members(&schema) {
            // If the body is optional, its parts are too.
            for field in fields.iter_mut().filter(|_| need == Need::Optional) {
                field.need = Need::Optional;
            }
            if kind == BodyKind::Parts {
                fields.iter_mut().for_each(Field::take_bytes);
            }
            Shape::Members(fields)
        } else {
            let schema = match (&kind, schema) {
                // A form consists of names and values, whatever the document says.
                (BodyKind::Form | BodyKind::Parts, Value::Object(mut members)) => {
                    members.insert("type".to_owned(), json!("object"));
                    Value::Object(members)
                }
                (_, schema) => schema,
            };
            let (schema, name) = (with_words(schema, words), "body".to_owned());
            let is_bytes = false;
            Shape::Whole(Field { argument: String::new(), name, need, schema, is_bytes })
        };
        Self { kind, need, shape }
    }

    /// Creates a form with these fields.
    pub(crate) fn form(kind: BodyKind, mut fields: Vec<Field>) -> Self {
        if kind == BodyKind::Parts {
            fields.iter_mut().for_each(Field::take_bytes);
        }
        Self { kind, need: Need::Optional, shape: Shape::Members(fields) }
    }

    /// The body's fields.
    pub(crate) fn fields_mut(&mut self) -> impl Iterator<Item = &mut Field> {
        match &mut self.shape {
            Shape::Whole(field) => std::slice::from_mut(field).iter_mut(),
            Shape::Members(fields) => fields.iter_mut(),
        }
    }
}

// === impl Field ===

impl Field {
    /// Makes callers pass binary values in base64.
    fn take_bytes(&mut self) {
        let is_list = self.schema.get("items").is_some();
        let one = if is_list { self.schema.get_mut("items") } else { Some(&mut self.schema) };
        let Some(Value::Object(one)) = one else { return };
        let media = one.get("contentMediaType").and_then(Value::as_str).map(kind);
        let is_media = matches!(media, Some(BodyKind::Bytes(_)));
        let is_binary = one.get("format").is_some_and(|format| format == "binary")
            || (is_media && !one.contains_key("contentEncoding"));
        if is_binary {
            one.retain(|key, _| matches!(key.as_str(), "type" | "description" | "title"));
            one.insert("type".to_owned(), json!("string"));
            one.insert("contentEncoding".to_owned(), json!("base64"));
            self.is_bytes = true;
        }
    }
}

/// The members of an object schema without other keywords, so that each can be an argument.
fn members(schema: &Value) -> Option<Vec<Field>> {
    let said = schema.as_object()?;
    let is_plain = |key: &String| {
        matches!(key.as_str(), "type" | "properties" | "required" | "description" | "title")
            || key == "additionalProperties"
    };
    let open = said.get("additionalProperties").is_some_and(Value::is_object);
    let kind = said.get("type").and_then(Value::as_str);
    let parts = said.get("properties")?.as_object()?;
    if open || !said.keys().all(is_plain) || kind.is_some_and(|kind| kind != "object") {
        return None;
    }
    let required = said.get("required").and_then(Value::as_array);
    let is_required = |name: &String| {
        required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    let field = |(name, schema): (&String, &Value)| Field {
        argument: String::new(),
        name: name.clone(),
        need: if is_required(name) { Need::Required } else { Need::Optional },
        schema: schema.clone(),
        is_bytes: false,
    };
    (!parts.is_empty()).then(|| parts.iter().map(field).collect())
}

/// The most structured of the kinds of body that an operation accepts.
fn best(content: &Object) -> Option<(BodyKind, &Value)> {
    let kinds = content.iter().map(|(media, content)| (kind(media), content));
    kinds.min_by_key(|(kind, _)| match kind {
        BodyKind::Json(_) => 0,
        BodyKind::Form => 1,
        BodyKind::Parts => 2,
        BodyKind::Text(_) => 3,
        BodyKind::Bytes(_) => 4,
    })
}

/// The kind of body for a content type.
pub(crate) fn kind(media: &str) -> BodyKind {
    let plain = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match plain.as_str() {
        "application/json" | "*/*" | "application/*" => {
            BodyKind::Json("application/json".to_owned())
        }
        json if json.ends_with("+json") => BodyKind::Json(plain),
        "application/x-www-form-urlencoded" => BodyKind::Form,
        "multipart/form-data" => BodyKind::Parts,
        text if text.starts_with("text/") || text.ends_with("xml") => BodyKind::Text(plain),
        _ => BodyKind::Bytes(plain),
    }
}

/// Reads the schema of the response, if that is an object and not too large.
pub(crate) fn output(document: &Document, responses: &Object, all: &Cell<usize>) -> Option<Value> {
    let good = |code: &&String| code.starts_with('2');
    let mut codes = responses.keys().filter(good);
    // With several success codes it is unknown which one the response has.
    let (Some(code), None) = (codes.next(), codes.next()) else { return None };
    let response = document.object(responses.get(code)?)?;
    let schema = match response.get("content").and_then(Value::as_object) {
        Some(content) => {
            let json = content.iter().find(|(media, _)| matches!(kind(media), BodyKind::Json(_)));
            json?.1.get("schema")?
        }
        None => response.get("schema")?,
    };
    let mut schemas = Schemas::new(document, For::Output, all);
    let mut schema = schemas.write(schema);
    if schemas.lacking().is_some() {
        return None;
    }
    let members = schema.as_object_mut()?;
    let is_object =
        members.contains_key("properties") || members.get("type") == Some(&json!("object"));
    // Readers of the type do not treat a nullable object as an object.
    let is_open = members.get("type").is_some_and(Value::is_array);
    if !is_object || is_open {
        return None;
    }
    members.insert("type".to_owned(), json!("object"));
    Some(schema)
}
