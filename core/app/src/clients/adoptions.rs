//! The records of adoptions, in a file of the state folder.

use std::path::{Path, PathBuf};

use capstan_config::edit::{EditError, remove_server};
use capstan_import::Client;
use capstan_import::clients::ServerKey;
use serde::{Deserialize, Serialize};

use super::{Clients, EntryFile};
use crate::AppError;

/// The file of the records.
const STORE: &str = "adopted.json";

/// A client whose servers were moved to Capstan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Adoption {
    /// The client's word.
    pub(super) client: String,
    /// The client's file that has the entry for Capstan.
    pub(super) entry: PathBuf,
    /// The client's files that were changed.
    pub(super) files: Vec<AdoptedFile>,
    /// Capstan's file that has the servers now.
    pub(super) config: PathBuf,
    /// The text of that file without the servers; `None` if there was no file.
    pub(super) before: Option<String>,
    /// The text of that file with the servers.
    pub(super) after: String,
    /// The servers that were added to it.
    pub(super) added: Vec<String>,
    /// All servers of it that the client had, also those that were there before.
    pub(super) used: Vec<String>,
}

/// A client's file that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AdoptedFile {
    pub(super) path: PathBuf,
    /// The servers that were removed from it.
    pub(super) taken: Vec<ServerKey>,
    /// True if an entry for Capstan was added to it.
    pub(super) has_entry: bool,
}

// === impl Adoption ===

impl Adoption {
    pub(super) fn is_of(&self, client: Client, entry: &Path) -> bool {
        self.client == client.as_str() && self.entry == entry
    }

    /// The changed file at a path.
    pub(super) fn file(&self, path: &Path) -> Option<&AdoptedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The text of Capstan's file without the servers that were added, if it is now `text`.
    pub(super) fn before(&self, text: &str) -> Result<Option<String>, AppError> {
        if text == self.after {
            return Ok(self.before.clone());
        }
        Ok(Some(without(text, &self.added)?))
    }
}

/// Removes servers from a text of ours; those that are not there are skipped.
pub(super) fn without(text: &str, names: &[String]) -> Result<String, EditError> {
    names.iter().try_fold(text.to_owned(), |text, name| match remove_server(&text, name) {
        Err(EditError::UnknownServer { .. }) => Ok(text),
        removed => removed,
    })
}

// === impl Clients ===

impl Clients {
    pub(super) fn adoptions(&self) -> Result<Vec<Adoption>, AppError> {
        let path = self.store();
        let Some(text) = self.environment.files.read(&path)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| {
            let message = format!("the record {} is damaged: {error}", path.display());
            AppError::config(message).hint("restore it from a backup, or move it away")
        })
    }

    pub(super) fn save_adoptions(&self, adoptions: &[Adoption]) -> Result<(), AppError> {
        let text = serde_json::to_string_pretty(adoptions)
            .map_err(|error| AppError::internal(error.to_string()))?;
        self.environment.files.edit(&self.store(), &mut |_| Ok(text.clone())).map(drop)
    }

    /// Refuses to change the entry of an adopted client in a way that would lose its servers.
    pub(super) fn refuse_adopted(&self, file: EntryFile<'_>) -> Result<(), AppError> {
        let EntryFile { client, path } = file;
        if !self.adoptions()?.iter().any(|adoption| adoption.is_of(client, path)) {
            return Ok(());
        }
        let (title, word) = (client.title(), client.as_str());
        let message = format!("the servers of {title} were moved to Capstan by `capstan adopt`");
        Err(AppError::usage(message).hint(format!(
            "`capstan adopt {word}` changes the entry, `capstan adopt {word} --undo` moves the servers back"
        )))
    }

    fn store(&self) -> PathBuf {
        self.environment.state.join(STORE)
    }
}
