//! Limits that apply to all servers of a file, written beside the imported servers.

use capstan_config::edit::{EditError, set_key, unset_key};
use capstan_config::source::tree::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toml_edit::Array;

/// A limit that applies to all servers of the native file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// The table that it is in.
    pub table: &'static str,
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: Json,
}

/// A limit that imported servers demand, as the native file had it before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerLimit {
    table: String,
    key: String,
    /// Its value; `None` if the file did not have it.
    value: Option<Json>,
}

/// Limits that are numbers, of which the smallest applies.
const NUMBERS: [(&str, &str); 3] = [
    ("tools", "max_tool_calls_per_session"),
    ("mcp", "max_dynamic_servers"),
    ("mcp", "elicitation_queue"),
];

const COMMANDS: (&str, &str) = ("mcp", "allowed_commands");

// === impl Limit ===

impl Limit {
    /// Returns the limits of a file with native keys.
    pub(super) fn all(tree: &Table) -> Vec<Self> {
        let numbers = NUMBERS.into_iter().filter_map(|(table, key)| {
            let written = tree.table(table)?.get(key)?.node.as_number()?;
            Some(Self { table, key, value: Json::from(written.parse::<u32>().ok()?) })
        });
        let (table, key) = COMMANDS;
        let commands = tree.table(table).and_then(|mcp| mcp.get(key)?.node.as_list());
        let commands = commands.map(|list| {
            let words = list.iter().filter_map(|node| node.as_text().map(Json::from));
            Self { table, key, value: Json::Array(words.collect()) }
        });
        numbers.chain(commands).collect()
    }

    /// Combines the limits of imported servers with those that the native file has.
    ///
    /// Of two numbers the smaller one applies. A list of commands is written unless there is one, and
    /// is extended by `commands`, so that it stops no server that is there.
    pub(super) fn combine(
        imported: Vec<Self>,
        native: &[Self],
        commands: impl Iterator<Item = String>,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for limit in imported {
            let is_same = |known: &&mut Self| (known.table, known.key) == (limit.table, limit.key);
            match all.iter_mut().find(is_same) {
                None => all.push(limit),
                Some(known) => known.add(limit.value),
            }
        }
        all.retain(|limit| {
            let known = native.iter().find(|it| (it.table, it.key) == (limit.table, limit.key));
            known.is_none_or(|known| limit.value.as_u64() < known.value.as_u64())
        });
        Self::allow(&mut all, commands);
        all
    }

    /// Adds commands to the list of allowed ones, if there is one.
    pub(super) fn allow(limits: &mut [Self], commands: impl Iterator<Item = String>) {
        let list = limits.iter_mut().find(|limit| (limit.table, limit.key) == COMMANDS);
        if let Some(list) = list {
            list.add(commands.map(Json::String).collect());
        }
    }

    /// Adds another value: the smaller number counts, and lists are united.
    fn add(&mut self, other: Json) {
        match (&mut self.value, other) {
            (Json::Array(known), Json::Array(other)) => {
                for command in other {
                    if !known.contains(&command) {
                        known.push(command);
                    }
                }
            }
            (value, other) if other.as_u64() < value.as_u64() => *value = other,
            (..) => {}
        }
    }

    /// Writes the limit.
    ///
    /// # Errors
    /// If the file cannot be read, or its table is not one.
    pub(super) fn write(&self, text: &str) -> Result<String, EditError> {
        write(text, self.table, self.key, &self.value)
    }

    /// The limit as a native file with these limits has it.
    pub(super) fn former(&self, native: &[Self]) -> FormerLimit {
        let known = native.iter().find(|it| (it.table, it.key) == (self.table, self.key));
        FormerLimit {
            table: self.table.to_owned(),
            key: self.key.to_owned(),
            value: known.map(|known| known.value.clone()),
        }
    }
}

// === impl FormerLimit ===

impl FormerLimit {
    /// True if both are values of the same key.
    pub fn is_same_key(&self, other: &Self) -> bool {
        (&self.table, &self.key) == (&other.table, &other.key)
    }

    /// Restores the value in a text that still has the key.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn restore(&self, text: &str) -> Result<String, EditError> {
        let without = unset_key(text, &self.table, &self.key)?;
        match &self.value {
            Some(value) if without != text => write(text, &self.table, &self.key, value),
            Some(_) | None => Ok(without),
        }
    }
}

fn write(text: &str, table: &str, key: &str, value: &Json) -> Result<String, EditError> {
    if let Some(words) = value.as_array() {
        let words: Array = words.iter().filter_map(Json::as_str).collect();
        return set_key(text, table, key, words);
    }
    set_key(text, table, key, value.as_i64().unwrap_or_default())
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} = {}", self.table, self.key, self.value)
    }
}
