//! The results of `search_tools` and `describe_tool`.

use std::time::Duration;

use capstan_model::{CallError, CallTools, Effect, Kind, Target};
use capstan_safety::clean::clean;
use capstan_wire::{Json, compose, object};
use serde_json::Value;

use super::{OwnTool, ToolOffer};
use crate::catalog::{Alphabet, TOOL, ToolView};
use crate::hub::Hub;
use crate::search::{Found, FoundTool, MAX_QUERIES, Search, ToolPool, signature};

/// Maximum number of tools that a client may ask for.
const MAX_LIMIT: u64 = 50;

/// Maximum length of a tool's purpose, in characters.
const MAX_PURPOSE: usize = 160;

/// How long a search waits for embeddings. Until then, tools are found by their words.
const WAIT: Duration = Duration::from_secs(2);

/// Searches with the arguments of `search_tools` and returns its result.
///
/// # Errors
/// When the arguments are not those of `search_tools`.
pub async fn search(
    hub: &Hub,
    offer: &ToolOffer,
    pool: &ToolPool,
    (calls, arguments): (CallTools, &Json),
) -> Result<Json, CallError> {
    let wanted = Wanted::read(arguments, offer.top_k).map_err(|problem| {
        let item = OwnTool::Search.name().to_owned();
        CallError::InvalidArguments { item, problem }
    })?;
    let Wanted { queries, limit } = wanted;
    let search = Search { queries, limit, min_similarity: offer.min_similarity, wait: WAIT };
    let Found { tools, .. } = pool.search(&*offer.index, &search).await;
    let line = |found: &FoundTool| line(hub, pool, found, calls);
    let lines: Vec<String> = tools.iter().filter_map(line).collect();
    if lines.is_empty() {
        return Ok(text("No tool fits. Search again in other words, or for a part of the task."));
    }
    Ok(text(&lines.join("\n")))
}

/// Returns the result of `describe_tool`: the definition of one of the tools in `pool`, as a list
/// shows it. A tool that is not among them does not exist for the caller.
///
/// # Errors
/// When the arguments are not those of `describe_tool`.
pub fn describe(hub: &Hub, pool: &ToolPool, arguments: &Json) -> Result<Json, CallError> {
    let Some(name) = object::get_string(arguments, "name") else {
        let (item, problem) = (OwnTool::Describe.name().to_owned(), "`name` must be a string");
        return Err(CallError::InvalidArguments { item, problem: problem.to_owned() });
    };
    let target = Target::spelled(Kind::Tool, &name);
    let meant: Vec<_> = hub.ids_of(&target).collect();
    let is_it = |tool: &&ToolView| {
        public(hub, tool) == name || meant.contains(&tool.id) || meant.contains(&tool.shown_id())
    };
    let Some(tool) = pool.tools().iter().find(is_it) else {
        let (kind, nearest) = (Kind::Tool, Vec::new());
        return Err(CallError::Unknown { kind, name, nearest });
    };
    Ok(text(definition(hub, tool).as_str()))
}

/// The arguments of `search_tools`.
struct Wanted {
    queries: Vec<String>,
    limit: usize,
}

// === impl Wanted ===

impl Wanted {
    fn read(arguments: &Json, top_k: usize) -> Result<Self, String> {
        const QUERIES: &str = "`queries` must be a list of strings, one for each step of the task";
        let read = |key| object::get(arguments, key).and_then(|json| json.read::<Value>().ok());
        let queries = match read("queries") {
            Some(Value::String(query)) => vec![query],
            Some(Value::Array(queries)) => {
                let text = |query: &Value| query.as_str().map(str::to_owned);
                let queries: Option<Vec<String>> = queries.iter().map(text).collect();
                queries.ok_or_else(|| QUERIES.to_owned())?
            }
            Some(_) | None => return Err(QUERIES.to_owned()),
        };
        if queries.iter().all(|query| query.trim().is_empty()) {
            return Err("`queries` is empty; say what the tool should do".to_owned());
        }
        if queries.len() > MAX_QUERIES {
            return Err(format!("more than {MAX_QUERIES} queries; search again for the rest"));
        }
        let limit = match read("limit") {
            None | Some(Value::Null) => top_k,
            Some(limit) => {
                let limit = limit.as_u64().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                limit.ok_or_else(|| format!("`limit` must be a number from 1 to {MAX_LIMIT}"))?
            }
        };
        Ok(Self { queries, limit })
    }
}

/// One tool on one line: name, arguments, effect, purpose, and equivalent tools.
fn line(hub: &Hub, pool: &ToolPool, found: &FoundTool, calls: CallTools) -> Option<String> {
    let tool = pool.tools().get(found.position)?;
    let mut line = format!("{}{}", public(hub, tool), signature(&tool.input_schema()));
    if calls == CallTools::ByEffect {
        line.push_str(match tool.effect {
            Effect::Read => " [read]",
            Effect::Write | Effect::Unknown => " [write]",
        });
    }
    let purpose = purpose(&tool.description);
    if !purpose.is_empty() {
        line.push_str(" - ");
        line.push_str(&purpose);
    }
    let others = found.alternatives.iter().filter_map(|other| pool.tools().get(*other));
    let others: Vec<String> = others.map(|other| public(hub, other)).collect();
    if !others.is_empty() {
        line.push_str(" (also: ");
        line.push_str(&others.join(", "));
        line.push(')');
    }
    Some(line)
}

/// The name by which the client calls the tool.
fn public(hub: &Hub, tool: &ToolView) -> String {
    let given = hub.catalog.names.public(Kind::Tool, Alphabet::Usual, &tool.id);
    given.map_or_else(|| tool.shown_id().to_string(), |given| given.to_string())
}

/// The definition of a tool as the list of all servers shows it.
fn definition(hub: &Hub, tool: &ToolView) -> Json {
    let mapped = hub.catalog.uris.shown_in(&tool.id.server, &tool.definition, TOOL);
    let shown = mapped.unwrap_or_else(|| tool.definition.clone());
    let named = object::with_member(&shown, "name", &compose::string(&public(hub, tool)));
    named.unwrap_or(shown)
}

/// The first sentence of a description, on one line.
fn purpose(description: &str) -> String {
    let words = clean(description.get(..description.floor_char_boundary(2000)).unwrap_or_default());
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    let sentence = line.get(..end).unwrap_or_default();
    let cut: String = sentence.chars().take(MAX_PURPOSE).collect();
    let dots = if cut.len() < sentence.len() { "…" } else { "" };
    format!("{cut}{dots}")
}

/// The result of a tool that is a text.
fn text(text: &str) -> Json {
    let (kind, text) = (compose::string("text"), compose::string(text));
    let block = compose::object(&[("type", &kind), ("text", &text)]);
    compose::object(&[("content", &compose::array(&[block]))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_purpose_of_a_tool_is_its_first_sentence_on_one_line() {
        for (description, expected) in [
            ("Creates an issue. Needs a token.", "Creates an issue."),
            ("  Lists\n\tfiles  ", "Lists files"),
            ("Version 1.2 of it", "Version 1.2 of it"),
            ("", ""),
        ] {
            assert_eq!(purpose(description), expected);
        }
        let long = purpose(&"word ".repeat(500_000));
        assert_eq!(long.chars().count(), MAX_PURPOSE + 1);
        assert!(!purpose("a\u{1b}[2J\u{202e}b").contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn arguments_of_a_search_are_checked() {
        let read = |text: &str| Wanted::read(&Json::parse(text.to_owned()).unwrap(), 7);
        let fine = read(r#"{"queries":["a","b"]}"#).unwrap();
        assert_eq!((fine.queries.len(), fine.limit), (2, 7));
        assert_eq!(read(r#"{"queries":"a","limit":3}"#).unwrap().limit, 3);
        for wrong in [
            "{}",
            "[]",
            r#"{"queries":[]}"#,
            r#"{"queries":[" "]}"#,
            r#"{"queries":[1]}"#,
            r#"{"queries":{}}"#,
            r#"{"query":"a"}"#,
            r#"{"queries":["a"],"limit":0}"#,
            r#"{"queries":["a"],"limit":51}"#,
            r#"{"queries":["a"],"limit":"x"}"#,
            r#"{"queries":["1","2","3","4","5","6","7","8","9"]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
