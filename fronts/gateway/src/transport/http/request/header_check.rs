//! Checks that the headers of a modern request repeat the values of its body.
//!
//! Proxies route by these headers; a mismatch could evade their rules.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_hub::catalog::RepeatedArguments;
use capstan_wire::{Json, object};
use hyper::header::{HeaderMap, HeaderName};

use crate::protocol::method::Method;
use crate::protocol::revision::Revision;
use crate::transport::http::request::request_body::VERSION;

/// `Mcp-Method`.
pub(crate) static METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// `Mcp-Name`.
pub(crate) static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Markers around a value that a header cannot carry unencoded.
const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// The header that does not match the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header `{0}` is missing or does not match the body")]
pub(crate) struct Mismatch(&'static str);

/// The values of a body that its headers repeat.
pub(crate) struct MirroredValues {
    /// The `_meta` of the params.
    pub(crate) meta: Option<Json>,
    /// The member that contains the name of the item, if the method has one.
    key: Option<&'static str>,
    /// The name of the item, as it was written.
    name: Option<Json>,
    /// The method.
    pub(crate) method: Option<Method>,
}

// === impl MirroredValues ===

impl MirroredValues {
    pub(crate) fn read(method: &str, params: Option<&Json>) -> Self {
        let method = Method::of(method, Revision::LATEST);
        let key = method.and_then(Method::name_key);
        let [meta, name] = match params {
            Some(params) => object::peek(params, ["_meta", key.unwrap_or("_meta")]),
            None => [None, None],
        };
        Self { meta, key, name: name.filter(|_| key.is_some()), method }
    }

    /// Reads params whose `_meta` was taken out.
    pub(crate) fn read_rest(method: &str, params: &Json) -> Self {
        let method = Method::of(method, Revision::LATEST);
        let key = method.and_then(Method::name_key);
        Self { meta: None, key, name: key.and_then(|key| object::get(params, key)), method }
    }

    /// The member that should contain the name, if it is not a string.
    pub(crate) fn no_text(&self) -> Option<&'static str> {
        self.key.filter(|_| self.name.as_ref().is_some_and(|name| name.text().is_none()))
    }
}

/// Checks that the header and the body have the same revision.
pub(crate) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), Mismatch> {
    let same = headers.get(&VERSION).is_some_and(|given| given == version);
    if same { Ok(()) } else { Err(Mismatch("MCP-Protocol-Version")) }
}

/// Checks that the headers and the body have the same method and name.
pub(crate) fn check(
    headers: &HeaderMap,
    method: &str,
    mirrored: &MirroredValues,
) -> Result<(), Mismatch> {
    if headers.get(&METHOD).is_none_or(|given| given != method) {
        return Err(Mismatch("Mcp-Method"));
    }
    if mirrored.key.is_none() {
        return Ok(());
    }
    let given = match headers.get(&NAME) {
        None => None,
        Some(given) => Some(given.to_str().ok().and_then(decode).ok_or(Mismatch("Mcp-Name"))?),
    };
    let name = mirrored.name.as_ref().and_then(Json::text);
    if given == name { Ok(()) } else { Err(Mismatch("Mcp-Name")) }
}

/// Reads the headers that repeat arguments. The pipeline compares them with the call.
pub(crate) fn repeated_arguments(headers: &HeaderMap) -> RepeatedArguments {
    let mut repeated = RepeatedArguments::default();
    for (name, value) in headers {
        repeated.add(name.as_str(), || Some(decode(value.to_str().ok()?)?.into_owned()));
    }
    repeated
}

/// Decodes a header value; `None` if its encoding is malformed.
fn decode(value: &str) -> Option<Cow<'_, str>> {
    let (begin, end) = SENTINEL;
    match value.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)) {
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_all(method: &str, params: &str, headers: &[(&'static str, &str)], bad: Option<&str>) {
        let given = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let params = Json::parse(params.to_owned()).unwrap();
        let mirrored = MirroredValues::read(method, Some(&params));
        let result = check(&given.collect(), method, &mirrored);
        assert_eq!(result.err().map(|Mismatch(name)| name), bad, "{method} {params} {headers:?}");
    }

    #[test]
    fn headers_must_repeat_method_and_name() {
        let (method, name) = (Some("Mcp-Method"), Some("Mcp-Name"));
        let call = |value| [("mcp-method", "tools/call"), ("mcp-name", value)];
        check_all("tools/list", "{}", &[("mcp-method", "tools/list")], None);
        check_all("tools/list", "{}", &[], method);
        check_all("tools/list", "{}", &[("mcp-method", "TOOLS/LIST")], method);
        check_all("tools/list", "{}", &[("mcp-method", "prompts/list")], method);
        check_all("tools/call", r#"{"name":"a"}"#, &call("a"), None);
        check_all("tools/call", r#"{"name":"a"}"#, &call("b"), name);
        check_all("tools/call", r#"{"name":"a"}"#, &call("A"), name);
        check_all("tools/call", r#"{"name":"a"}"#, &[("mcp-method", "tools/call")], name);
        check_all("tools/call", "{}", &call("a"), name);
        check_all("tools/call", r#"{"name":7}"#, &call("7"), name);
        let wrapped = [("=?base64?w7w=?=", None), ("=?base64?w7w?=", name), ("ü", name)];
        for (value, bad) in wrapped {
            check_all("tools/call", r#"{"name":"ü"}"#, &call(value), bad);
        }
        check_all("tools/call", r#"{"name":"=?base64?w7w="}"#, &call("=?base64?w7w="), None);
        let read = [("mcp-method", "resources/read"), ("mcp-name", "a://b")];
        check_all("resources/read", r#"{"uri":"a://b","name":"x"}"#, &read, None);
        check_all("resources/read", r#"{"uri":"a://c"}"#, &read, name);
        let get = [("mcp-method", "tasks/get"), ("mcp-name", "t1")];
        check_all("tasks/get", r#"{"taskId":"t1"}"#, &get, None);
        check_all("tasks/get", r#"{"taskId":"t2"}"#, &get, name);
        // A removed method must get its own error, whatever the headers are.
        check_all("tasks/result", r#"{"taskId":"t1"}"#, &[("mcp-method", "tasks/result")], None);
    }
}
