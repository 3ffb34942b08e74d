//! Arguments that a modern call repeats in headers, as the definition of its tool requires.
//!
//! Like the other headers, these must match the body.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Call, Freshness, Hub};
use capstan_model::{CallError, ItemId, Kind, ServerName};
use capstan_wire::{Json, object};
use hyper::header::{HeaderMap, HeaderName};

use crate::Client;
use crate::transport::http::request::header_check::{Mismatch, decode};

/// The schema keyword that names the header.
const KEYWORD: &str = "x-mcp-header";

/// Maximum depth of such an argument.
const MAX_DEPTH: usize = 16;

/// The headers that each server's tools require.
#[derive(Default)]
pub(crate) struct ArgumentHeaders(Mutex<HashMap<ServerName, CachedTools>>);

/// The headers that a server's tools require, cached for one version of its list.
struct CachedTools {
    list: Arc<[Item]>,
    /// Only the tools that require headers.
    tools: HashMap<String, Arc<[ArgumentHeader]>>,
}

/// An argument that is repeated in a header.
#[derive(Debug, PartialEq, Eq)]
struct ArgumentHeader {
    header: HeaderName,
    path: Vec<String>,
}

// === impl ArgumentHeaders ===

impl ArgumentHeaders {
    /// Checks that the headers of a call repeat the arguments that its tool requires.
    pub(crate) async fn check(
        &self,
        hub: &Hub,
        headers: &HeaderMap,
        client: &Client,
        name: &str,
        params: &Json,
    ) -> Result<(), Mismatch> {
        let target = client.view().target(Kind::Tool, name);
        let id = hub.ids_of(&target).next().map(|id| hub.catalog().overrides.own_name(id));
        let Some(ItemId { server, item }) = id else { return Ok(()) };
        if !hub.has(&server) {
            return Ok(());
        }
        // The pipeline refuses a server beyond the caller's reach like one that does not exist.
        if hub.policy().out_of_reach(client.caller(), &server).is_some() {
            return Ok(());
        }
        let record = || {
            let call = Call::new(Arc::clone(client.caller()), target.clone(), None);
            hub.begin(&call)
        };
        let list = if let Some(list) = hub.listed(&server, Listing::Tools) {
            list
        } else {
            // The client may disconnect while its server starts; the attempt is recorded.
            let attempt = record();
            let list = hub.list(&server, Listing::Tools, Freshness::Current).await;
            attempt.pass_on();
            // Without a list, the call fails for the same reason and with a better error.
            let Ok(list) = list else { return Ok(()) };
            list
        };
        let Some(required) = self.of(&server, &list, &item) else { return Ok(()) };
        let known = list.iter().find(|one| one.name == item);
        if !known.is_some_and(|tool| hub.shows_tool(client.caller(), &server, tool)) {
            return Ok(());
        }
        let arguments = object::get(params, "arguments");
        for ArgumentHeader { header, path } in &*required {
            let given = headers.get(header).map(|given| given.to_str().ok().and_then(decode));
            let expected = arguments.as_ref().and_then(|arguments| text_at(arguments, path));
            if given != expected.map(Some) {
                let problem = "a header does not repeat its argument".to_owned();
                let item = name.to_owned();
                record().refuse(CallError::InvalidArguments { item, problem });
                return Err(Mismatch::PARAM);
            }
        }
        Ok(())
    }

    fn of(
        &self,
        server: &ServerName,
        list: &Arc<[Item]>,
        tool: &str,
    ) -> Option<Arc<[ArgumentHeader]>> {
        let mut servers = self.servers();
        if let Some(known) = servers.get(server)
            && Arc::ptr_eq(&known.list, list)
        {
            return known.tools.get(tool).cloned();
        }
        let asks = |item: &Item| {
            let required = read(&item.definition);
            (!required.is_empty()).then(|| (item.name.clone(), required.into()))
        };
        let tools: HashMap<String, Arc<[ArgumentHeader]>> = list.iter().filter_map(asks).collect();
        let required = tools.get(tool).cloned();
        servers.insert(server.clone(), CachedTools { list: Arc::clone(list), tools });
        required
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerName, CachedTools>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the arguments of a tool that must be repeated.
fn read(definition: &Json) -> Vec<ArgumentHeader> {
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
    let header = name.map(|name| HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()));
    if let Some(Ok(header)) = header {
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
    fn a_definition_says_what_is_repeated() {
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
