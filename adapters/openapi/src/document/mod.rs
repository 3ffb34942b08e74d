//! A parsed document, with resolution of its references.
//!
//! [`load`] fetches its text, [`yaml`] parses it, [`files`] adds the files beside it.

pub(crate) mod files;
pub(crate) mod load;
pub(crate) mod yaml;

use serde_json::{Map, Value};

/// The longest chain of references that is followed.
const MAX_HOPS: usize = 16;

/// An OpenAPI document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Value,
    pub(crate) version: Version,
}

/// The version of the document format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0 and 3.1, which differ in their schemas only.
    V3,
}

/// A JSON object in the document.
pub(crate) type Object = Map<String, Value>;

// === impl Document ===

impl Document {
    /// Parses a document in JSON or YAML.
    ///
    /// # Errors
    /// A description of the problem.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let root = Self::value(text)?;
        let version = version(&root)?;
        Ok(Self { root, version })
    }

    /// Parses any JSON or YAML value.
    ///
    /// # Errors
    /// A description of the problem.
    pub(crate) fn value(text: &str) -> Result<Value, String> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim_start().starts_with('{') {
            // YAML on one line may begin like JSON.
            return serde_json::from_str(text)
                .or_else(|error| yaml::read(text).map_err(|_| error.to_string()));
        }
        yaml::read(text)
    }

    /// The value as an object, after following its references.
    pub(crate) fn object<'a>(&'a self, value: &'a Value) -> Option<&'a Object> {
        self.follow(value)?.as_object()
    }

    /// The value, after following its references within the document.
    pub(crate) fn follow<'a>(&'a self, mut value: &'a Value) -> Option<&'a Value> {
        for _ in 0..MAX_HOPS {
            let Some(reference) = reference(value) else { return Some(value) };
            value = self.target(reference)?;
        }
        None
    }

    /// The target of a reference, within the document and the files added to it.
    pub(crate) fn target(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        // A reference is part of a URL, and percent-encoded like one.
        let pointer = if pointer.contains('%') { unescape(pointer)? } else { pointer.to_owned() };
        self.root.pointer(&pointer)
    }

    /// A string in `info`.
    pub(crate) fn info(&self, key: &str) -> Option<String> {
        let text = self.root.get("info")?.get(key)?;
        text.as_str().map(ToOwned::to_owned)
    }
}

/// The `$ref` of a value, if it is a reference.
pub(crate) fn reference(value: &Value) -> Option<&str> {
    value.as_object()?.get("$ref")?.as_str()
}

pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn version(root: &Value) -> Result<Version, String> {
    let says = |key: &str| match root.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        // A number in YAML without quotes.
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    match (says("swagger"), says("openapi")) {
        (Some(version), _) if version.starts_with("2.") => Ok(Version::V2),
        (_, Some(version)) if version.starts_with("3.") => Ok(Version::V3),
        (Some(version), _) | (_, Some(version)) => {
            Err(format!("it is OpenAPI {version}; 2.0, 3.0 and 3.1 can be read"))
        }
        (None, None) => {
            Err("it is not an OpenAPI document: it has no `openapi` version".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_told_apart_in_json_and_yaml() {
        for (text, version) in [
            (r#"{"swagger":"2.0"}"#, Version::V2),
            ("swagger: 2.0", Version::V2),
            (r#" {"openapi":"3.0.3"}"#, Version::V3),
            ("\u{feff}openapi: 3.1.0\ninfo: {title: x}", Version::V3),
            ("{openapi: 3.1.0}", Version::V3),
        ] {
            assert_eq!(Document::parse(text).unwrap().version, version, "{text}");
        }
        for bad in ["", "{", "[]", "hello", "openapi: 4.0.0", "swagger: '1.2'", "<html></html>"] {
            assert!(Document::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn references_lead_through_the_document_and_never_out_of_it() {
        let text = json!({"openapi": "3.0.0", "a": {"$ref": "#/b/x~1y"}, "b": {"x/y": {"n": 1}},
            "c": {"$ref": "#/c"}, "d": {"$ref": "other.yaml#/x"}, "e": {"$ref": "#/b/x%7E1y"},
            "f": {"$ref": "https://h/x"}, "g": {"$ref": "#/nowhere"}});
        let document = Document::parse(&text.to_string()).unwrap();
        let at = |key: &str| document.object(&document.root[key]);
        assert_eq!(at("a").unwrap()["n"], 1);
        assert_eq!(at("e").unwrap()["n"], 1);
        for nowhere in ["c", "d", "f", "g"] {
            assert!(at(nowhere).is_none(), "{nowhere}");
        }
    }
}
