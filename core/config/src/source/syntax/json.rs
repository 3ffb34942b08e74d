//! Parses JSON with comments and trailing commas, and no other extensions.

use std::ops::Range;

use jsonc_parser::ast::{ObjectPropName, Value as JsonValue};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};

use super::{Document, Double, Fault};
use crate::source::tree::{Entry, Node, Table, Text, Value};

/// The parser options: JSON with comments and trailing commas.
pub fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

pub(super) fn read(text: &str) -> Result<Document, Fault> {
    let options = options();
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options);
    let parsed = parsed.map_err(|error| {
        let range = error.range();
        Fault { message: lower(&error.kind().to_string()), span: range.start..range.end }
    })?;
    let mut doubles = Vec::new();
    match parsed.value {
        None => Ok(Document::default()),
        Some(value) => match node_of(&value, &mut doubles) {
            Node { value: Value::Table(table), .. } => Ok(Document { table, doubles }),
            node => {
                Err(Fault { message: "the file must be an object".to_owned(), span: node.span })
            }
        },
    }
}

fn node_of(value: &JsonValue<'_>, doubles: &mut Vec<Double>) -> Node {
    let span = span(value);
    let value = match value {
        JsonValue::StringLit(text) => Value::Text(Text::plain(text.value.to_string())),
        JsonValue::NumberLit(number) => Value::Number(number.value.to_owned()),
        JsonValue::BooleanLit(flag) => Value::Bool(flag.value),
        JsonValue::NullKeyword(_) => Value::Null,
        JsonValue::Array(array) => {
            Value::List(array.elements.iter().map(|value| node_of(value, doubles)).collect())
        }
        JsonValue::Object(object) => {
            let mut table = Table::default();
            for property in &object.properties {
                let (key, at) = match &property.name {
                    ObjectPropName::String(name) => (name.value.to_string(), span_of(name)),
                    ObjectPropName::Word(name) => (name.value.to_owned(), span_of(name)),
                };
                let node = node_of(&property.value, doubles);
                let (is_null, entry) =
                    (matches!(node.value, Value::Null), Entry::new(at.clone(), node));
                // Most programs treat a key with `null` as absent.
                let before = if is_null {
                    table.unread.push((key.clone(), entry));
                    table.entries.shift_remove(&key)
                } else {
                    table.entries.insert(key.clone(), entry)
                };
                if let Some(before) = before {
                    table.unread.push((key.clone(), before));
                    doubles.push(Double { key, span: at });
                }
            }
            Value::Table(table)
        }
    };
    Node { value, span }
}

fn span(value: &JsonValue<'_>) -> Range<usize> {
    span_of(value)
}

fn span_of(ranged: &impl Ranged) -> Range<usize> {
    ranged.start()..ranged.end()
}

/// Lowers the first letter: the parser's messages begin with a capital, ours continue a sentence.
fn lower(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
