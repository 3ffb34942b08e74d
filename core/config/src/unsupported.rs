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
    pub(crate) consequence: Consequence,
}

/// The table that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum In {
    Top,
    Server,
    Gateway,
}

/// The consequence of a key's presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The key restricts something: the server, or the whole configuration, is refused.
    Refuse,
    /// The key restricts nothing: it may stay, with a warning.
    Warn(&'static str),
}

const NOT_YET: Consequence = Consequence::Warn("has no effect in this version");

pub(crate) const ROWS: &[Row] = &[
    warn(In::Server, "always_load", NOT_YET),
    refuse(In::Gateway, "expose", "tool search instead of the tools", &["all"]),
];

/// Reports the keys of a table that this version does not support.
pub(crate) fn check(fields: &mut Fields<'_, '_>, table: In) {
    for row in ROWS.iter().filter(|row| row.table == table) {
        let present = match row.consequence {
            // Keys that only warn are marked as known by the code that validates them.
            Consequence::Warn(_) if table == In::Server => fields.peek(row.key),
            Consequence::Refuse | Consequence::Warn(_) => fields.entry(row.key),
        };
        let Some(entry) = present else { continue };
        if row.is_harmless(&entry.node) {
            continue;
        }
        let path = fields.key(row.key);
        let problem = match row.consequence {
            Consequence::Refuse => Problem::error(format!(
                "`{path}` asks for {}, which this version does not enforce",
                row.meaning
            ))
            .help(format!("remove `{}` if you do not need it", fields.word_for(row.key))),
            Consequence::Warn(why) => {
                Problem::warning(format!("`{path}` {why}")).help("you can keep it")
            }
        };
        fields.report().add(problem, path, &entry.key);
    }
}

// === impl Row ===

impl Row {
    /// True if some values of the key are accepted, so that the schema lists it.
    #[cfg(test)]
    pub(crate) fn in_schema(&self) -> bool {
        matches!(self.consequence, Consequence::Warn(_)) && self.table == In::Server
    }

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
    Row { table, key, meaning, harmless, consequence: Consequence::Refuse }
}

const fn warn(table: In, key: &'static str, consequence: Consequence) -> Row {
    Row { table, key, meaning: "", harmless: &[], consequence }
}
