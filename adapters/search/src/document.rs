//! The texts of a tool that are searched, by field.

use capstan_hub::ports::SearchedTool;
use serde_json::Value;

use crate::lexical::words::split;

/// Maximum length of a field. A longer text adds nothing but noise.
const MAX_FIELD_BYTES: usize = 8 * 1024;

/// Maximum depth at which the arguments of a schema are read.
const MAX_DEPTH: usize = 5;

/// Maximum number of an argument's permitted values that are read.
const MAX_VALUES: usize = 20;

/// Larger schemas are not read: they would cost more to parse than their words are worth.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Maximum length of a description in the embedded text; the model reads no more.
const MAX_EMBEDDED_BYTES: usize = 1_024;

/// Maximum length of a name in the embedded text.
const MAX_EMBEDDED_NAME_BYTES: usize = 256;

/// The fields of a tool, in the order of [`Field`].
pub(crate) struct Document<'a> {
    fields: [&'a str; FIELDS],
    arguments: String,
    values: String,
}

/// Number of fields.
pub(crate) const FIELDS: usize = 6;

/// A field of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The name of the tool.
    Name,
    /// The name of its server.
    Server,
    /// Its description.
    Description,
    /// The names of its arguments.
    Arguments,
    /// The descriptions and permitted values of its arguments.
    Values,
    /// The server's description of itself.
    About,
}

// === impl Document ===

impl<'a> Document<'a> {
    pub(crate) fn new(tool: &'a SearchedTool<'_>) -> Self {
        let (mut arguments, mut values) = (String::new(), String::new());
        if tool.schema.len() <= MAX_SCHEMA_BYTES
            && let Ok(schema) = tool.schema.read::<Value>()
        {
            read_schema(&schema, &mut arguments, &mut values, 0);
        }
        let fields = [tool.name, plain_server(tool.server), tool.description, "", "", tool.about];
        Self { fields: fields.map(cut), arguments, values }
    }

    /// The texts of all fields.
    pub(crate) fn texts(&self) -> [(Field, &str); FIELDS] {
        let [name, server, description, _, _, about] = self.fields;
        [
            (Field::Name, name),
            (Field::Server, server),
            (Field::Description, description),
            (Field::Arguments, &self.arguments),
            (Field::Values, &self.values),
            (Field::About, about),
        ]
    }

    /// The text that is embedded: the names as words, the description and the arguments.
    pub(crate) fn embedded_text(&self) -> String {
        let [name, server, description, ..] = self.fields;
        let mut text = String::new();
        push_words(&mut text, head(server, MAX_EMBEDDED_NAME_BYTES));
        text.push(' ');
        push_words(&mut text, head(name, MAX_EMBEDDED_NAME_BYTES));
        text.push_str(": ");
        text.push_str(head(description, MAX_EMBEDDED_BYTES));
        text.push(' ');
        push_words(&mut text, head(&self.arguments, MAX_EMBEDDED_NAME_BYTES));
        text
    }
}

/// The last part of a server's name, without the name of its publisher.
fn plain_server(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Adds the words of identifiers, except those that every server has in its name.
fn push_words(text: &mut String, identifiers: &str) {
    let mut first = true;
    split(identifiers, |word| {
        if matches!(word, "mcp" | "server") {
            return;
        }
        if !first {
            text.push(' ');
        }
        text.push_str(word);
        first = false;
    });
}

fn cut(text: &str) -> &str {
    head(text, MAX_FIELD_BYTES)
}

fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// Collects the names, descriptions and permitted values of a schema's arguments.
fn read_schema(schema: &Value, names: &mut String, values: &mut String, depth: usize) {
    if depth == MAX_DEPTH || names.len().max(values.len()) > MAX_FIELD_BYTES {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, argument) in properties.into_iter().flatten() {
        push(names, name);
        if let Some(description) = argument.get("description").and_then(Value::as_str) {
            push(values, description);
        }
        let permitted = argument.get("enum").and_then(Value::as_array);
        let permitted = permitted.into_iter().flatten().filter_map(Value::as_str);
        for value in permitted.take(MAX_VALUES) {
            push(values, value);
        }
        read_schema(argument, names, values, depth + 1);
    }
    if let Some(items) = schema.get("items") {
        read_schema(items, names, values, depth + 1);
    }
}

fn push(text: &mut String, part: &str) {
    if text.len() < MAX_FIELD_BYTES {
        text.push_str(cut(part));
        text.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use capstan_wire::Json;

    use super::*;

    #[test]
    fn a_tool_is_embedded_as_words() {
        let schema = r#"{"properties":{"repoName":{"description":"Which","enum":["a","b"]},
            "filter":{"properties":{"openOnly":{}}}}}"#;
        let tool = SearchedTool {
            server: "@acme/github-mcp-server",
            about: "About",
            name: "listIssues",
            description: "Lists issues.",
            schema: &Json::parse(schema.to_owned()).unwrap(),
        };
        let document = Document::new(&tool);
        let text = document.embedded_text();
        assert_eq!(text, "github list issues: Lists issues. repo name filter open only");
        assert_eq!(document.texts()[4], (Field::Values, "Which a b "));
    }

    #[test]
    fn endless_texts_and_schemas_are_cut() {
        let long = "é".repeat(1 << 20);
        let deep = format!("{}{}", r#"{"items":"#.repeat(100), "{}") + &"}".repeat(100);
        let wide =
            format!(r#"{{"properties":{{"a":{{"description":"{}"}}}}}}"#, "x".repeat(99_999));
        for schema in [deep, wide, "[]".to_owned(), "1".to_owned()] {
            let schema = &Json::parse(schema).unwrap();
            let tool = SearchedTool {
                server: &long,
                about: &long,
                name: &long,
                description: &long,
                schema,
            };
            let document = Document::new(&tool);
            for (field, text) in document.texts() {
                assert!(text.len() <= 3 * MAX_FIELD_BYTES, "{field:?}");
            }
            assert!(document.embedded_text().len() < 4 * MAX_EMBEDDED_BYTES);
        }
    }
}
