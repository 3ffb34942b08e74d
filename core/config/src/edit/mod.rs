//! Edits a configuration file: text in, text out.
//!
//! **Invariant:** only the lines that must change do. Comments, order, spacing and line endings of
//! everything else stay byte for byte, and the result can be parsed again.

mod document;
mod add;
mod entry;
pub mod remove;
mod permission;

pub use add::{
    NewDocument, NewProgram, NewRemote, NewServer, NewTarget, add_server, add_table, put_server,
    refusal,
};
pub use entry::{KeyChanges, ReplacedEntry, change_keys, entry_text, new_problems, replace_entry};
pub use permission::{accept_text, add_permission_rule, allow_effect};
pub use remove::{remove_server, unset_key};

use toml_edit::{Item, Value};

use crate::read::server::slug;
use document::{Editing, insert};

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// The error of an edit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file is not valid TOML.
    #[error("the file is not valid TOML (line {line}, column {column})")]
    Syntax {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
        /// The parser's error.
        #[source]
        cause: Box<toml_edit::TomlError>,
    },
    /// The file has no such server.
    #[error("no server named `{name}` in this file")]
    UnknownServer {
        /// The requested name.
        name: String,
        /// The most similar name in the file.
        nearest: Option<String>,
    },
    /// The file already has a server of that name.
    #[error("a server named `{existing}` is already in this file")]
    Exists {
        /// The name as the file spells it.
        existing: String,
    },
    /// The file is no longer the one that the change was planned for.
    #[error("the file has just been changed by another program")]
    FileRaced,
    /// The entry was changed by another program meanwhile.
    #[error("the entry of `{name}` was changed meanwhile")]
    Raced {
        /// The server.
        name: String,
    },
    /// The key is not written as a dotted key.
    #[error("`{key}` is not a key")]
    Key {
        /// The text.
        key: String,
    },
    /// The key is unknown, or the value does not fit it.
    #[error("`{key}` cannot be set: {reason}")]
    Value {
        /// The dotted key.
        key: String,
        /// The reason.
        reason: String,
        /// The remedy.
        help: Option<String>,
    },
    /// The entry has no such key.
    #[error("`{key}` is not set in the entry of `{name}`")]
    NotSet {
        /// The server.
        name: String,
        /// The dotted key.
        key: String,
        /// The most similar key of the entry.
        nearest: Option<String>,
    },
    /// The name is empty.
    #[error("a server needs a name")]
    NoName,
    /// A value has the wrong type: it should be a table or a list.
    #[error("`{key}` in this file is not {expected}")]
    Unexpected {
        /// The dotted key.
        key: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The pattern of a rule cannot be read.
    #[error("`{pattern}` cannot be used as a pattern here")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The parser's error, if the pattern is malformed.
        #[source]
        cause: Option<capstan_policy::BadPattern>,
    },
    /// The rule would be refused when the file is read.
    #[error("the rule would be invalid: {reason}")]
    Rule {
        /// The reason.
        reason: String,
    },
    /// The server would be refused when the file is read.
    #[error("the server would be refused: {reason}")]
    Refused {
        /// The reason.
        reason: String,
        /// The remedy.
        help: Option<String>,
    },
}

/// Sets a key of a table for all servers, `[tools]` or `[mcp]`; the table is created if missing.
pub fn set_key(
    text: &str,
    table: &str,
    key: &str,
    new: impl Into<Value>,
) -> Result<String, EditError> {
    let mut editing = Editing::open(text)?;
    let item = editing.table(table)?;
    match value_of(item, key) {
        Some(value) => replace(value, new.into()),
        None => insert(item, key, Item::Value(new.into())),
    }
    Ok(editing.finish())
}

/// Switches a server on or off.
pub fn set_enabled(text: &str, name: &str, enabled: Switch) -> Result<String, EditError> {
    let mut editing = Editing::open(text)?;
    let on = enabled == Switch::On;
    let server = editing.server(name)?;
    if let Some(value) = value_of(server, "enabled") {
        replace(value, on.into());
    } else if let Some(value) = value_of(server, "disabled") {
        replace(value, (!on).into());
    } else if !on {
        insert(server, "enabled", toml_edit::value(false));
    }
    Ok(editing.finish())
}

// === impl EditError ===

impl EditError {
    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownServer { nearest, .. } => {
                nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?"))
            }
            Self::Exists { existing } => {
                let name = slug(existing).map_or_else(|| existing.clone(), |name| name.to_string());
                Some(format!("`--force` replaces it; `capstan edit {name}` changes it"))
            }
            Self::NotSet { nearest, .. } => {
                nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?"))
            }
            Self::FileRaced => Some("try again".to_owned()),
            Self::Raced { name } => Some(format!("run `capstan edit {name}` again")),
            Self::Key { .. } => Some("write it like `timeout` or `env.DEBUG`".to_owned()),
            Self::Syntax { .. } => {
                Some("`capstan config check` shows what is wrong with the file".to_owned())
            }
            Self::Refused { help, .. } | Self::Value { help, .. } => help.clone(),
            Self::NoName | Self::Unexpected { .. } | Self::Pattern { .. } | Self::Rule { .. } => {
                None
            }
        }
    }
}

fn value_of<'a>(table: &'a mut Item, key: &str) -> Option<&'a mut Value> {
    table.get_mut(key)?.as_value_mut()
}

/// Replaces a value, and keeps the whitespace and the comment around it.
fn replace(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}
