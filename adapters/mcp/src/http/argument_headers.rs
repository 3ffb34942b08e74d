//! Repeats arguments of a call in headers, if a tool's schema requests it with `x-mcp-header`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_http::header::{HeaderMap, HeaderName, HeaderValue};
use capstan_wire::{Json, object};
use serde_json::Value;

/// The keyword in a schema.
const KEYWORD: &str = "x-mcp-header";

/// The beginning and the end of a Base64-encoded header value.
const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// The largest integer that every JSON parser reads exactly.
const MAX_SAFE: i64 = (1 << 53) - 1;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArgumentHeader {
    header: HeaderName,
    /// The names of the properties that lead to the argument.
    path: Vec<String>,
}

/// An invalid `x-mcp-header` in the schema of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentHeaderError {
    #[error("`x-mcp-header` is not the name of a header")]
    Name,
    #[error("`x-mcp-header` is `{0}` twice")]
    Twice(String),
    #[error("`x-mcp-header` belongs to a parameter that is not a string, integer or boolean")]
    Type,
    #[error("`x-mcp-header` belongs to a parameter that is not always present")]
    Place,
}

/// The position in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Reached through properties only.
    Property,
    Elsewhere,
}

/// Reads the arguments of a tool that are repeated in headers.
pub(super) fn read(definition: &Json) -> Result<Vec<ArgumentHeader>, ArgumentHeaderError> {
    // Most tools have none; this avoids parsing their schemas.
    if !definition.as_str().contains(KEYWORD) {
        return Ok(Vec::new());
    }
    let schema = object::get(definition, "inputSchema").and_then(|schema| schema.read().ok());
    let mut argument_headers = Vec::new();
    if let Some(schema) = schema {
        walk(&schema, Place::Root, &mut Vec::new(), &mut argument_headers)?;
    }
    Ok(argument_headers)
}

fn walk(
    schema: &Value,
    place: Place,
    path: &mut Vec<String>,
    argument_headers: &mut Vec<ArgumentHeader>,
) -> Result<(), ArgumentHeaderError> {
    let Value::Object(members) = schema else { return Ok(()) };
    if let Some(name) = members.get(KEYWORD) {
        let mirror = mirror(name, members.get("type"), place, path)?;
        if argument_headers.iter().any(|other| other.header == mirror.header) {
            return Err(ArgumentHeaderError::Twice(name.as_str().unwrap_or_default().to_owned()));
        }
        argument_headers.push(mirror);
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let below =
                    if place == Place::Elsewhere { Place::Elsewhere } else { Place::Property };
                for (name, schema) in properties {
                    path.push(name.clone());
                    walk(schema, below, path, argument_headers)?;
                    path.pop();
                }
            }
            (
                "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(named),
            ) => {
                for schema in named.values() {
                    walk(schema, Place::Elsewhere, path, argument_headers)?;
                }
            }
            // These hold values, not schemas.
            ("default" | "enum" | "const" | "examples", _) => {}
            (_, Value::Array(schemas)) => {
                for schema in schemas {
                    walk(schema, Place::Elsewhere, path, argument_headers)?;
                }
            }
            (_, schema) => walk(schema, Place::Elsewhere, path, argument_headers)?,
        }
    }
    Ok(())
}

fn mirror(
    name: &Value,
    kind: Option<&Value>,
    place: Place,
    path: &[String],
) -> Result<ArgumentHeader, ArgumentHeaderError> {
    if place != Place::Property {
        return Err(ArgumentHeaderError::Place);
    }
    let name = name.as_str().filter(|name| !name.is_empty()).ok_or(ArgumentHeaderError::Name)?;
    let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes());
    let header = header.map_err(|_| ArgumentHeaderError::Name)?;
    let plain = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    let is_plain = match kind {
        Some(Value::Array(kinds)) => {
            let mut real = kinds.iter().filter(|kind| *kind != "null").peekable();
            real.peek().is_some() && real.all(plain)
        }
        Some(kind) => plain(kind),
        None => false,
    };
    if is_plain {
        Ok(ArgumentHeader { header, path: path.to_vec() })
    } else {
        Err(ArgumentHeaderError::Type)
    }
}

/// Adds the headers of a call.
pub(super) fn add(headers: &mut HeaderMap, argument_headers: &[ArgumentHeader], params: &Json) {
    if argument_headers.is_empty() {
        return;
    }
    let arguments: Option<Value> = object::get(params, "arguments").and_then(|a| a.read().ok());
    let Some(arguments) = arguments else { return };
    for mirror in argument_headers {
        let value = mirror.path.iter().try_fold(&arguments, |value, name| value.get(name));
        let text = value.and_then(text);
        headers.extend(text.and_then(|text| encode(&text)).map(|v| (mirror.header.clone(), v)));
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => whole(number),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// An integer in decimal, also if it was written as `42.0`.
fn whole(number: &serde_json::Number) -> Option<String> {
    let safe = |whole: i64| (-MAX_SAFE..=MAX_SAFE).contains(&whole).then(|| whole.to_string());
    if let Some(whole) = number.as_i64() {
        return safe(whole);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    format!("{float:.0}").parse().ok().and_then(safe)
}

/// Encodes a value for a header; Base64 if it is not plain text.
pub(super) fn encode(text: &str) -> Option<HeaderValue> {
    let printable = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let (begin, end) = SENTINEL;
    let mistakable = text.starts_with(begin) && text.ends_with(end);
    if printable && !padded && !mistakable {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("{begin}{}{end}", STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(properties: &str) -> Json {
        let schema = format!(r#"{{"inputSchema":{{"type":"object","properties":{properties}}}}}"#);
        Json::parse(schema).unwrap()
    }

    #[test]
    fn values_that_are_no_plain_text_are_wrapped() {
        let cases = [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b\tc", "a b\tc"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?open", "=?base64?open"),
        ];
        for (text, expected) in cases {
            assert_eq!(encode(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn arguments_reach_their_headers_as_they_are() {
        let tool = tool(
            r#"{"region":{"type":"string","x-mcp-header":"Region"},
                "n":{"type":"integer","x-mcp-header":"N"},
                "dry":{"type":["boolean","null"],"x-mcp-header":"Dry"},
                "x-mcp-header":{"type":"string"},
                "deep":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#,
        );
        let argument_headers = read(&tool).unwrap();
        let given = |arguments: &str| {
            let mut headers = HeaderMap::new();
            let params = Json::parse(format!(r#"{{"arguments":{arguments}}}"#)).unwrap();
            add(&mut headers, &argument_headers, &params);
            let mut lines: Vec<String> =
                headers.iter().map(|(k, v)| format!("{k}={}", v.to_str().unwrap())).collect();
            lines.sort();
            lines.join(" ")
        };
        assert_eq!(
            given(r#"{"region":"eu","n":-7,"dry":true,"deep":{"a":"ü"}}"#),
            "mcp-param-a==?base64?w7w=?= mcp-param-dry=true mcp-param-n=-7 mcp-param-region=eu"
        );
        assert_eq!(given(r#"{"n":42.0,"region":null,"deep":7}"#), "mcp-param-n=42");
        assert_eq!(given(r#"{"n":1.5,"region":["x"]}"#), "");
        assert_eq!(given("[]"), "");
    }

    #[test]
    fn annotations_that_break_a_rule_are_refused() {
        let string = |name: &str| format!(r#"{{"a":{{"type":"string","x-mcp-header":{name}}}}}"#);
        let names = [r#""""#, r#""a b""#, r#""a:b""#, r#""ü""#, r#""a\r\nb""#, "7", "null"];
        for name in names {
            assert_eq!(read(&tool(&string(name))), Err(ArgumentHeaderError::Name), "{name}");
        }
        for kind in [r#""number""#, r#""object""#, r#""array""#, r#""null""#, r#"["null"]"#, "7"] {
            let properties = format!(r#"{{"a":{{"type":{kind},"x-mcp-header":"A"}}}}"#);
            assert_eq!(read(&tool(&properties)), Err(ArgumentHeaderError::Type), "{kind}");
        }
        let one = r#"{"type":"string","x-mcp-header":"A"}"#;
        let elsewhere = [
            format!(r#"{{"a":{{"type":"array","items":{one}}}}}"#),
            format!(r#"{{"a":{{"anyOf":[{one}]}}}}"#),
            format!(r#"{{"a":{{"$defs":{{"b":{one}}}}}}}"#),
            format!(r#"{{"a":{{"not":{{"properties":{{"b":{one}}}}}}}}}"#),
        ];
        for properties in elsewhere {
            assert_eq!(read(&tool(&properties)), Err(ArgumentHeaderError::Place), "{properties}");
        }
        let twice = format!(r#"{{"a":{one},"b":{{"type":"string","x-mcp-header":"a"}}}}"#);
        assert_eq!(read(&tool(&twice)), Err(ArgumentHeaderError::Twice("a".to_owned())));
        let in_value = r#"{"a":{"type":"object","default":{"x-mcp-header":"A b"}}}"#;
        assert_eq!(read(&tool(in_value)), Ok(Vec::new()));
    }
}
