//! The project files that the operator has approved, with their approved texts.
//!
//! **Invariant:** an unreadable store is an error, never an empty store; a copy of it is kept under
//! another name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::edit::{EditFileError, replace, update};
use crate::error::FileError;
use crate::read::{read_bounded, read_bytes};

/// The name of the store in the state folder.
const STORE: &str = "approvals.json";

/// Maximum size of the store, in bytes: it holds the text of every approved file.
const MAX_STORE: u64 = 16 * 1024 * 1024;

/// The approved project files, kept in the state folder.
///
/// Every query reads the file anew, so that several processes agree.
#[derive(Clone, Debug)]
pub struct Approvals {
    store: PathBuf,
}

/// The operator's decision on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// This exact text is approved.
    Approved,
    /// Another text is approved.
    Changed {
        /// The approved text.
        approved_text: String,
    },
    /// No decision.
    Unknown,
}

/// An approved file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the text, in hex.
    pub hash: String,
    /// The approved text.
    pub text: String,
    /// The time of the approval.
    pub time: Timestamp,
}

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// The store could not be read or written.
    #[error("the list of trusted project files cannot be used")]
    File(#[source] FileError),
    /// The store is damaged.
    #[error("`{}` is damaged: {problem} (a copy is kept as `{}`)", store.display(), kept.display())]
    Corrupt {
        /// The store.
        store: PathBuf,
        /// The copy.
        kept: PathBuf,
        /// The kind of damage.
        problem: String,
    },
    /// A file can be approved only by its absolute path, in UTF-8.
    #[error("`{}` is not an absolute path in UTF-8", path.display())]
    BadPath {
        /// The path as given.
        path: PathBuf,
    },
}

/// One file in the store.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    hash: String,
    text: String,
    time: Timestamp,
}

/// The store: files by their absolute path.
type Records = BTreeMap<String, Record>;

/// The reason why a text is not a valid store.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotAStore(String);

// === impl Approvals ===

impl Approvals {
    /// Opens the approvals in the state folder `dir`; empty if there is no store.
    pub fn open(dir: &Path) -> Result<Self, ApprovalsError> {
        let approvals = Self { store: dir.join(STORE) };
        approvals.load()?;
        Ok(approvals)
    }

    /// The operator's decision on the file at `path`, which now contains `text`.
    pub fn status(&self, path: &Path, text: &str) -> Result<Approval, ApprovalsError> {
        let Some(record) = self.load()?.remove(key(path)?) else { return Ok(Approval::Unknown) };
        if record.text == text {
            return Ok(Approval::Approved);
        }
        Ok(Approval::Changed { approved_text: record.text })
    }

    /// Approves the file at `path` as long as it contains `text`.
    pub fn approve(&self, path: &Path, text: &str, time: Timestamp) -> Result<(), ApprovalsError> {
        let key = key(path)?.to_owned();
        let record = Record { hash: hash(text.as_bytes()), text: text.to_owned(), time };
        self.change(|records| drop(records.insert(key, record)))
    }

    /// Revokes the approval of the file at `path`; returns true if there was one.
    pub fn revoke(&self, path: &Path) -> Result<bool, ApprovalsError> {
        let key = key(path)?;
        let mut found = false;
        self.change(|records| found = records.remove(key).is_some())?;
        Ok(found)
    }

    /// All approved files, by path.
    pub fn list(&self) -> Result<Vec<Approved>, ApprovalsError> {
        let records = self.load()?.into_iter();
        let approved = records.map(|(path, Record { hash, text, time })| Approved {
            path: path.into(),
            hash,
            text,
            time,
        });
        Ok(approved.collect())
    }

    fn load(&self) -> Result<Records, ApprovalsError> {
        let text = match read_bounded(&self.store, MAX_STORE) {
            Ok(text) => text,
            Err(error) => return Err(self.broken(error)),
        };
        parse(text.as_deref()).map_err(|problem| self.corrupt(&problem))
    }

    fn change(&self, change: impl FnOnce(&mut Records)) -> Result<(), ApprovalsError> {
        let edited = update(&self.store, MAX_STORE, |text| {
            let mut records = parse(text)?;
            change(&mut records);
            print(&records)
        });
        match edited {
            Ok(_) => Ok(()),
            Err(EditFileError::File(error)) => Err(self.broken(error)),
            Err(EditFileError::Edit { cause, .. }) => Err(self.corrupt(&cause)),
        }
    }

    /// Text that is not UTF-8 counts as damage.
    fn broken(&self, error: FileError) -> ApprovalsError {
        if matches!(error, FileError::NotUtf8 { .. }) {
            return self.corrupt(&NotAStore(error.to_string()));
        }
        ApprovalsError::File(error)
    }

    /// Keeps a copy of a damaged store, named after its content.
    ///
    /// A second read makes no second copy, and a second damage does not overwrite the first copy.
    fn corrupt(&self, problem: &NotAStore) -> ApprovalsError {
        let bytes = match read_bytes(&self.store, MAX_STORE) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => return ApprovalsError::File(error),
        };
        let short: String = hash(&bytes).chars().take(8).collect();
        let kept = self.store.with_extension(format!("json.{short}.bad"));
        if !kept.exists()
            && let Err(error) = replace(&kept, &bytes)
        {
            return ApprovalsError::File(error);
        }
        ApprovalsError::Corrupt { store: self.store.clone(), kept, problem: problem.to_string() }
    }
}

// === impl ApprovalsError ===

impl ApprovalsError {
    /// A hint how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => error.hint(),
            Self::Corrupt { store, .. } => Some(format!(
                "repair `{}`, or remove it and trust the project files again",
                store.display()
            )),
            Self::BadPath { .. } => None,
        }
    }
}

fn key(path: &Path) -> Result<&str, ApprovalsError> {
    let text = path.is_absolute().then(|| path.to_str()).flatten();
    text.ok_or_else(|| ApprovalsError::BadPath { path: path.to_owned() })
}

/// Parses a store; only a missing file is an empty store.
fn parse(text: Option<&str>) -> Result<Records, NotAStore> {
    let Some(text) = text else { return Ok(Records::new()) };
    let records: Records =
        serde_json::from_str(text).map_err(|error| NotAStore(error.to_string()))?;
    for (path, record) in &records {
        if record.hash != hash(record.text.as_bytes()) {
            return Err(NotAStore(format!("the text of `{path}` does not match its hash")));
        }
    }
    Ok(records)
}

fn print(records: &Records) -> Result<String, NotAStore> {
    let mut text =
        serde_json::to_string_pretty(records).map_err(|error| NotAStore(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// SHA-256, in hex.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
