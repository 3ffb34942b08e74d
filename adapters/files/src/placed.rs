//! Changes in other programs' files that can be taken back exactly.
//!
//! Before a file is changed, its text is kept beside it and noted in the state folder with what it
//! becomes. As long as nobody else has changed the file, taking the change back puts every byte
//! where it was; else the caller takes out what it had put in, and nothing else.

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

/// The most that such a file, or the store, may have, in bytes. Some programs keep their history
/// in the same file.
const MAX_PLACED: u64 = 16 * 1024 * 1024;

/// What the name of a kept text ends with.
const BACKUP: &str = ".capstan-backup";

/// Changes in other programs' files, noted in the state folder.
#[derive(Clone, Debug)]
pub struct Placed {
    store: PathBuf,
}

/// What a change of a file starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The text that the file has; `None` when there is no file.
    pub now: Option<String>,
    /// The same without a former change of ours.
    pub base: Option<String>,
}

/// How a file was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It says already what it should.
    Already,
    /// It was changed.
    Done {
        /// Where the text before is kept; `None` when there was no file.
        backup: Option<PathBuf>,
    },
}

/// How a change was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Every byte is where it was.
    Restored,
    /// There was no file before, and there is none now.
    Removed,
    /// Somebody else has changed the file, so only our part was taken out.
    TakenOut {
        /// Where the text from before our change is still kept.
        backup: Option<PathBuf>,
    },
    /// Our part was not there.
    Nothing,
}

/// A change that was not made, or not taken back.
#[derive(Debug, thiserror::Error)]
pub enum PlacedError<E> {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The notes of former changes are damaged.
    #[error("`{}` is damaged", store.display())]
    Corrupt {
        /// The store.
        store: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// The change itself was refused; the file is as it was.
    #[error("`{}` is not changed", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: E,
    },
    /// Somebody else has changed the file in the same moment.
    #[error("`{}` has just been changed by another program", path.display())]
    Raced {
        /// The file.
        path: PathBuf,
    },
    /// The path is not text.
    #[error("`{}` is not a path in UTF-8", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
    },
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// SHA-256 of the text before; `None` when there was no file.
    before: Option<String>,
    /// SHA-256 of the text after.
    after: String,
    /// Folders that were made for the file, outermost first.
    folders: Vec<PathBuf>,
}

type Records = BTreeMap<String, Record>;

// === impl Placed ===

impl Placed {
    /// The changes that are noted in the state folder `dir`.
    pub fn open(dir: &Path) -> Self {
        Self { store: dir.join(STORE) }
    }

    /// The text of a file of another program; `None` when there is no such file.
    pub fn read(path: &Path) -> Result<Option<String>, FileError> {
        read_bounded(path, MAX_PLACED)
    }

    /// Whether a change of the file is noted.
    pub fn knows<E>(&self, path: &Path) -> Result<bool, PlacedError<E>> {
        Ok(self.load()?.contains_key(key(path)?))
    }

    /// What a new change of the file starts from.
    pub fn start<E>(
        &self,
        path: &Path,
        take: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Start, PlacedError<E>> {
        let now = Self::read(path)?;
        let (Some(text), Some(record)) = (&now, self.load()?.remove(key(path)?)) else {
            return Ok(Start { base: now.clone(), now });
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

    /// Replaces the text of a file by `new`, made from `start`; keeps the base beside it.
    ///
    /// A change noted before is forgotten: the base is the text without it. A file that is no longer
    /// as it was at the start is left alone, or what somebody else has written since would be lost.
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
        // The file is as it was, and so are the notes.
        self.change(|records| match former {
            Some(former) => drop(records.insert(name, former)),
            None => drop(records.remove(&name)),
        })?;
        if let Some(backup) = backup.filter(|_| now == base) {
            drop(fs::remove_file(backup));
        }
        Err(failed)
    }

    /// Takes a change back; `take` takes our part out of a text that others have changed since.
    pub fn take_back<E>(
        &self,
        path: &Path,
        take: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Taken, PlacedError<E>> {
        let name = key(path)?.to_owned();
        let record = self.load()?.remove(&name);
        let Some(now) = Self::read(path)? else {
            self.forget(&name)?;
            return Ok(Taken::Nothing);
        };
        let untouched = record.as_ref().filter(|record| hash(now.as_bytes()) == record.after);
        let taken = match untouched {
            Some(Record { before: None, folders, .. }) => {
                remove(&behind_links(path)?)?;
                for folder in folders.iter().rev() {
                    // One that somebody else uses by now stays.
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
                None => take_out(path, &now, take)?,
            },
            None => take_out(path, &now, take)?,
        };
        self.forget(&name)?;
        Ok(taken)
    }

    /// What [`Placed::take_back`] would do, without doing it.
    pub fn would_take_back<E>(
        &self,
        path: &Path,
        take: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<Taken, PlacedError<E>> {
        let record = self.load()?.remove(key(path)?);
        let Some(now) = Self::read(path)? else { return Ok(Taken::Nothing) };
        let untouched = record.filter(|record| hash(now.as_bytes()) == record.after);
        match untouched.map(|record| record.before) {
            Some(None) => return Ok(Taken::Removed),
            Some(Some(before)) if kept::<E>(path, &before)?.is_some() => {
                return Ok(Taken::Restored);
            }
            Some(Some(_)) | None => {}
        }
        let cause = |cause| PlacedError::Edit { path: path.to_owned(), cause };
        let out = take(&now).map_err(cause)?.is_some();
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
    /// What the reader can do about it; what the change itself says is left to its own error.
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
    now: &str,
    take: impl FnOnce(&str) -> Result<Option<String>, E>,
) -> Result<Taken, PlacedError<E>> {
    let cause = |cause| PlacedError::Edit { path: path.to_owned(), cause };
    let Some(new) = take(now).map_err(cause)? else { return Ok(Taken::Nothing) };
    write(path, Some(now), &new)?;
    let backup = backup_of(path);
    Ok(Taken::TakenOut { backup: backup.exists().then_some(backup) })
}

fn taken<E>(
    path: &Path,
    text: &str,
    take: impl FnOnce(&str) -> Result<Option<String>, E>,
) -> Result<Option<String>, PlacedError<E>> {
    let cause = |cause| PlacedError::Edit { path: path.to_owned(), cause };
    Ok(Some(take(text).map_err(cause)?.unwrap_or_else(|| text.to_owned())))
}

/// The text that was kept, if it is the one with this hash.
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

/// The folders above a file that are not there, outermost first.
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
