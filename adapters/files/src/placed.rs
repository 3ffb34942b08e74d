//! Changes to other programs' files that can be reverted exactly.
//!
//! Before a file is changed, its text is stored in a backup next to it, and the state folder
//! records the digests of both texts. As long as no other program has changed the file, a revert
//! restores every byte; otherwise the caller removes only its own part.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::approvals::hash;
use crate::edit::{EditFileError, behind_links, keep, update};
use crate::error::FileError;
use crate::read::read_bounded;

/// The name of the store in the state folder.
const STORE: &str = "placed.json";

/// Maximum size of such a file, or of the store, in bytes.
///
/// Some programs keep their history in the same file.
const MAX_PLACED: u64 = 16 * 1024 * 1024;

/// Suffix of the name of a backup.
const BACKUP: &str = ".capstan-backup";

/// Changes to other programs' files, recorded in the state folder.
#[derive(Clone, Debug)]
pub struct Placed {
    store: PathBuf,
}

/// The starting point of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The current text of the file; `None` if there is no file.
    pub now: Option<String>,
    /// The current text without an earlier change of ours.
    pub base: Option<String>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// The file already has the new text.
    Already,
    /// The file was changed.
    Done {
        /// The backup of the previous text; `None` if there was no file.
        backup: Option<PathBuf>,
    },
}

/// The result of a revert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Every byte was restored.
    Restored,
    /// The file did not exist before, and was removed.
    Removed,
    /// Another program has changed the file, so only our part was removed.
    TakenOut {
        /// The remaining backup of the text before our change.
        backup: Option<PathBuf>,
    },
    /// Our part was not there.
    Nothing,
}

/// A change or a revert failed.
#[derive(Debug, thiserror::Error)]
pub enum PlacedError<E> {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The record of earlier changes is damaged.
    #[error("`{}` is damaged", store.display())]
    Corrupt {
        /// The store.
        store: PathBuf,
        /// The kind of damage.
        #[source]
        cause: serde_json::Error,
    },
    /// The change was refused; the file is unchanged.
    #[error("`{}` is not changed", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: E,
    },
    /// Another program has changed the file at the same time.
    #[error("`{}` has just been changed by another program", path.display())]
    Raced {
        /// The file.
        path: PathBuf,
    },
    /// The path is not UTF-8.
    #[error("`{}` is not a path in UTF-8", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
    },
}

/// The record of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// SHA-256 of the previous text; `None` if there was no file.
    before: Option<String>,
    /// SHA-256 of the new text.
    after: String,
    /// Folders that were created for the file, outermost first.
    folders: Vec<PathBuf>,
}

type Records = BTreeMap<String, Record>;

// === impl Placed ===

impl Placed {
    /// Opens the record of changes in the state folder `dir`.
    pub fn open(dir: &Path) -> Self {
        Self { store: dir.join(STORE) }
    }

    /// Reads a file of another program; `None` if it does not exist.
    pub fn read(path: &Path) -> Result<Option<String>, FileError> {
        read_bounded(path, MAX_PLACED)
    }

    /// True if a change of the file is recorded.
    pub fn knows<E>(&self, path: &Path) -> Result<bool, PlacedError<E>> {
        Ok(self.load()?.contains_key(key(path)?))
    }

    /// The place of the backup of a changed file.
    pub fn backup_path(path: &Path) -> PathBuf {
        backup_of(path)
    }

    /// The text before the recorded change of a file, if the backup is intact.
    pub fn backup<E>(&self, path: &Path) -> Result<Option<String>, PlacedError<E>> {
        match self.load()?.remove(key(path)?).and_then(|record| record.before) {
            Some(before) => kept(path, &before),
            None => Ok(None),
        }
    }

    /// The starting point of a new change.
    ///
    /// `take` removes our part from a text that others have changed; it gets an empty text if the
    /// changed file is missing.
    pub fn start<E>(
        &self,
        path: &Path,
        take: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Start, PlacedError<E>> {
        let now = Self::read(path)?;
        let Some(record) = self.load()?.remove(key(path)?) else {
            return Ok(Start { base: now.clone(), now });
        };
        let Some(text) = &now else {
            return Ok(Start { base: take("").map_err(|cause| refused(path, cause))?, now });
        };
        let untouched = hash(text.as_bytes()) == record.after;
        let base = match record.before.filter(|_| untouched) {
            None if untouched => None,
            None => taken(path, text, take)?,
            Some(before) => match kept(path, &before)? {
                Some(before) => Some(before),
                None => taken(path, text, take)?,
            },
        };
        Ok(Start { now, base })
    }

    /// Replaces the text of a file by `new`, made from `start`, and keeps a backup of the base.
    ///
    /// An earlier change is dropped from the record: the base is the text without it. A file that
    /// has changed since `start` is left alone, so that no other program's changes are lost.
    pub fn put<E>(&self, path: &Path, start: &Start, new: &str) -> Result<Put, PlacedError<E>> {
        let name = key(path)?.to_owned();
        let (now, base) = (start.now.as_deref(), start.base.as_deref());
        if Self::read(path)?.as_deref() != now {
            return Err(PlacedError::Raced { path: path.to_owned() });
        }
        let former = self.load()?.remove(&name);
        if now == Some(new) && former.is_some() {
            return Ok(Put::Already);
        }
        let folders = match (&former, base) {
            (Some(former), None) => former.folders.clone(),
            (_, _) => missing_folders(path),
        };
        if let Some(file) = now.is_some().then(|| behind_links(path)).transpose()?
            && fs::metadata(&file).is_ok_and(|meta| meta.permissions().readonly())
        {
            return Err(FileError::ReadOnly { path: file }.into());
        }
        let backup = base.map(|_| backup_of(path));
        if let (Some(backup), Some(base)) = (&backup, base) {
            keep(backup, base.as_bytes())?;
        }
        let before = base.map(|base| hash(base.as_bytes()));
        let record = Record { before, after: hash(new.as_bytes()), folders };
        self.change(|records| drop(records.insert(name.clone(), record)))?;
        let Err(failed) = write(path, now, new) else {
            return Ok(Put::Done { backup });
        };
        // The file is unchanged, so the record is restored.
        self.change(|records| match former {
            Some(former) => drop(records.insert(name, former)),
            None => drop(records.remove(&name)),
        })?;
        if let Some(backup) = backup.filter(|_| now == base) {
            drop(fs::remove_file(backup));
        }
        Err(failed)
    }

    /// Reverts a change; `take` removes our part from a text that others have changed since. It gets
    /// an empty text if the file is missing.
    pub fn take_back<E>(
        &self,
        path: &Path,
        take: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Taken, PlacedError<E>> {
        let name = key(path)?.to_owned();
        let record = self.load()?.remove(&name);
        let Some(now) = Self::read(path)? else {
            let taken = take_out(path, None, take)?;
            self.forget(&name)?;
            return Ok(taken);
        };
        let untouched = record.as_ref().filter(|record| hash(now.as_bytes()) == record.after);
        let taken = match untouched {
            Some(Record { before: None, folders, .. }) => {
                remove(&behind_links(path)?)?;
                for folder in folders.iter().rev() {
                    // A folder that is used otherwise by now stays.
                    drop(fs::remove_dir(folder));
                }
                Taken::Removed
            }
            Some(Record { before: Some(before), .. }) => match kept(path, before)? {
                Some(before) => {
                    write(path, Some(&now), &before)?;
                    remove(&backup_of(path))?;
                    Taken::Restored
                }
                None => take_out(path, Some(&now), take)?,
            },
            None => take_out(path, Some(&now), take)?,
        };
        self.forget(&name)?;
        Ok(taken)
    }

    /// The result that [`Placed::take_back`] would have, without any change.
    pub fn would_take_back<E>(
        &self,
        path: &Path,
        take: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Taken, PlacedError<E>> {
        let record = self.load()?.remove(key(path)?);
        let now = Self::read(path)?;
        let is_ours =
            |record: &Record| now.as_ref().is_some_and(|now| hash(now.as_bytes()) == record.after);
        let untouched = record.filter(is_ours);
        match untouched.map(|record| record.before) {
            Some(None) => return Ok(Taken::Removed),
            Some(Some(before)) if kept::<E>(path, &before)?.is_some() => {
                return Ok(Taken::Restored);
            }
            Some(Some(_)) | None => {}
        }
        let out = take(now.as_deref().unwrap_or_default());
        let out = out.map_err(|cause| refused(path, cause))?.is_some();
        Ok(if out { Taken::TakenOut { backup: None } } else { Taken::Nothing })
    }

    fn forget<E>(&self, name: &str) -> Result<(), PlacedError<E>> {
        if self.load()?.contains_key(name) {
            self.change(|records| drop(records.remove(name)))?;
        }
        Ok(())
    }

    fn load<E>(&self) -> Result<Records, PlacedError<E>> {
        let text = read_bounded(&self.store, MAX_PLACED)?;
        self.parse(text.as_deref())
    }

    fn parse<E>(&self, text: Option<&str>) -> Result<Records, PlacedError<E>> {
        let Some(text) = text else { return Ok(Records::new()) };
        let store = self.store.clone();
        serde_json::from_str(text).map_err(|cause| PlacedError::Corrupt { store, cause })
    }

    fn change<E>(&self, change: impl FnOnce(&mut Records)) -> Result<(), PlacedError<E>> {
        let edited = update(&self.store, MAX_PLACED, |text| {
            let mut records = self.parse::<E>(text)?;
            change(&mut records);
            let print = serde_json::to_string_pretty(&records);
            let store = self.store.clone();
            print.map_err(|cause| PlacedError::Corrupt { store, cause })
        });
        match edited {
            Ok(_) => Ok(()),
            Err(EditFileError::File(error)) => Err(error.into()),
            Err(EditFileError::Edit { cause, .. }) => Err(cause),
        }
    }
}

// === impl PlacedError ===

impl<E> PlacedError<E> {
    /// A hint how to fix it; the error of a refused change has its own.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => error.hint(),
            Self::Corrupt { store, .. } => Some(format!(
                "remove `{}`; entries can then be taken out, but not restored exactly",
                store.display()
            )),
            Self::Raced { .. } => Some("try again".to_owned()),
            Self::Edit { .. } | Self::BadPath { .. } => None,
        }
    }
}

fn take_out<E>(
    path: &Path,
    now: Option<&str>,
    take: impl FnOnce(&str) -> Result<Option<String>, E>,
) -> Result<Taken, PlacedError<E>> {
    let taken = take(now.unwrap_or_default()).map_err(|cause| refused(path, cause))?;
    let Some(new) = taken else { return Ok(Taken::Nothing) };
    write(path, now, &new)?;
    let backup = backup_of(path);
    Ok(Taken::TakenOut { backup: backup.exists().then_some(backup) })
}

fn taken<E>(
    path: &Path,
    text: &str,
    take: impl FnOnce(&str) -> Result<Option<String>, E>,
) -> Result<Option<String>, PlacedError<E>> {
    let taken = take(text).map_err(|cause| refused(path, cause))?;
    Ok(Some(taken.unwrap_or_else(|| text.to_owned())))
}

fn refused<E>(path: &Path, cause: E) -> PlacedError<E> {
    PlacedError::Edit { path: path.to_owned(), cause }
}

/// The backup, if it has this hash.
fn kept<E>(path: &Path, before: &str) -> Result<Option<String>, PlacedError<E>> {
    let text = read_bounded(&backup_of(path), MAX_PLACED)?;
    Ok(text.filter(|text| hash(text.as_bytes()) == before))
}

/// Replaces the text of a file, which must still be `now`.
fn write<E>(path: &Path, now: Option<&str>, new: &str) -> Result<(), PlacedError<E>> {
    let written = update(path, MAX_PLACED, |old| {
        let same = old == now;
        same.then(|| new.to_owned()).ok_or_else(|| PlacedError::Raced { path: path.to_owned() })
    });
    match written {
        Ok(_) => Ok(()),
        Err(EditFileError::File(error)) => Err(error.into()),
        Err(EditFileError::Edit { cause, .. }) => Err(cause),
    }
}

fn remove<E>(path: &Path) -> Result<(), PlacedError<E>> {
    fs::remove_file(path).map_err(|cause| FileError::Write { path: path.to_owned(), cause }.into())
}

fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(BACKUP);
    path.with_file_name(name)
}

/// The missing folders above a file, outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> =
        above.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

fn key<E>(path: &Path) -> Result<&str, PlacedError<E>> {
    path.to_str().ok_or_else(|| PlacedError::BadPath { path: path.to_owned() })
}
