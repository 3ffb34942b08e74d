//! Capstan's own tools for the model of a conversation: `search_tools`, `describe_tool`, `call_tool`
//! and `read_resource`.
//!
//! `call_tool` only names another tool. The call takes the road under the name of that tool, so that
//! rules, pins, quotas and the audit log see the real one.

use capstan_hub::ports::{ToolCall, ToolOffer};
use capstan_hub::search::MAX_QUERIES;
use capstan_wire::{Json, object};
use serde::Deserialize;

use crate::AppError;

/// Finds tools.
const SEARCH: &str = "search_tools";

/// Returns the definition of a tool.
const DESCRIBE: &str = "describe_tool";

/// Calls a tool that is not offered by itself.
const CALL: &str = "call_tool";

/// Reads a resource.
const READ: &str = "read_resource";

/// Number of tools that a search returns, unless the model asks for another.
const FOUND: usize = 5;

/// Maximum number of tools that the model can ask for.
const MAX_FOUND: usize = 20;

/// A call of one of the own tools.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnCall {
    /// Finds tools.
    Search {
        /// One short query for each part of the task.
        queries: Vec<String>,
        /// Maximum number of tools.
        limit: usize,
    },
    /// Describes a tool.
    Describe(String),
    /// Calls a tool with arguments.
    Call(String, Json),
    /// Reads a resource, by its server and URI or by the address of a page.
    Read {
        /// The server.
        server: Option<String>,
        /// The URI.
        uri: String,
    },
}

#[derive(Deserialize)]
struct SearchArguments {
    queries: Vec<String>,
    limit: Option<usize>,
}

// === impl OwnCall ===

impl OwnCall {
    /// Reads a call; `None` if it is a call of a server's tool.
    ///
    /// # Errors
    /// If it is one of the own tools and its arguments do not fit.
    pub(super) fn of(call: &ToolCall) -> Option<Result<Self, AppError>> {
        if ![SEARCH, DESCRIBE, CALL, READ].contains(&call.name.as_str()) {
            return None;
        }
        Some(match &call.problem {
            Some(problem) => Err(AppError::usage(format!("`{}`: {problem}", call.name))),
            None => Self::read(&call.name, &call.arguments),
        })
    }

    fn read(name: &str, arguments: &Json) -> Result<Self, AppError> {
        let word = |key: &str| {
            object::get_string(arguments, key).filter(|word| !word.trim().is_empty()).ok_or_else(
                || AppError::usage(format!("`{name}`: the argument `{key}` must be a text")),
            )
        };
        match name {
            SEARCH => search(arguments),
            DESCRIBE => Ok(Self::Describe(word("tool")?)),
            CALL => {
                let given = object::get(arguments, "arguments");
                let given = given.filter(|json| json.as_str() != "null");
                // Some models write an object of unknown members as a text.
                let text = object::get_string(arguments, "arguments");
                let given = match text.map(Json::parse) {
                    Some(Ok(object)) => Some(object),
                    Some(Err(_)) => {
                        let problem = format!("`{name}`: the argument `arguments` is no object");
                        return Err(AppError::usage(problem));
                    }
                    None => given,
                };
                Ok(Self::Call(word("tool")?, given.unwrap_or_else(Json::empty_object)))
            }
            _ => Ok(Self::Read {
                server: object::get_string(arguments, "server").filter(|name| !name.is_empty()),
                uri: word("uri")?,
            }),
        }
    }
}

fn search(arguments: &Json) -> Result<OwnCall, AppError> {
    let wrong = |problem: &str| AppError::usage(format!("`{SEARCH}`: {problem}"));
    let read: Result<SearchArguments, _> = arguments.read();
    let Ok(SearchArguments { queries, limit }) = read else {
        return Err(wrong("`queries` must be a list of texts, `limit` a number"));
    };
    if queries.iter().all(|query| query.trim().is_empty()) {
        return Err(wrong("`queries` is empty; write one short query for each part of the task"));
    }
    if queries.len() > MAX_QUERIES {
        return Err(wrong(&format!("more than {MAX_QUERIES} queries; search again for the rest")));
    }
    Ok(OwnCall::Search { queries, limit: limit.unwrap_or(FOUND).clamp(1, MAX_FOUND) })
}

/// The tool that a call means: that of `call_tool`, else the called one.
pub(super) fn meant(call: &ToolCall) -> String {
    let named = (call.name == CALL).then(|| object::get_string(&call.arguments, "tool")).flatten();
    named.unwrap_or_else(|| call.name.clone())
}

/// True if a server's tool cannot be offered under this name.
pub(super) fn is_own(name: &str) -> bool {
    [SEARCH, DESCRIBE, CALL, READ].contains(&name)
}

/// The tools to reach those that are not offered.
pub(super) fn searching() -> [ToolOffer; 3] {
    [
        offer(
            SEARCH,
            "Finds tools that you are not offered. Write one short query for each part of the task. \
             Returns names, purposes and arguments; call what you found with `call_tool`.",
            &format!(
                r#"{{"type":"object","properties":{{"queries":{{"type":"array","items":{{"type":"string"}},"description":"1 to {MAX_QUERIES} short queries"}},"limit":{{"type":"integer","description":"Number of tools, {FOUND} by default, at most {MAX_FOUND}"}}}},"required":["queries"]}}"#
            ),
        ),
        offer(
            DESCRIBE,
            "Returns the description and the whole argument schema of a tool.",
            r#"{"type":"object","properties":{"tool":{"type":"string","description":"Name from search_tools"}},"required":["tool"]}"#,
        ),
        offer(
            CALL,
            "Calls a tool that `search_tools` found.",
            r#"{"type":"object","properties":{"tool":{"type":"string","description":"Name from search_tools"},"arguments":{"type":"object","description":"The arguments of that tool"}},"required":["tool"]}"#,
        ),
    ]
}

/// The tool that reads resources.
pub(super) fn reading() -> ToolOffer {
    offer(
        READ,
        "Reads a resource of a server, or a page of a long answer.",
        r#"{"type":"object","properties":{"uri":{"type":"string","description":"URI of the resource or page"},"server":{"type":"string","description":"Name of the server; not needed for a page"}},"required":["uri"]}"#,
    )
}

fn offer(name: &str, description: &str, schema: &str) -> ToolOffer {
    // The schemas are constants; a test parses them.
    let schema = Json::parse(schema.to_owned()).unwrap_or_else(|_| Json::empty_object());
    ToolOffer { name: name.to_owned(), description: description.to_owned(), schema }
}

#[cfg(test)]
mod tests {
    use capstan_hub::catalog::Provider;

    use super::*;

    fn call(name: &str, arguments: &str) -> ToolCall {
        let arguments = Json::parse(arguments.to_owned()).unwrap();
        ToolCall { id: "1".into(), name: name.into(), arguments, problem: None, extra: None }
    }

    #[test]
    fn arguments_of_own_tools_are_read_and_refused() {
        let read = |name, arguments| OwnCall::of(&call(name, arguments)).unwrap();
        let queries = vec!["a".to_owned()];
        let search = read(SEARCH, r#"{"queries":["a"],"limit":99}"#).unwrap();
        assert_eq!(search, OwnCall::Search { queries, limit: MAX_FOUND });
        let OwnCall::Call(tool, arguments) = read(CALL, r#"{"tool":"s__t"}"#).unwrap() else {
            panic!("it is a call");
        };
        assert_eq!((tool.as_str(), arguments.as_str()), ("s__t", "{}"));
        let OwnCall::Call(_, text) = read(CALL, r#"{"tool":"t","arguments":"{\"a\":1}"}"#).unwrap()
        else {
            panic!("it is a call");
        };
        assert_eq!(text.as_str(), r#"{"a":1}"#);
        let page = read(READ, r#"{"uri":"a:b"}"#).unwrap();
        assert_eq!(page, OwnCall::Read { server: None, uri: "a:b".to_owned() });
        for (name, arguments) in [
            (SEARCH, "{}"),
            (SEARCH, r#"{"queries":[]}"#),
            (SEARCH, r#"{"queries":[" "]}"#),
            (SEARCH, r#"{"queries":"a"}"#),
            (SEARCH, r#"{"queries":["1","2","3","4","5","6","7","8","9"]}"#),
            (SEARCH, r#"{"queries":["a"],"limit":-1}"#),
            (DESCRIBE, "{}"),
            (DESCRIBE, r#"{"tool":7}"#),
            (CALL, r#"{"arguments":{}}"#),
            (CALL, r#"{"tool":"t","arguments":"a=1"}"#),
            (READ, r#"{"server":"s"}"#),
        ] {
            assert!(read(name, arguments).is_err(), "{name} {arguments}");
        }
        assert!(OwnCall::of(&call("s__search_tools", "{}")).is_none());
    }

    #[test]
    fn every_provider_accepts_the_schemas_of_own_tools() {
        for tool in searching().into_iter().chain([reading()]) {
            assert!(tool.schema.len() > 50, "{}", tool.name);
            for provider in [Provider::Anthropic, Provider::OpenAi, Provider::Gemini] {
                provider.fit(&tool.schema).unwrap();
            }
        }
    }

    #[test]
    fn a_call_by_name_means_the_named_tool() {
        assert_eq!(meant(&call(CALL, r#"{"tool":"s__t"}"#)), "s__t");
        assert_eq!(meant(&call("s__u", r#"{"tool":"s__t"}"#)), "s__u");
        assert_eq!(meant(&call(CALL, "[]")), CALL);
    }
}
