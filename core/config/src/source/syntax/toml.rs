//! Parses TOML.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Document, Fault};
use crate::source::tree::{Entry, Node, Table, Text, Value};

pub(super) fn read(text: &str) -> Result<Document, Fault> {
    match DeTable::parse(text) {
        Ok(table) => Ok(Document { table: table_of(table.get_ref()), ..Document::default() }),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            Err(Fault { message: error.message().to_owned(), span })
        }
    }
}

fn table_of(table: &DeTable<'_>) -> Table {
    let entries = table.iter().map(|(key, value)| {
        let entry = Entry::new(key.span(), node_of(value.get_ref(), value.span()));
        (key.get_ref().to_string(), entry)
    });
    Table { entries: entries.collect(), ..Table::default() }
}

fn node_of(value: &DeValue<'_>, span: Range<usize>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(Text::plain(text.to_string())),
        DeValue::Integer(number) => Value::Number(decimal(number)),
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(moment) => Value::Moment(moment.to_string()),
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| node_of(item.get_ref(), item.span());
            Value::List(items.iter().map(node).collect())
        }
        DeValue::Table(table) => Value::Table(table_of(table)),
    };
    Node { value, span }
}

/// Converts an integer to decimal, whatever its radix; one that is too large stays as written.
fn decimal(number: &toml::de::DeInteger<'_>) -> String {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => value.to_string(),
        Err(_) => number.as_str().to_owned(),
    }
}
