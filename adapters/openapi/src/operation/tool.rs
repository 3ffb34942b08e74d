//! Converts operations into tools.

use capstan_hub::catalog::InputSchema;
use capstan_hub::ports::Item;
use capstan_wire::Json;
use serde_json::{Map, Value, json};

use crate::operation::Operation;
use crate::operation::body::Shape;
use crate::operation::parameter::Need;
use crate::operation::schema::short;

/// The longest description of a tool, in bytes.
const MAX_WORDS: usize = 1024;

/// The longest title of a tool, in bytes.
const MAX_TITLE: usize = 100;

// === impl Operation ===

impl Operation {
    /// The tool definition for clients.
    pub(crate) fn item(&self) -> Option<Item> {
        let mut tool = Map::new();
        let mut put = |key: &str, value: Value| drop(tool.insert(key.to_owned(), value));
        put("name", json!(self.name));
        if !self.summary.is_empty() {
            put("title", json!(short(&self.summary, MAX_TITLE)));
        }
        put("description", json!(self.words()));
        put("inputSchema", self.input_schema());
        if let Some(output) = &self.output {
            put("outputSchema", output.clone());
        }
        put("annotations", self.annotations());
        let definition = Json::from_value(&tool).ok()?;
        Some(Item { name: self.name.clone(), definition })
    }

    /// The schema of the tool's arguments.
    pub(crate) fn input_schema(&self) -> Value {
        let whole = self.schema_with(&|schema| schema.clone());
        // Patterns are written for another regex engine; one that ours cannot parse would hide the
        // tool.
        let readable = !whole.to_string().contains("\"pattern\"")
            || Json::from_value(&whole).is_ok_and(|json| InputSchema::compile(&json).is_ok());
        if readable { whole } else { self.schema_with(&|schema| without_patterns(schema.clone())) }
    }

    fn schema_with(&self, written: &dyn Fn(&Value) -> Value) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut add = |argument: &String, need: Need, schema: &Value| {
            properties.insert(argument.clone(), written(schema));
            if need == Need::Required {
                required.push(argument.clone());
            }
        };
        for parameter in &self.parameters {
            add(&parameter.argument, parameter.need, &parameter.schema);
        }
        if let Some(body) = &self.body {
            match &body.shape {
                Shape::Whole(field) => add(&field.argument, body.need, &field.schema),
                Shape::Members(fields) => {
                    for field in fields {
                        add(&field.argument, field.need, &field.schema);
                    }
                }
            }
        }
        json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false })
    }

    /// The description from the document, followed by method and path.
    fn words(&self) -> String {
        let line = format!("{} {}", self.method, self.path);
        let said = match (self.summary.as_str(), self.description.as_str()) {
            ("", "") => return line,
            (summary, "") => summary.to_owned(),
            ("", description) => description.to_owned(),
            (summary, description) if description.starts_with(summary) => description.to_owned(),
            (summary, description) => format!("{summary}\n\n{description}"),
        };
        format!("{}\n\n{line}", short(&said, MAX_WORDS))
    }

    fn annotations(&self) -> Value {
        match self.method {
            "GET" | "HEAD" | "OPTIONS" => json!({ "readOnlyHint": true }),
            "PUT" => json!({ "readOnlyHint": false, "idempotentHint": true }),
            "DELETE" => {
                json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true })
            }
            _ => json!({ "readOnlyHint": false }),
        }
    }
}

fn without_patterns(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept =
                members.into_iter().filter(|(key, value)| key != "pattern" || !value.is_string());
            kept.map(|(key, value)| (key, without_patterns(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_patterns).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema,
    }
}
