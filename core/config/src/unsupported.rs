//! Keys that ask for something that this version does not support.
//!
//! **Invariant:** a key that restricts is enforced or refused, never ignored. This table is the
//! whole list; implementing a feature deletes its row.

use crate::fields::Fields;
use crate::source::problem::Problem;
use crate::source::tree::{Node, Value};

/// A key that has no effect yet.
pub(crate) struct Row {
    pub(crate) table: In,
    pub(crate) key: &'static str,
    /// The feature that the key asks for.
    pub(crate) meaning: &'static str,
    /// Values that are accepted because they switch the feature off.
    harmless: &'static [&'static str],
}

/// The table that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum In {
    Top,
    Server,
}

pub(crate) const ROWS: &[Row] =
    &[refuse(In::Server, "sandbox", "a sandbox for the server's process", &["false", "off"])];

/// Reports the keys of a table that this version does not support.
pub(crate) fn check(fields: &mut Fields<'_, '_>, table: In) {
    for row in ROWS.iter().filter(|row| row.table == table) {
        let Some(entry) = fields.entry(row.key) else { continue };
        if row.is_harmless(&entry.node) {
            continue;
        }
        let path = fields.key(row.key);
        let message =
            format!("`{path}` asks for {}, which this version does not enforce", row.meaning);
        let problem = Problem::error(message)
            .help(format!("remove `{}` if you do not need it", fields.word_for(row.key)));
        fields.report().add(problem, path, &entry.key);
    }
}

// === impl Row ===

impl Row {
    fn is_harmless(&self, node: &Node) -> bool {
        match &node.value {
            Value::Text(text) => self.harmless.contains(&text.value.as_str()),
            Value::Bool(value) => self.harmless.contains(&if *value { "true" } else { "false" }),
            // A table with `enabled = false` asks for nothing.
            Value::Table(table) => {
                table.get("enabled").and_then(|entry| entry.node.as_bool()) == Some(false)
            }
            Value::List(_) | Value::Number(_) | Value::Moment(_) | Value::Null => false,
        }
    }
}

const fn refuse(
    table: In,
    key: &'static str,
    meaning: &'static str,
    harmless: &'static [&'static str],
) -> Row {
    Row { table, key, meaning, harmless }
}
