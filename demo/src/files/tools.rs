//! How the tools of `files` describe themselves.

use serde_json::{Value, json};

use crate::describe::{Effect, Members, Tool, array, boolean, integer, string};

/// Every tool, in the order in which they are shown.
pub(super) fn all() -> Vec<Tool> {
    vec![list_folder(), read_file(), find_files(), search_text()]
}

fn list_folder() -> Tool {
    let entry = Members::new([
        ("name", string("The entry's name")),
        ("kind", json!({ "type": "string", "enum": ["folder", "file", "link", "other"] })),
        ("size", integer("A file's size in bytes", 0)),
    ]);
    Tool {
        name: "list_folder",
        title: "List a folder",
        description: "Lists what a folder holds, with the kind and size of each entry",
        input: Members::new([("path", folder())]).requiring(&[]),
        output: Some(list("entries", "The entries, by name", &entry.requiring(&["name", "kind"]))),
        effect: Effect::Reads,
    }
}

fn read_file() -> Tool {
    let input = Members::new([
        ("path", string("The file, relative to the folder")),
        ("offset", integer("The first line wanted, counted from 1 (default 1)", 1)),
        ("limit", integer("How many lines at most (default 2000)", 1)),
    ]);
    Tool {
        name: "read_file",
        title: "Read a file",
        description: "Reads lines of a text file, or all of a small file that is not text",
        input: input.requiring(&["path"]),
        output: None,
        effect: Effect::Reads,
    }
}

fn find_files() -> Tool {
    let input = Members::new([("pattern", string("A glob: `*`, `**`, `?`, `[a-z]`, `{a,b}`"))]);
    Tool {
        name: "find_files",
        title: "Find files",
        description: "Finds files by a glob such as `src/**/*.rs`; a pattern without `/` matches \
                      names in every folder. Folders that begin with a dot are left out",
        input: input.requiring(&["pattern"]),
        output: Some(list("paths", "The files, by path", &json!({ "type": "string" }))),
        effect: Effect::Reads,
    }
}

fn search_text() -> Tool {
    let found = Members::new([
        ("path", string("The file")),
        ("line", integer("The line, counted from 1", 1)),
        ("text", string("The line's text, shortened when it is long")),
    ]);
    Tool {
        name: "search_text",
        title: "Search in files",
        description: "Finds the lines of text files that contain a text. Upper and lower case are \
                      the same unless the query has a capital. Folders that begin with a dot are \
                      left out",
        input: Members::new([("query", string("The text to find")), ("path", folder())])
            .requiring(&["query"]),
        output: Some(list(
            "matches",
            "The matching lines",
            &found.requiring(&["path", "line", "text"]),
        )),
        effect: Effect::Reads,
    }
}

fn folder() -> Value {
    string("A folder, relative to the one served; that one itself when absent")
}

/// An object with a list and whether the list is all there is.
fn list(name: &'static str, description: &str, items: &Value) -> Value {
    let members = Members::new([
        (name, array(description, items)),
        ("truncated", boolean("Whether there is more than one answer holds")),
    ]);
    members.requiring(&[name, "truncated"])
}
