//! What commands need that deal with other programs' files.

use std::path::{Path, PathBuf};

use capstan_config::Scope;
use capstan_import::Client;
use capstan_import::clients::Way;
use serde::Serialize;

use crate::AppError;
use crate::ConfigFile;

/// Other programs' files.
pub trait Clients {
    /// The files of this scope that a client's servers are read from, of those that are there.
    fn client_files(&self, client: Client, scope: Scope) -> Vec<PathBuf>;

    /// The file of this scope that an entry for us belongs into, whether or not it is there.
    fn client_file(&self, client: Client, scope: Scope) -> Result<Option<PathBuf>, AppError>;

    /// The text of a client's file, or of one of ours; empty when there is none.
    fn client_text(&self, path: &Path) -> Result<String, AppError>;

    /// A path as people write it: from their home, where it is there.
    fn shown_path(&self, path: &str) -> String;

    /// The folder that clients know the project by.
    fn workspace(&self) -> String;

    /// Whether nobody but the user can read a file, or will when it is made.
    fn is_private(&self, file: &ConfigFile) -> bool;

    /// The full path by which other programs start us.
    fn own_path(&self) -> Result<String, AppError>;

    /// Puts an entry for us into a client's file, so that it can be taken out again.
    fn install(&self, spot: Spot<'_>, way: &Way, mode: Mode) -> Result<Installed, AppError>;

    /// Takes the entry out again.
    fn uninstall(&self, spot: Spot<'_>, mode: Mode) -> Result<Uninstalled, AppError>;
}

/// A client's file.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// The client.
    pub client: Client,
    /// The file.
    pub path: &'a Path,
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is only found out whether it could be.
    Try,
    /// It is done.
    Do,
}

/// What became of a client's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Installed {
    /// The entry is there as it should be.
    Already,
    /// Somebody else has put an entry there that starts us.
    ByHand,
    /// The file was made.
    Created,
    /// The file was changed.
    Changed {
        /// Where the text before is kept.
        backup: Option<PathBuf>,
    },
}

/// What became of a client's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Uninstalled {
    /// It is byte for byte what it was.
    Restored,
    /// It had been made for the entry, and is gone.
    Removed,
    /// Others have changed it since, so that only the entry was taken out.
    TakenOut {
        /// Where the text from before the entry is still kept.
        backup: Option<PathBuf>,
    },
    /// The entry was not there.
    Nothing,
}
