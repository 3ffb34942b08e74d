//! Configuration files: where they are, and whether the user trusts them.

use std::path::PathBuf;

use capstan_config::edit::EditError;
use capstan_config::{Dialect, Scope};
use serde::Serialize;

/// A change of a file's text.
pub type Change<'a> = &'a dyn Fn(&str) -> Result<String, EditError>;

/// A file of configuration, which may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// Which scope it has.
    pub scope: Scope,
    /// Whether it is there.
    pub exists: bool,
    /// Whose configuration it is, where that is known without looking into it.
    #[serde(skip)]
    pub dialect: Option<Dialect>,
}

/// How the user stands to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is no such file, or it needs no approval.
    NotNeeded,
    /// Approved as it is.
    Approved,
    /// Approved once, changed since.
    Changed {
        /// What was approved.
        before: String,
        /// What is there now.
        now: String,
    },
    /// Never approved.
    Unknown {
        /// What is there.
        now: String,
    },
}
