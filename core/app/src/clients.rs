//! Port for the configuration files of other MCP clients.

use std::path::{Path, PathBuf};

use capstan_config::Scope;
use capstan_import::Client;
use capstan_import::clients::ClientConnection;
use serde::Serialize;

use crate::AppError;
use crate::ConfigFile;

/// Reads and changes the configuration files of other MCP clients.
pub trait Clients {
    /// The existing files of this scope from which a client's servers are read.
    fn client_files(&self, client: Client, scope: Scope) -> Vec<PathBuf>;

    /// The file of this scope that an entry for Capstan belongs in, even if it does not exist yet.
    fn client_file(&self, client: Client, scope: Scope) -> Result<Option<PathBuf>, AppError>;

    /// The text of a client's file or of a Capstan file; empty if the file does not exist.
    fn client_text(&self, path: &Path) -> Result<String, AppError>;

    /// A path for display: relative to the home folder (`~/…`) if it is inside it.
    fn shown_path(&self, path: &str) -> String;

    /// The project folder, as clients identify the project.
    fn workspace(&self) -> String;

    /// True if only the user can read a file, or will be able to once it is created.
    fn is_private(&self, file: &ConfigFile) -> bool;

    /// The full path by which other programs start Capstan.
    fn own_path(&self) -> Result<String, AppError>;

    /// Adds an entry for Capstan to a client's file, in a way that can be undone.
    fn install(
        &self,
        spot: Spot<'_>,
        way: &ClientConnection,
        mode: Mode,
    ) -> Result<Installed, AppError>;

    /// Removes that entry.
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

/// Dry run or real change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only checks that the change is possible.
    Try,
    /// Makes the change.
    Do,
}

/// The result of adding the entry to a client's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Installed {
    /// The entry exists and is up to date.
    Already,
    /// The file has an entry that starts Capstan, and Capstan did not write it.
    ByHand,
    /// The file was created.
    Created,
    /// The file was changed.
    Changed {
        /// The backup of the previous text.
        backup: Option<PathBuf>,
    },
}

/// The result of removing the entry from a client's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Uninstalled {
    /// The file is byte for byte what it was before the entry.
    Restored,
    /// The file had been created for the entry and was deleted.
    Removed,
    /// The file has been changed since, so only the entry was removed.
    TakenOut {
        /// The backup of the text from before the entry.
        backup: Option<PathBuf>,
    },
    /// The entry was not there.
    Nothing,
}
