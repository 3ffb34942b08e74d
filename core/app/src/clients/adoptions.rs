//! The records of adoptions, in a file of the state folder.

use std::path::{Path, PathBuf};

use capstan_config::edit::{EditError, remove_server};
use capstan_import::Client;
use capstan_import::clients::ServerKey;
use capstan_import::servers::FormerLimit;
use serde::{Deserialize, Serialize};

use super::{Clients, EntryFile};
use crate::AppError;

/// The file of the records.
const STORE: &str = "adopted.json";

/// The folder that is locked during an adoption. It is not the folder of the records, whose lock
/// each change of a file in it needs.
const LOCK: &str = "adopting";

/// All records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Records {
    pub(super) adoptions: Vec<Adoption>,
    /// The files of Capstan that have servers of adoptions.
    pub(super) configs: Vec<ConfigRecord>,
}

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
    /// The servers that were added to it.
    pub(super) added: Vec<String>,
    /// All servers of it that the client had, also those that were there before.
    pub(super) used: Vec<String>,
    /// The limits that the client's files demand of all servers.
    pub(super) limits: Vec<FormerLimit>,
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

/// A file of Capstan that has servers of adoptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConfigRecord {
    pub(super) path: PathBuf,
    /// The text without any adoption; `None` if there was no file.
    pub(super) before: Option<String>,
    /// The text with all adoptions.
    pub(super) after: String,
}

// === impl Records ===

impl Records {
    pub(super) fn adoption(&self, client: Client, entry: &Path) -> Option<&Adoption> {
        self.adoptions.iter().find(|adoption| adoption.is_of(client, entry))
    }

    /// The adoptions that have servers in a file of Capstan, without the one of this client.
    pub(super) fn others(&self, client: Client, entry: &Path, config: &Path) -> Vec<&Adoption> {
        let all = self.adoptions.iter().filter(|adoption| adoption.config == config);
        all.filter(|adoption| !adoption.is_of(client, entry)).collect()
    }

    pub(super) fn config(&self, path: &Path) -> Option<&ConfigRecord> {
        self.configs.iter().find(|config| config.path == path)
    }

    /// Replaces or removes the record of a client.
    pub(super) fn set_adoption(&mut self, client: Client, entry: &Path, new: Option<Adoption>) {
        self.adoptions.retain(|adoption| !adoption.is_of(client, entry));
        self.adoptions.extend(new);
    }

    /// Replaces or removes the record of a file of Capstan.
    pub(super) fn set_config(&mut self, path: &Path, new: Option<ConfigRecord>) {
        self.configs.retain(|config| config.path != path);
        self.configs.extend(new);
    }

    /// The text of a file of Capstan without any adoption, if it is now `text`.
    pub(super) fn bare(&self, path: &Path, text: Option<&str>) -> Result<Option<String>, AppError> {
        let (Some(text), Some(record)) = (text, self.config(path)) else {
            return Ok(text.map(str::to_owned));
        };
        if text == record.after {
            return Ok(record.before.clone());
        }
        let adoptions = self.adoptions.iter().filter(|adoption| adoption.config == path);
        let mut bare = text.to_owned();
        for adoption in adoptions.rev() {
            bare = without(&bare, &adoption.added, &adoption.limits)?;
        }
        let is_ours = record.before.is_none() && bare.trim().is_empty();
        Ok((!is_ours).then_some(bare))
    }
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

    pub(super) fn uses(&self, name: &str) -> bool {
        self.used.iter().any(|used| used == name)
    }

    pub(super) fn demands(&self, limit: &FormerLimit) -> bool {
        self.limits.iter().any(|own| own.is_same_key(limit))
    }
}

/// Removes servers from a text of ours, and restores limits; servers that are not there are
/// skipped.
pub(super) fn without(
    text: &str,
    names: &[String],
    limits: &[FormerLimit],
) -> Result<String, EditError> {
    // The inverse of adding, so the last one goes first.
    let text = limits.iter().rev().try_fold(text.to_owned(), |text, limit| limit.restore(&text))?;
    names.iter().rev().try_fold(text, |text, name| match remove_server(&text, name) {
        Err(EditError::UnknownServer { .. }) => Ok(text),
        removed => removed,
    })
}

// === impl Clients ===

impl Clients {
    pub(super) fn records(&self) -> Result<Records, AppError> {
        let text = self.environment.files.read(&self.store())?;
        self.parse_records(text.as_deref().unwrap_or_default())
    }

    /// Changes the records as they are now, so that those of other programs are kept.
    pub(super) fn change_records(
        &self,
        mut change: impl FnMut(&mut Records),
    ) -> Result<(), AppError> {
        let mut damage = None;
        let edited = self.environment.files.edit(&self.store(), &mut |text| {
            let changed = self.parse_records(text).and_then(|mut records| {
                change(&mut records);
                serde_json::to_string_pretty(&records)
                    .map_err(|error| AppError::internal(error.to_string()))
            });
            changed.map_err(|error| {
                damage = Some(error);
                EditError::FileRaced
            })
        });
        match damage {
            Some(damage) => Err(damage),
            None => edited.map(drop),
        }
    }

    /// Runs an adoption or a return while no other one runs.
    pub(super) fn alone<T>(
        &self,
        work: impl FnOnce() -> Result<T, AppError>,
    ) -> Result<T, AppError> {
        let (mut work, mut result) = (Some(work), None);
        self.environment.files.locked(&self.environment.state.join(LOCK), &mut || {
            result = work.take().map(|work| work());
        })?;
        result.unwrap_or_else(|| Err(AppError::internal("the adoption did not run")))
    }

    /// Refuses to change the entry of an adopted client in a way that would lose its servers.
    pub(super) fn refuse_adopted(&self, file: EntryFile<'_>) -> Result<(), AppError> {
        let EntryFile { client, path } = file;
        if self.records()?.adoption(client, path).is_none() {
            return Ok(());
        }
        let (title, word) = (client.title(), client.as_str());
        let message = format!("the servers of {title} were moved to Capstan by `capstan adopt`");
        Err(AppError::usage(message).hint(format!(
            "`capstan adopt {word}` changes the entry, `capstan adopt {word} --undo` moves the servers back"
        )))
    }

    fn parse_records(&self, text: &str) -> Result<Records, AppError> {
        if text.trim().is_empty() {
            return Ok(Records::default());
        }
        serde_json::from_str(text).map_err(|error| {
            let message = format!("the record {} is damaged: {error}", self.store().display());
            AppError::config(message).hint("restore it from a backup, or move it away")
        })
    }

    fn store(&self) -> PathBuf {
        self.environment.state.join(STORE)
    }
}
