//! Configuration files: their locations and their approval by the user.

use std::path::PathBuf;

use capstan_config::edit::EditError;
use capstan_config::{Dialect, Scope};
use serde::Serialize;

/// A change of a file's text.
pub type Change<'a> = &'a dyn Fn(&str) -> Result<String, EditError>;

/// A configuration file, which may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    /// The path.
    pub path: PathBuf,
    /// The scope.
    pub scope: Scope,
    /// True if the file exists.
    pub exists: bool,
    /// The program whose format it has, if that is known without reading it.
    #[serde(skip)]
    pub dialect: Option<Dialect>,
}

/// The user's approval of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The file does not exist, or it needs no approval.
    NotNeeded,
    /// The current text is approved.
    Approved,
    /// An earlier text was approved; the file has changed since.
    Changed {
        /// The approved text.
        before: String,
        /// The current text.
        now: String,
    },
    /// Never approved.
    Unknown {
        /// The current text.
        now: String,
    },
}
