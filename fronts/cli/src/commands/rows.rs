//! Tool definitions in a file, one JSON object per line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use capstan_app::AppError;
use capstan_wire::{Json, object};

/// A definition, with its origin as given on the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) id: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) name: String,
    /// The definition as it was written.
    pub(crate) json: Json,
    /// An answer, if the line has one instead of a definition.
    pub(crate) text: Option<String>,
    /// Tools of other servers, if the line names some.
    pub(crate) peers: Vec<Json>,
}

/// What a line may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allow {
    /// A definition.
    Definitions,
    /// A definition, or an answer as `text`.
    Answers,
}

/// Maximum length of a line and maximum number of lines of a file.
const MAX_LINE: u64 = 16 * 1024 * 1024;
const MAX_LINES: usize = 1_000_000;

/// Reads a file.
///
/// # Errors
/// If it cannot be read, or a line is not a definition; the message names the line.
pub(crate) fn read(path: &Path, allow: Allow) -> Result<Vec<Definition>, AppError> {
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| AppError::usage(format!("cannot read `{shown}`: {error}"));
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut definitions = Vec::new();
    for number in 1..=MAX_LINES {
        let mut line = Vec::new();
        let read = file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(unreadable)?;
        if read == 0 {
            return Ok(definitions);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let definition = parse(line, allow).map_err(|problem| {
            AppError::usage(format!("`{shown}`, line {number}: {problem}"))
                .hint("each line is a tool: {\"server\": \"…\", \"name\": \"…\", \"description\": \"…\", \"inputSchema\": {…}}")
        })?;
        definitions.push(definition);
    }
    Err(AppError::usage(format!("`{shown}` has more than {MAX_LINES} lines")))
}

/// Parses a line: a definition, or an object that has one as `tool`.
fn parse(line: Vec<u8>, allow: Allow) -> Result<Definition, String> {
    let row = Json::parse(line).map_err(|_| "not valid JSON".to_owned())?;
    object::members(&row).map_err(|_| "not an object".to_owned())?;
    // `tool` may also be just a name.
    let inner = object::get(&row, "tool").filter(|tool| tool.as_bytes().starts_with(b"{"));
    let json = inner.unwrap_or_else(|| row.clone());
    let said = |key| object::get_string(&row, key).or_else(|| object::get_string(&json, key));
    let name = object::get_string(&json, "name").or_else(|| object::get_string(&row, "tool"));
    let text =
        object::get_string(&row, "text").filter(|_| name.is_none() && allow == Allow::Answers);
    let name = name.or_else(|| text.as_ref().map(|_| "answer".to_owned()));
    let name = name.ok_or("a tool needs a `name`")?;
    let peers = object::get(&row, "peers").and_then(|peers| object::items(&peers).ok());
    let peers = peers.unwrap_or_default();
    Ok(Definition { id: said("id"), server: said("server"), name, json, text, peers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_definition_or_has_one() {
        let table = [
            (r#"{"id":"a-b","server":"a","name":"b"}"#, Some("a-b"), Some("a"), "b"),
            (r#"{"name":"b"}"#, None, None, "b"),
            (r#"{"server":"a","tool":{"name":"b"}}"#, None, Some("a"), "b"),
            (r#"{"tool":{"name":"b","server":"a"},"id":"x"}"#, Some("x"), Some("a"), "b"),
            (r#"{"server":"a","tool":"b"}"#, None, Some("a"), "b"),
        ];
        for (line, id, server, name) in table {
            let found = parse(line.into(), Allow::Definitions).unwrap();
            let found = (found.id.as_deref(), found.server.as_deref(), found.name.as_str());
            assert_eq!(found, (id, server, name), "{line}");
        }
    }

    #[test]
    fn a_line_may_be_an_answer_where_that_is_allowed() {
        let line = r#"{"id":"x","tool":null,"text":"hello"}"#;
        let found = parse(line.into(), Allow::Answers).unwrap();
        assert_eq!((found.id.as_deref(), found.text.as_deref()), (Some("x"), Some("hello")));
        assert!(parse(line.into(), Allow::Definitions).is_err());
    }

    #[test]
    fn what_is_no_definition_is_refused() {
        for line in ["", "{", "[]", "1", "{}", r#"{"name":1}"#, r#"{"tool":{}}"#, "{} {}"] {
            assert!(parse(line.into(), Allow::Answers).is_err(), "{line}");
        }
    }
}
