//! Changes to a file: text in, text out.
//!
//! **Invariant:** only the lines that must change do. Comments, order, spacing and line endings of
//! everything else stay byte for byte, and what comes out can be read again.

mod document;
mod add;
pub mod remove;
mod permission;

pub use add::{NewProgram, NewRemote, NewServer, NewTarget, add_server, add_table, refusal};
pub use permission::{add_permission_rule, allow_effect};
pub use remove::remove_server;

use toml_edit::{Item, Value};

use document::{Editing, insert};

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Why a file cannot be changed.
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
        /// What is wrong there.
        #[source]
        cause: Box<toml_edit::TomlError>,
    },
    /// No such server in the file.
    #[error("no server named `{name}` in this file")]
    UnknownServer {
        /// The name asked for.
        name: String,
        /// The name most like it.
        nearest: Option<String>,
    },
    /// There is one of that name already.
    #[error("a server named `{existing}` is already in this file")]
    Exists {
        /// The name as the file has it.
        existing: String,
    },
    /// Nothing to call the server by.
    #[error("a server needs a name")]
    NoName,
    /// Something that should be a table or a list is something else.
    #[error("`{key}` in this file is not {expected}")]
    Unexpected {
        /// The dotted key.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The pattern of a rule cannot be read.
    #[error("`{pattern}` cannot be used as a pattern here")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        #[source]
        cause: Option<capstan_policy::BadPattern>,
    },
    /// The rule would be refused when the file is read.
    #[error("the rule would not be understood: {reason}")]
    Rule {
        /// Why.
        reason: String,
    },
    /// The server would be refused when the file is read.
    #[error("the server would be refused: {reason}")]
    Refused {
        /// Why.
        reason: String,
        /// What to do about it.
        help: Option<String>,
    },
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
    /// What the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownServer { nearest, .. } => {
                nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?"))
            }
            Self::Exists { existing } => {
                Some(format!("`capstan remove {existing}` makes room for it"))
            }
            Self::Syntax { .. } => {
                Some("`capstan config check` shows what is wrong with the file".to_owned())
            }
            Self::Refused { help, .. } => help.clone(),
            Self::NoName | Self::Unexpected { .. } | Self::Pattern { .. } | Self::Rule { .. } => {
                None
            }
        }
    }
}

fn value_of<'a>(table: &'a mut Item, key: &str) -> Option<&'a mut Value> {
    table.get_mut(key)?.as_value_mut()
}

/// Puts a new value in the place of an old one, with the space and the comment around it.
fn replace(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}
