//! Converts a call into a request.
//!
//! [`base`] determines where requests go, [`arguments`] and [`encode`] put the caller's values in
//! their places, [`answer`] converts the response.

pub(crate) mod answer;
pub(crate) mod arguments;
pub(crate) mod base;
pub(crate) mod encode;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_http::PlainRequest;
use capstan_wire::{Json, compose, object};
use serde_json::Value;

use crate::operation::Operation;
use crate::operation::body::{Body, BodyKind, Field, Shape};
use crate::operation::parameter::{Need, Parameter, Place};
use crate::request::arguments::Arguments;
use crate::request::base::Base;
use crate::request::encode::{in_cookie, in_header, in_path, in_query, percent, plain};

/// The `Accept` header of every request.
const ACCEPT: &str = "application/json, text/*;q=0.9, */*;q=0.8";

/// A part of a form.
struct Part {
    name: String,
    value: Vec<u8>,
    is_bytes: bool,
}

/// A body and its content type.
type Written = (String, Vec<u8>);

// === impl Operation ===

impl Operation {
    /// Composes the request for a call with these arguments, which already match the schema.
    ///
    /// # Errors
    /// A description of what cannot be sent.
    pub(crate) fn request(
        &self,
        base: &Base,
        arguments: &Arguments,
    ) -> Result<PlainRequest, String> {
        let named =
            |parameter: &Parameter, error: String| format!("`{}`: {error}", parameter.argument);
        let mut query: Vec<String> = base.query().map(ToOwned::to_owned).into_iter().collect();
        let mut headers = vec![("accept".to_owned(), ACCEPT.to_owned())];
        let mut cookies = Vec::new();
        let taken = |name: &str| {
            base.sends(name)
                || self.reserved.iter().any(|one| one == name)
                || self.parameters.iter().any(|one| one.place == Place::Query && one.name == name)
        };
        for parameter in &self.parameters {
            let Some(value) = &arguments.of(parameter) else { continue };
            let failed = |error| named(parameter, error);
            match parameter.place {
                Place::Path => {}
                Place::Query => query.extend(in_query(parameter, value, &taken).map_err(failed)?),
                Place::Header => {
                    let value = in_header(parameter, value).map_err(failed)?;
                    headers.push((parameter.name.clone(), value));
                }
                Place::Cookie => cookies.push(in_cookie(parameter, value).map_err(failed)?),
            }
        }
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        let written = self.body.as_ref().map(|body| body.write(arguments)).transpose()?.flatten();
        let body = written.map_or_else(Vec::new, |(kind, body)| {
            headers.push(("content-type".to_owned(), kind));
            body
        });
        let path = format!("{}{}", base.path(), self.filled_path(arguments)?);
        let query = (!query.is_empty()).then(|| query.join("&"));
        Ok(PlainRequest { method: self.method, path, query, headers, body })
    }

    /// The path with the placeholders replaced by values.
    fn filled_path(&self, arguments: &Arguments) -> Result<String, String> {
        let mut path = String::new();
        let mut rest = self.path.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else { break };
            path.push_str(&literal(before));
            let is_it = |one: &&Parameter| one.place == Place::Path && one.name == name;
            let parameter = self.parameters.iter().find(is_it);
            let parameter =
                parameter.ok_or_else(|| format!("the document does not describe `{name}`"))?;
            let value = arguments.of(parameter);
            let value = value.ok_or_else(|| format!("`{}` is missing", parameter.argument))?;
            let written = in_path(parameter, &value);
            path.push_str(&written.map_err(|error| format!("`{}`: {error}", parameter.argument))?);
            rest = behind;
        }
        path.push_str(&literal(rest));
        // Values that are harmless alone may form `.` or `..` side by side.
        if path.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err("its path could mean another one".to_owned());
        }
        Ok(path)
    }
}

/// Escapes the document's own part of a path, except characters that have a meaning in paths.
fn literal(text: &str) -> String {
    let parts = text.split('/').map(|part| {
        let mut written = String::new();
        for c in part.chars() {
            if c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(c) {
                written.push(c);
            } else {
                written.push_str(&percent(c.encode_utf8(&mut [0; 4])));
            }
        }
        written
    });
    parts.collect::<Vec<_>>().join("/")
}

// === impl Body ===

impl Body {
    /// Composes the body from the arguments; `None` if there is none.
    fn write(&self, arguments: &Arguments) -> Result<Option<Written>, String> {
        let Some(whole) = self.whole(arguments) else { return Ok(None) };
        let text = || {
            let value: Value = whole.read().map_err(|error| error.to_string())?;
            plain(&value).map_err(|error| format!("the body: {error}"))
        };
        Ok(Some(match &self.kind {
            BodyKind::Json(kind) => (kind.clone(), whole.as_bytes().to_vec()),
            BodyKind::Form => {
                let pairs = pairs(&whole)?;
                let pairs: Vec<String> =
                    pairs.iter().map(|(k, v)| format!("{}={}", percent(k), percent(v))).collect();
                let kind = "application/x-www-form-urlencoded".to_owned();
                (kind, pairs.join("&").into_bytes())
            }
            BodyKind::Parts => in_parts(&self.parts(&whole)?),
            BodyKind::Text(kind) => (kind.clone(), text()?.into_bytes()),
            BodyKind::Bytes(kind) => {
                let bytes = BASE64_STANDARD.decode(text()?);
                (kind.clone(), bytes.map_err(|_| "the body is not base64".to_owned())?)
            }
        }))
    }

    /// The parts of a form, of which some are bytes.
    fn parts(&self, whole: &Json) -> Result<Vec<Part>, String> {
        let fields = match &self.shape {
            Shape::Whole(_) => &[][..],
            Shape::Members(fields) => fields,
        };
        let part = |(name, text): (String, String)| {
            let field = fields.iter().find(|field| field.name == name && field.is_bytes);
            let Some(field) = field else {
                return Ok(Part { name, value: text.into_bytes(), is_bytes: false });
            };
            let value = BASE64_STANDARD.decode(text);
            let value = value.map_err(|_| format!("`{}` is not base64", field.argument))?;
            Ok(Part { name, value, is_bytes: true })
        };
        pairs(whole)?.into_iter().map(part).collect()
    }

    /// The body as JSON, with every number as the caller wrote it.
    fn whole(&self, arguments: &Arguments) -> Option<Json> {
        match &self.shape {
            Shape::Whole(field) => arguments.written(&field.argument).cloned(),
            Shape::Members(fields) => {
                let written = |field: &Field| arguments.written(&field.argument);
                let members = fields.iter().map(|field| (field.name.as_str(), written(field)));
                let members: Vec<(&str, &Json)> =
                    members.filter_map(|(name, written)| Some((name, written?))).collect();
                let is_needed = !members.is_empty() || self.need == Need::Required;
                is_needed.then(|| compose::object(&members))
            }
        }
    }
}

/// The names and values of a form. A list repeats the name; deeper values are written as JSON.
fn pairs(whole: &Json) -> Result<Vec<(String, String)>, String> {
    let members = object::members(whole).map_err(|_| "the body must be an object")?;
    let mut pairs = Vec::new();
    for (name, written) in members {
        let values = match written.as_bytes().first() {
            Some(b'[') => object::items(&written).map_err(|error| error.to_string())?,
            _ => vec![written],
        };
        for value in values.into_iter().filter(|value| value.as_bytes() != b"null") {
            let text = value.read::<String>().unwrap_or_else(|_| value.as_str().to_owned());
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

/// Writes a multipart form with a boundary that occurs in no part.
fn in_parts(parts: &[Part]) -> Written {
    let has =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|own| own == text.as_bytes());
    let boundary = loop {
        let boundary = format!("capstan-{:032x}", fastrand::u128(..));
        let within = |part: &Part| has(&part.value, &boundary) || part.name.contains(&boundary);
        if !parts.iter().any(within) {
            break boundary;
        }
    };
    let mut body = Vec::new();
    for Part { name, value, is_bytes } in parts {
        // Escaped as browsers do, so that no name ends its quotes or its line.
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let more = if *is_bytes {
            format!("; filename=\"{name}\"\r\nContent-Type: application/octet-stream")
        } else {
            String::new()
        };
        let head = "Content-Disposition: form-data; name=";
        body.extend(format!("--{boundary}\r\n{head}\"{name}\"{more}\r\n\r\n").into_bytes());
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").into_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}
