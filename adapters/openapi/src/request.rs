//! Makes a request of a call.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_backend::plain::PlainRequest;
use serde_json::{Map, Value};

use crate::base::Base;
use crate::body::{Body, BodyKind, Field, Shape};
use crate::encode::{in_cookie, in_header, in_path, in_query, percent, plain};
use crate::operation::Operation;
use crate::parameter::{Parameter, Place};

/// What we take.
const ACCEPT: &str = "application/json, text/*;q=0.9, */*;q=0.8";

/// A body and its content type.
type Written = (String, Vec<u8>);

// === impl Operation ===

impl Operation {
    /// The request that a call with these arguments is. They fit the schema.
    ///
    /// # Errors
    /// What cannot be sent.
    pub(crate) fn request(
        &self,
        base: &Base,
        arguments: &Map<String, Value>,
    ) -> Result<PlainRequest, String> {
        let given = |parameter: &Parameter| {
            arguments.get(&parameter.argument).filter(|value| !value.is_null())
        };
        let named =
            |parameter: &Parameter, error: String| format!("`{}`: {error}", parameter.argument);
        let mut query: Vec<String> = base.query().map(ToOwned::to_owned).into_iter().collect();
        let mut headers = vec![("accept".to_owned(), ACCEPT.to_owned())];
        let mut cookies = Vec::new();
        let taken = |name: &str| {
            base.sends(name)
                || self.parameters.iter().any(|one| one.place == Place::Query && one.name == name)
        };
        for parameter in &self.parameters {
            let Some(value) = given(parameter) else { continue };
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

    /// The path with the values in the place of their names.
    fn filled_path(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let mut path = String::new();
        let mut rest = self.path.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else { break };
            path.push_str(&literal(before));
            let is_it = |one: &&Parameter| one.place == Place::Path && one.name == name;
            let parameter = self.parameters.iter().find(is_it);
            let parameter =
                parameter.ok_or_else(|| format!("the document does not describe `{name}`"))?;
            let value = arguments.get(&parameter.argument).filter(|value| !value.is_null());
            let value = value.ok_or_else(|| format!("`{}` is missing", parameter.argument))?;
            let written = in_path(parameter, value);
            path.push_str(&written.map_err(|error| format!("`{}`: {error}", parameter.argument))?);
            rest = behind;
        }
        path.push_str(&literal(rest));
        // Values that are harmless alone may not be side by side.
        if path.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err("its path could mean another one".to_owned());
        }
        Ok(path)
    }
}

/// The document's own part of a path, where only what has a meaning in paths stays as it is.
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
    /// The body that these arguments make; `None` when there is none.
    fn write(&self, arguments: &Map<String, Value>) -> Result<Option<Written>, String> {
        let value = match &self.shape {
            Shape::Whole(field) => match arguments.get(&field.argument) {
                Some(value) => value.clone(),
                None => return Ok(None),
            },
            Shape::Members(fields) => {
                let given = |field: &Field| {
                    let value = arguments.get(&field.argument)?;
                    Some((field.name.clone(), value.clone()))
                };
                let members: Map<String, Value> = fields.iter().filter_map(given).collect();
                if members.is_empty() && self.need == crate::parameter::Need::Optional {
                    return Ok(None);
                }
                Value::Object(members)
            }
        };
        let text = |value: &Value| plain(value).map_err(|error| format!("the body: {error}"));
        Ok(Some(match &self.kind {
            BodyKind::Json(kind) => (kind.clone(), value.to_string().into_bytes()),
            BodyKind::Form => {
                let pairs = pairs(&value)?;
                let pairs: Vec<String> =
                    pairs.iter().map(|(k, v)| format!("{}={}", percent(k), percent(v))).collect();
                let kind = "application/x-www-form-urlencoded".to_owned();
                (kind, pairs.join("&").into_bytes())
            }
            BodyKind::Parts => in_parts(&pairs(&value)?),
            BodyKind::Text(kind) => (kind.clone(), text(&value)?.into_bytes()),
            BodyKind::Bytes(kind) => {
                let bytes = BASE64_STANDARD.decode(text(&value)?);
                (kind.clone(), bytes.map_err(|_| "the body is not base64".to_owned())?)
            }
        }))
    }
}

/// The names and values of a form. A list is the same name again and again, what is deeper is JSON.
fn pairs(value: &Value) -> Result<Vec<(String, String)>, String> {
    let members = value.as_object().ok_or("the body must be an object")?;
    let mut pairs = Vec::new();
    for (name, value) in members {
        let values = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![value],
        };
        for value in values {
            let text = plain(value).unwrap_or_else(|_| value.to_string());
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

/// A form in parts, with something between them that is in none.
fn in_parts(pairs: &[(String, String)]) -> Written {
    let boundary = loop {
        let boundary = format!("capstan-{:032x}", fastrand::u128(..));
        if !pairs.iter().any(|(name, value)| value.contains(&boundary) || name.contains(&boundary))
        {
            break boundary;
        }
    };
    let mut body = String::new();
    for (name, value) in pairs {
        // As browsers do, so that no name ends its quotes or its line.
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let _ = write!(
            body,
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
    }
    let _ = write!(body, "--{boundary}--\r\n");
    (format!("multipart/form-data; boundary={boundary}"), body.into_bytes())
}
