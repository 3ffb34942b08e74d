//! Arguments that a modern call over HTTP repeats in headers, as the definition of its tool requires.
//!
//! Proxies route by these headers; a mismatch could evade their rules.

use std::collections::HashMap;

use capstan_model::{CallError, ItemId};
use capstan_wire::{Json, object};

/// The schema keyword that names the header.
const KEYWORD: &str = "x-mcp-header";

/// The beginning of the names of these headers.
const HEADER_PREFIX: &str = "mcp-param-";

/// Maximum depth of such an argument.
const MAX_DEPTH: usize = 16;

/// The arguments that a request repeats in headers.
#[derive(Clone, Debug, Default)]
pub struct RepeatedArguments(HashMap<String, Option<String>>);

/// An argument that is repeated in a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgumentHeader {
    /// In lower case.
    header: String,
    path: Vec<String>,
}

// === impl RepeatedArguments ===

impl RepeatedArguments {
    /// Adds a header of the request if it repeats an argument. The name is in lower case; `decode`
    /// returns the value, or `None` if it is malformed.
    pub fn add(&mut self, name: &str, decode: impl FnOnce() -> Option<String>) {
        if name.starts_with(HEADER_PREFIX) {
            self.0.insert(name.to_owned(), decode());
        }
    }

    /// Checks that the arguments in `params` are repeated as the tool requires.
    pub(crate) fn check(
        &self,
        id: &ItemId,
        required: &[ArgumentHeader],
        params: &Json,
    ) -> Result<(), CallError> {
        if required.is_empty() {
            return Ok(());
        }
        let arguments = object::get(params, "arguments");
        for ArgumentHeader { header, path } in required {
            let expected = arguments.as_ref().and_then(|arguments| text_at(arguments, path));
            if self.0.get(header).cloned() != expected.map(Some) {
                let (item, header) = (id.to_string(), header.clone());
                return Err(CallError::HeaderMismatch { item, header });
            }
        }
        Ok(())
    }
}

/// Reads the arguments of a tool that must be repeated.
pub(super) fn read(definition: &Json) -> Vec<ArgumentHeader> {
    let mut required = Vec::new();
    // Fast path: most tools have none.
    if definition.as_str().contains(KEYWORD)
        && let Some(schema) = object::get(definition, "inputSchema")
    {
        walk(&schema, &mut Vec::new(), &mut required);
    }
    required
}

fn walk(schema: &Json, path: &mut Vec<String>, required: &mut Vec<ArgumentHeader>) {
    let [keyword, properties] = object::peek(schema, [KEYWORD, "properties"]);
    let name = keyword.and_then(|name| name.read::<String>().ok()).filter(|name| !name.is_empty());
    if let Some(name) = name.filter(|name| name.bytes().all(is_header_byte)) {
        let header = format!("{HEADER_PREFIX}{}", name.to_ascii_lowercase());
        required.push(ArgumentHeader { header, path: path.clone() });
    }
    if path.len() >= MAX_DEPTH {
        return;
    }
    let properties = properties.and_then(|properties| object::members(&properties).ok());
    for (name, schema) in properties.unwrap_or_default() {
        path.push(name);
        walk(&schema, path, required);
        path.pop();
    }
}

/// True for the bytes that the name of a header may have.
fn is_header_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The text of an argument in the form of a header; `None` for values that headers do not repeat.
fn text_at(arguments: &Json, path: &[String]) -> Option<String> {
    let value = path.iter().try_fold(arguments.clone(), |value, name| object::get(&value, name))?;
    let text = value.as_str();
    match text.bytes().next()? {
        b'"' => value.read().ok(),
        b't' | b'f' => Some(text.to_owned()),
        b'-' | b'0'..=b'9' if value.read::<i64>().is_ok() => Some(text.to_owned()),
        b'-' | b'0'..=b'9' => {
            let number = value.read::<f64>().ok().filter(|number| number.fract() == 0.0)?;
            Some(format!("{number:.0}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_definition_names_the_arguments_that_are_repeated() {
        let definition = json(
            r#"{"name":"t","inputSchema":{"properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "plain":{"type":"string"},
                "bad":{"type":"string","x-mcp-header":"a b"},
                "odd":{"type":"string","x-mcp-header":7},
                "deep":{"type":"object","properties":{"n":{"x-mcp-header":"N"}}}}}}"#,
        );
        let paths: Vec<String> = read(&definition)
            .iter()
            .map(|repeat| format!("{} {}", repeat.header, repeat.path.join(".")))
            .collect();
        assert_eq!(paths, ["mcp-param-region region", "mcp-param-n deep.n"]);
        assert_eq!(read(&json(r#"{"name":"x-mcp-header"}"#)), []);
    }

    #[test]
    fn values_are_repeated_as_plain_text() {
        let arguments = json(r#"{"a":"x\u00e9","b":true,"c":-7,"d":42.0,"e":1.5,"f":null,"g":[]}"#);
        let at = |name: &str| text_at(&arguments, &[name.to_owned()]);
        let expected = [
            ("a", Some("xé")),
            ("b", Some("true")),
            ("c", Some("-7")),
            ("d", Some("42")),
            ("e", None),
            ("f", None),
            ("g", None),
            ("none", None),
        ];
        for (name, text) in expected {
            assert_eq!(at(name).as_deref(), text, "{name}");
        }
    }
}
