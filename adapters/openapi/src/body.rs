//! The body of an operation: what kind it is, and which arguments it is made of.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::document::{Document, Object};
use crate::parameter::{Need, with_words};
use crate::schema::{For, Schemas};

/// What is sent as a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub(crate) kind: BodyKind,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

/// How a body is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// As JSON of this content type.
    Json(String),
    /// As a form.
    Form,
    /// As a form in parts.
    Parts,
    /// As text of this content type.
    Text(String),
    /// As bytes of this content type, which callers give in base64.
    Bytes(String),
}

/// Which arguments a body is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// One.
    Whole(Field),
    /// One a member.
    Members(Vec<Field>),
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// What callers call it.
    pub(crate) argument: String,
    /// What it is called in the body.
    pub(crate) name: String,
    pub(crate) need: Need,
    pub(crate) schema: Value,
    /// Whether callers give it in base64, and it is sent as the bytes that this stands for.
    pub(crate) is_bytes: bool,
}

// === impl Body ===

impl Body {
    /// Reads the body that version 3 describes in one place.
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

    /// A body of this kind.
    pub(crate) fn new(kind: BodyKind, need: Need, schema: Value, words: &str) -> Self {
        let schema = match kind {
            BodyKind::Json(_) | BodyKind::Form | BodyKind::Parts => schema,
            BodyKind::Text(_) => json!({ "type": "string" }),
            BodyKind::Bytes(_) => json!({ "type": "string", "contentEncoding": "base64" }),
        };
        let shape = if let Some(mut fields) = members(&schema) {
            // Who need not send a body need not send its parts.
            for field in fields.iter_mut().filter(|_| need == Need::Optional) {
                field.need = Need::Optional;
            }
            if kind == BodyKind::Parts {
                fields.iter_mut().for_each(Field::take_bytes);
            }
            Shape::Members(fields)
        } else {
            let schema = match (&kind, schema) {
                // A form is made of names and values, whatever the document says.
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

    /// A form of these fields.
    pub(crate) fn form(kind: BodyKind, mut fields: Vec<Field>) -> Self {
        if kind == BodyKind::Parts {
            fields.iter_mut().for_each(Field::take_bytes);
        }
        Self { kind, need: Need::Optional, shape: Shape::Members(fields) }
    }

    /// Its parts.
    pub(crate) fn fields_mut(&mut self) -> impl Iterator<Item = &mut Field> {
        match &mut self.shape {
            Shape::Whole(field) => std::slice::from_mut(field).iter_mut(),
            Shape::Members(fields) => fields.iter_mut(),
        }
    }
}

// === impl Field ===

impl Field {
    /// Has callers give bytes in base64, where they are bytes.
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

/// The members of an object that is nothing but them, so that each can be an argument.
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

/// The kind of body that says most, of those that an operation takes.
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

/// The kind of body of a content type.
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

/// Reads the schema of what comes back, where that is an object and not too large.
pub(crate) fn output(document: &Document, responses: &Object, all: &Cell<usize>) -> Option<Value> {
    let good = |code: &&String| code.starts_with('2');
    let mut codes = responses.keys().filter(good);
    // Where there are several, nobody knows which one comes.
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
    // An object that may also be none is no object to those who read the type.
    let is_open = members.get("type").is_some_and(Value::is_array);
    if !is_object || is_open {
        return None;
    }
    members.insert("type".to_owned(), json!("object"));
    Some(schema)
}
