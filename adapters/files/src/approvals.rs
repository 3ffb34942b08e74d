//! Which project files the operator has agreed to, and what they said then.
//!
//! **Invariant:** a store that cannot be understood is an error, never an empty store; what it
//! held is kept under another name.

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

/// The most the store may have, in bytes: it holds the text of every approved file.
const MAX_STORE: u64 = 16 * 1024 * 1024;

/// The project files the operator has agreed to, kept in the state folder.
///
/// Every question reads the file anew, so that several processes agree.
#[derive(Clone, Debug)]
pub struct Approvals {
    store: PathBuf,
}

/// What the operator has said about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Yes to exactly this text.
    Approved,
    /// Yes to another text.
    Changed {
        /// The text that was agreed to.
        approved_text: String,
    },
    /// Nothing.
    Unknown,
}

/// A file the operator has agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the text, in hex.
    pub hash: String,
    /// The text that was agreed to.
    pub text: String,
    /// When.
    pub time: Timestamp,
}

/// A store that could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalsError {
    /// The store could not be read or written.
    #[error("the approvals of project files are not usable")]
    File(#[source] FileError),
    /// The store is damaged.
    #[error("`{}` is damaged: {problem} (a copy is kept as `{}`)", store.display(), kept.display())]
    Corrupt {
        /// The store.
        store: PathBuf,
        /// The copy.
        kept: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file can be approved only by its full path, in UTF-8.
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

/// Why a text is not a store.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotAStore(String);

// === impl Approvals ===

impl Approvals {
    /// The approvals in the state folder `dir`; none yet when it holds no store.
    pub fn open(dir: &Path) -> Result<Self, ApprovalsError> {
        let approvals = Self { store: dir.join(STORE) };
        approvals.load()?;
        Ok(approvals)
    }

    /// What the operator has said about the file at `path`, which now holds `text`.
    pub fn status(&self, path: &Path, text: &str) -> Result<Approval, ApprovalsError> {
        let Some(record) = self.load()?.remove(key(path)?) else { return Ok(Approval::Unknown) };
        if record.text == text {
            return Ok(Approval::Approved);
        }
        Ok(Approval::Changed { approved_text: record.text })
    }

    /// Remembers that the operator agrees to the file at `path` as long as it holds `text`.
    pub fn approve(&self, path: &Path, text: &str, time: Timestamp) -> Result<(), ApprovalsError> {
        let key = key(path)?.to_owned();
        let record = Record { hash: hash(text.as_bytes()), text: text.to_owned(), time };
        self.change(|records| drop(records.insert(key, record)))
    }

    /// Forgets about the file at `path`; says whether there was something to forget.
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

    /// Bytes that are not text are damage like any other.
    fn broken(&self, error: FileError) -> ApprovalsError {
        if matches!(error, FileError::NotUtf8 { .. }) {
            return self.corrupt(&NotAStore(error.to_string()));
        }
        ApprovalsError::File(error)
    }

    /// Keeps a copy, named after its content: looking twice makes one copy, and a second damage
    /// does not overwrite what is left of the first.
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
    /// What the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => error.hint(),
            Self::Corrupt { store, .. } => Some(format!(
                "repair `{}` or remove it; then every project file is asked for again",
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

/// Reads a store; only a file that is not there is an empty one.
fn parse(text: Option<&str>) -> Result<Records, NotAStore> {
    let Some(text) = text else { return Ok(Records::new()) };
    let records: Records =
        serde_json::from_str(text).map_err(|error| NotAStore(error.to_string()))?;
    for (path, record) in &records {
        if record.hash != hash(record.text.as_bytes()) {
            return Err(NotAStore(format!("the text of `{path}` does not fit its hash")));
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
