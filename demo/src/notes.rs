//! The `notes` server: short texts that outlive the process.

mod store;

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::describe::{Answer, Effect, Event, Members, Tool, array, integer, parse, string};
use crate::fault::Fault;
use crate::server::{Profile, Prompts, Resources, Server};
use store::{Note, Store};

/// Longest title, in characters.
const MAX_TITLE: usize = 200;

/// Longest text, in bytes.
const MAX_TEXT: usize = 32 * 1024;

/// How every URI of this server begins.
const SCHEME: &str = "note://";

/// The server; see [`Store`] for what keeps its file whole.
pub(crate) struct Notes {
    store: Store,
    clock: fn() -> Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddNote {
    title: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ById {
    id: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchNotes {
    query: String,
}

// === impl Notes ===

impl Notes {
    pub(crate) fn new(folder: PathBuf, clock: fn() -> Timestamp) -> Self {
        Self { store: Store::new(folder), clock }
    }

    fn add(&self, asked: AddNote) -> Result<Answer, Fault> {
        let AddNote { title, text } = asked;
        if title.trim().is_empty() || title.contains('\n') {
            return Err(Fault::refused("a title is one line that is not empty"));
        }
        if title.chars().count() > MAX_TITLE {
            let reason = format!("the title has more than {MAX_TITLE} characters");
            return Err(Fault::refused(reason));
        }
        if text.len() > MAX_TEXT {
            let size = text.len();
            return Err(Fault::refused(format!("the text has {size} bytes; at most {MAX_TEXT}")));
        }
        let note = self.store.add(title, text, (self.clock)())?;
        Ok(Answer::structured(summary(&note)).with(Event::ResourcesChanged))
    }

    fn list(&self) -> Result<Answer, Fault> {
        let notes: Vec<Value> = self.store.load()?.iter().map(summary).collect();
        Ok(Answer::structured(json!({ "notes": notes })))
    }

    fn search(&self, asked: &SearchNotes) -> Result<Answer, Fault> {
        let query = asked.query.to_lowercase();
        if query.is_empty() {
            return Err(Fault::refused("`query` is empty"));
        }
        let fits = |text: &str| text.to_lowercase().contains(&query);
        let notes = self.store.load()?;
        let found = notes.iter().filter(|note| fits(&note.title) || fits(&note.text));
        let found: Vec<Value> = found.map(summary).collect();
        Ok(Answer::structured(json!({ "notes": found })))
    }

    fn delete(&self, asked: &ById) -> Result<Answer, Fault> {
        let gone = self.store.delete(asked.id)?;
        Ok(Answer::structured(summary(&gone)).with(Event::ResourcesChanged))
    }

    fn find(&self, id: u64) -> Result<Option<Note>, Fault> {
        Ok(self.store.load()?.into_iter().find(|note| note.id == id))
    }
}

impl Server for Notes {
    fn profile(&self) -> Profile {
        Profile {
            name: "notes",
            title: "Notes",
            instructions: "Keeps short notes. Each has a number, by which it is read and deleted; \
                           a deleted note does not come back.",
            resources: Resources::Announced,
            prompts: Prompts::Some,
        }
    }

    fn tools(&self) -> Vec<Tool> {
        tools()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer, Fault> {
        match tool {
            "add_note" => self.add(parse(tool, arguments)?),
            "list_notes" => parse(tool, arguments).and_then(|Nothing {}| self.list()),
            "read_note" => {
                let asked: ById = parse(tool, arguments)?;
                let note = self.find(asked.id)?.ok_or_else(|| missing(asked.id))?;
                Ok(Answer::text(page_of(&note)))
            }
            "search_notes" => self.search(&parse(tool, arguments)?),
            "delete_note" => self.delete(&parse(tool, arguments)?),
            _ => Err(Fault::UnknownTool { name: tool.to_owned() }),
        }
    }

    fn resources(&mut self) -> Result<Vec<Value>, Fault> {
        let listed = self.store.load()?.into_iter().map(|note| {
            json!({
                "uri": format!("{SCHEME}{}", note.id),
                "name": note.id.to_string(),
                "title": note.title,
                "mimeType": "text/markdown",
            })
        });
        Ok(listed.collect())
    }

    fn read(&mut self, uri: &str) -> Result<Value, Fault> {
        let unknown = || Fault::UnknownResource { uri: uri.to_owned() };
        let id = uri.strip_prefix(SCHEME).and_then(parse_id).ok_or_else(unknown)?;
        let note = self.find(id)?.ok_or_else(unknown)?;
        Ok(contents(&note))
    }

    fn prompts(&self) -> Vec<Value> {
        vec![json!({
            "name": "summarize",
            "title": "Summarize a note",
            "description": "Asks for a summary of one note in three sentences",
            "arguments": [
                { "name": "id", "description": "The number of the note", "required": true },
            ],
        })]
    }

    fn prompt(
        &mut self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Fault> {
        if name != "summarize" {
            return Err(Fault::UnknownPrompt { name: name.to_owned() });
        }
        let id =
            arguments.get("id").and_then(Value::as_str).and_then(parse_id).ok_or_else(|| {
                Fault::InvalidParams { problem: "`id` must be the number of a note".to_owned() }
            })?;
        let absent = || Fault::InvalidParams { problem: format!("there is no note {id}") };
        let note = self.find(id)?.ok_or_else(absent)?;
        let message = |content: Value| json!({ "role": "user", "content": content });
        let ask = "Summarize the following note in at most three sentences.";
        let messages = json!([
            message(json!({ "type": "text", "text": ask })),
            message(json!({ "type": "resource", "resource": contents(&note) })),
        ]);
        Ok(Map::from_iter([
            ("description".to_owned(), json!(format!("Summary of `{}`", note.title))),
            ("messages".to_owned(), messages),
        ]))
    }
}

fn tools() -> Vec<Tool> {
    let summary = || {
        Members::new([
            ("id", integer("The number of the note", 1)),
            ("title", string("Its title")),
            ("created", string("When it was added, as in RFC 3339")),
            ("size", integer("The size of its text in bytes", 0)),
        ])
        .requiring(&["id", "title", "created", "size"])
    };
    let many = || {
        Some(
            Members::new([("notes", array("The notes, oldest first", &summary()))])
                .requiring(&["notes"]),
        )
    };
    let by_id = || Members::new([("id", integer("The number of the note", 1))]).requiring(&["id"]);
    let new_note = Members::new([
        ("title", string("One line, at most 200 characters")),
        ("text", string("The text, at most 32 KiB")),
    ]);
    let query = Members::new([("query", string("A text in the title or the note, in any case"))]);
    let tool = |name, title, description| Tool {
        name,
        title,
        description,
        input: Members::new([]).requiring(&[]),
        output: None,
        effect: Effect::Reads,
    };
    vec![
        Tool {
            input: new_note.requiring(&["title", "text"]),
            output: Some(summary()),
            effect: Effect::Adds,
            ..tool("add_note", "Add a note", "Keeps a new note and tells its number")
        },
        Tool {
            output: many(),
            ..tool("list_notes", "List notes", "Lists the notes without their texts")
        },
        Tool { input: by_id(), ..tool("read_note", "Read a note", "Reads one note") },
        Tool {
            input: query.requiring(&["query"]),
            output: many(),
            ..tool("search_notes", "Search notes", "Finds the notes that contain a text")
        },
        Tool {
            input: by_id(),
            output: Some(summary()),
            effect: Effect::Deletes,
            ..tool("delete_note", "Delete a note", "Deletes one note for good")
        },
    ]
}

fn summary(note: &Note) -> Value {
    json!({ "id": note.id, "title": note.title, "created": note.created, "size": note.text.len() })
}

fn contents(note: &Note) -> Value {
    let uri = format!("{SCHEME}{}", note.id);
    json!({ "uri": uri, "mimeType": "text/markdown", "text": page_of(note) })
}

fn page_of(note: &Note) -> String {
    format!("# {}\n\n{}\n", note.title, note.text)
}

fn missing(id: u64) -> Fault {
    Fault::Missing { asked: format!("note {id}") }
}

/// A number in its one spelling: `01` and `+1` name no note.
fn parse_id(text: &str) -> Option<u64> {
    text.parse().ok().filter(|id: &u64| id.to_string() == text)
}
