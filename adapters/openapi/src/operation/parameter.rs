//! The parameters of an operation: the place and the encoding of each.

use serde_json::{Value, json};

use crate::document::{Document, Object, Version};
use crate::operation::schema::{Schemas, short};

/// The longest description of a parameter, in bytes.
const MAX_WORDS: usize = 400;

/// Headers that callers cannot set.
/// The document defines them elsewhere, or they control the framing or the destination of a
/// message.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// The name of the tool's argument.
    pub(crate) argument: String,
    /// The name in the request.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) style: Style,
    pub(crate) need: Need,
    pub(crate) schema: Value,
}

/// The part of the request that a parameter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// Required or optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

/// The encoding of a value. With `Pairs` an object is written as `key=value`, else as `key,value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Comma-separated values.
    Simple(Members),
    /// Comma-separated values after a dot; pairs are separated by dots.
    Label(Members),
    /// Values after a semicolon and the name.
    Matrix(Members),
    /// Each value under the name.
    Repeated,
    /// All values under the name, with this separator.
    Joined(&'static str),
    /// Each member under the name, with the member's key in brackets.
    Deep,
    /// As JSON.
    Json,
}

/// The way in which the members of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    Listed,
    Pairs,
}

// === impl Parameter ===

impl Parameter {
    /// Reads a parameter; `None` for one that callers cannot set.
    ///
    /// # Errors
    /// The reason why the operation cannot be offered with it.
    pub(crate) fn read<'d>(
        document: &'d Document,
        said: &'d Object,
        schemas: &mut Schemas<'d>,
    ) -> Result<Option<Self>, String> {
        let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        let place = match text("in") {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
                return Ok(None);
            }
            "header" if is_token(&name) => Place::Header,
            "cookie" if is_token(&name) => Place::Cookie,
            other => return Err(format!("a parameter `{name}` goes into `{other}`")),
        };
        if name.is_empty() {
            return Err("a parameter has no name".to_owned());
        }
        schemas.spend(name.len());
        let required = said.get("required") == Some(&Value::Bool(true)) || place == Place::Path;
        let content = said.get("content").and_then(Value::as_object);
        let content = content.and_then(|kinds| kinds.values().next());
        let (style, schema) = match (document.version, content) {
            (Version::V2, _) => (collection(text("collectionFormat"), place), schemas.object(said)),
            (Version::V3, Some(content)) => (Style::Json, under(schemas, content)),
            (Version::V3, None) => {
                let explode = said.get("explode").and_then(Value::as_bool);
                let schema = said.get("schema").map(|schema| schemas.write(schema));
                (style(text("style"), explode, place)?, schema.unwrap_or_else(|| json!({})))
            }
        };
        let schema = with_words(schema, text("description"));
        let need = if required { Need::Required } else { Need::Optional };
        Ok(Some(Self { argument: String::new(), name, place, style, need, schema }))
    }
}

fn under<'d>(schemas: &mut Schemas<'d>, content: &'d Value) -> Value {
    content.get("schema").map_or_else(|| json!({}), |schema| schemas.write(schema))
}

/// Sets the description of a schema, unless `words` is empty.
pub(crate) fn with_words(mut schema: Value, words: &str) -> Value {
    if let (Value::Object(members), false) = (&mut schema, words.trim().is_empty()) {
        members.insert("description".to_owned(), Value::from(short(words, MAX_WORDS)));
    }
    schema
}

fn style(word: &str, explode: Option<bool>, place: Place) -> Result<Style, String> {
    let members = |usual: bool| {
        if explode.unwrap_or(usual) { Members::Pairs } else { Members::Listed }
    };
    let repeated = explode.unwrap_or(true);
    Ok(match (place, word) {
        (Place::Path | Place::Header, "" | "simple") => Style::Simple(members(false)),
        (Place::Path, "label") => Style::Label(members(false)),
        (Place::Path, "matrix") => Style::Matrix(members(false)),
        (Place::Query | Place::Cookie, "" | "form") if repeated => Style::Repeated,
        (Place::Query | Place::Cookie, "" | "form") => Style::Joined(","),
        (Place::Query, "spaceDelimited" | "pipeDelimited") if explode == Some(true) => {
            Style::Repeated
        }
        (Place::Query, "spaceDelimited") => Style::Joined("%20"),
        (Place::Query, "pipeDelimited") => Style::Joined("%7C"),
        (Place::Query, "deepObject") => Style::Deep,
        (Place::Path | Place::Query | Place::Header | Place::Cookie, other) => {
            return Err(format!("a parameter has the style `{other}`"));
        }
    })
}

/// The style for a `collectionFormat` of version 2.0.
fn collection(word: &str, place: Place) -> Style {
    let joined = match word {
        "multi" if place == Place::Query => return Style::Repeated,
        "ssv" => "%20",
        "tsv" => "%09",
        "pipes" => "%7C",
        _ => ",",
    };
    match place {
        Place::Query | Place::Cookie => Style::Joined(joined),
        Place::Path | Place::Header => Style::Simple(Members::Listed),
    }
}

/// True if a text can be the name of a header or a cookie.
pub(crate) fn is_token(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(fits)
}
