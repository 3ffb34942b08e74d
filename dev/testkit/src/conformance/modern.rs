//! What the revision 2026-07-28 wants of every request and every result.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use serde_json::{Value, json};

use super::call::{META_CAPABILITIES, META_SERVER, META_VERSION};
use super::message::{Fault, INVALID_PARAMS, MODERN, Reply, Request, set};
use super::server::info;
use super::tools;

const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Results that say how long they may be kept.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Another value than a gateway would think of, to see whether it arrives.
const TTL_MS: u64 = 1000;

/// Refuses a request whose metadata are not complete, or of another revision.
pub(super) fn check(request: &Request) -> Result<(), Fault> {
    let lacks = |key: &str| Fault::new(INVALID_PARAMS, format!("`_meta` lacks `{key}`"));
    let version = request.meta(META_VERSION).and_then(Value::as_str);
    let version = version.ok_or_else(|| lacks(META_VERSION))?;
    if version != MODERN.name() {
        let data = json!({ "supported": [MODERN.name()], "requested": version });
        return Err(Fault::new(UNSUPPORTED_VERSION, "unsupported protocol version").with(data));
    }
    match request.meta(META_CAPABILITIES) {
        Some(Value::Object(_)) => Ok(()),
        Some(_) | None => Err(lacks(META_CAPABILITIES)),
    }
}

/// Refuses a request over HTTP whose headers do not say what its body says.
pub(super) fn check_headers(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    let version = header(headers, "mcp-protocol-version")?;
    match (version, request.meta(META_VERSION).and_then(Value::as_str)) {
        (None, _) => return Err(mismatch("mcp-protocol-version")),
        (Some(header), Some(body)) if header != body => {
            return Err(mismatch("mcp-protocol-version"));
        }
        (Some(_), _) => check(request)?,
    }
    if header(headers, "mcp-method")?.as_deref() != Some(request.method.as_str()) {
        return Err(mismatch("mcp-method"));
    }
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => request.params.get("name"),
        "resources/read" => request.params.get("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => request.params.get("taskId"),
        _ => None,
    };
    if let Some(name) = name.and_then(Value::as_str)
        && header(headers, "mcp-name")?.as_deref() != Some(name)
    {
        return Err(mismatch("mcp-name"));
    }
    if request.method == "tools/call" { check_arguments(headers, request) } else { Ok(()) }
}

/// Compares the arguments that a tool wants repeated in headers.
fn check_arguments(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    let schema = tools::schema(request.text("/name")).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (argument, property) in properties.into_iter().flatten() {
        let Some(suffix) = property.get("x-mcp-header").and_then(Value::as_str) else { continue };
        let body = match request.argument(argument) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        let name = format!("mcp-param-{}", suffix.to_lowercase());
        if header(headers, &name)? != body {
            return Err(mismatch(&name));
        }
    }
    Ok(())
}

/// A header, decoded where it is encoded.
fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Fault> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let value = value.to_str().map_err(|_| mismatch(name))?.trim();
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Ok(Some(value.to_owned())) };
    let bytes = STANDARD.decode(encoded).map_err(|_| mismatch(name))?;
    String::from_utf8(bytes).map(Some).map_err(|_| mismatch(name))
}

fn mismatch(name: &str) -> Fault {
    Fault::new(HEADER_MISMATCH, format!("the header `{name}` does not say what the body says"))
}

/// Adds what every result of that method has.
pub(super) fn finish(method: &str, reply: Reply) -> Reply {
    match reply {
        Reply::Result(mut result) => {
            set(&mut result, "resultType", json!("complete"));
            if CACHEABLE.contains(&method) {
                set(&mut result, "ttlMs", json!(TTL_MS));
                set(&mut result, "cacheScope", json!("public"));
            }
            set(&mut result, "_meta", json!({ META_SERVER: info() }));
            Reply::Result(result)
        }
        Reply::Raw(text) => {
            let body = text.strip_suffix('}').unwrap_or(&text);
            Reply::Raw(format!(r#"{body},"resultType":"complete"}}"#))
        }
        other @ (Reply::Special(_) | Reply::Fault(_) | Reply::Silence) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, params: Value) -> Request {
        let mut params = params;
        set(&mut params, "_meta", json!({ META_VERSION: MODERN.name(), META_CAPABILITIES: {} }));
        Request { id: json!(1), method: method.to_owned(), params }
    }

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-protocol-version", MODERN.name().parse().unwrap());
        for (name, value) in given {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    fn code(given: &[(&'static str, &'static str)], request: &Request) -> Option<i64> {
        check_headers(&headers(given), request).err().map(|fault| fault.code)
    }

    #[test]
    fn headers_must_say_what_the_body_says() {
        let call = request("tools/call", json!({ "name": "greet", "arguments": {} }));
        let method = ("mcp-method", "tools/call");
        for fine in ["greet", " greet ", "=?base64?Z3JlZXQ=?="] {
            assert_eq!(code(&[method, ("mcp-name", fine)], &call), None, "{fine}");
        }
        let wrong: [&[_]; 5] = [
            &[],
            &[method],
            &[method, ("mcp-name", "Greet")],
            &[method, ("mcp-name", "=?base64?Z3JlZXQ?=")],
            &[("mcp-method", "TOOLS/CALL"), ("mcp-name", "greet")],
        ];
        for given in wrong {
            assert_eq!(code(given, &call), Some(HEADER_MISMATCH), "{given:?}");
        }
    }

    #[test]
    fn arguments_that_a_tool_wants_in_headers_must_be_there_and_only_then() {
        let call = |arguments: Value| {
            request("tools/call", json!({ "name": "test_custom_header", "arguments": arguments }))
        };
        let base = [("mcp-method", "tools/call"), ("mcp-name", "test_custom_header")];
        let check = |more: &[(&'static str, &'static str)], arguments: Value| {
            code(&[&base, more].concat(), &call(arguments))
        };
        assert_eq!(check(&[("mcp-param-region", "eu")], json!({ "region": "eu" })), None);
        assert_eq!(check(&[("mcp-param-priority", "3")], json!({ "priority": 3 })), None);
        assert_eq!(check(&[], json!({ "region": null, "query": "x" })), None);
        let refused = Some(HEADER_MISMATCH);
        assert_eq!(check(&[], json!({ "region": "eu" })), refused);
        assert_eq!(check(&[("mcp-param-region", "us")], json!({ "region": "eu" })), refused);
        assert_eq!(check(&[("mcp-param-region", "eu")], json!({})), refused);
    }

    #[test]
    fn metadata_must_be_complete_and_of_this_revision() {
        let with = |meta: Value| Request {
            id: json!(1),
            method: "tools/list".to_owned(),
            params: json!({ "_meta": meta }),
        };
        let code = |meta| check(&with(meta)).err().map(|fault| fault.code);
        let version = MODERN.name();
        assert_eq!(code(json!({ META_VERSION: version, META_CAPABILITIES: {} })), None);
        assert_eq!(code(json!({ META_VERSION: version })), Some(INVALID_PARAMS));
        assert_eq!(code(json!({ META_CAPABILITIES: {} })), Some(INVALID_PARAMS));
        assert_eq!(code(json!({})), Some(INVALID_PARAMS));
        let old = json!({ META_VERSION: "2025-11-25", META_CAPABILITIES: {} });
        assert_eq!(code(old), Some(UNSUPPORTED_VERSION));
    }
}
