//! Replaces the text of a file atomically.
//!
//! The new text goes to a temporary file in the same folder, is synced to disk and renamed over the
//! old one: a rename is atomic. One lock per folder serializes edits, so none is lost; and under
//! this lock, every temporary file in the folder was left by a killed process.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::FileError;
use crate::lock::{FolderLock, LOCK_WAIT};
use crate::read::{MAX_SIZE, read_bounded};

/// Prefix and suffix of the names of temporary files.
const TEMP_PREFIX: &str = ".capstan-";
const TEMP_SUFFIX: &str = ".tmp";

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The file itself, after resolving links.
    pub path: PathBuf,
    /// The kind of change.
    pub change: Change,
}

/// The kind of change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The text is the same and nothing was written.
    Unchanged,
    /// The file was created.
    Created,
    /// The text was replaced.
    Replaced,
}

/// A failed edit.
#[derive(Debug, thiserror::Error)]
pub enum EditFileError<E> {
    /// The file could not be read or replaced.
    #[error(transparent)]
    File(#[from] FileError),
    /// The change was refused; the file is unchanged.
    #[error("`{}` is not changed", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: E,
    },
}

/// Replaces the text of a file by the result of `change`; a missing file has the text `""`.
///
/// A link is followed and stays. A new file has mode 0600, missing folders 0700; a replaced file
/// keeps its mode and owner.
pub fn edit<E>(
    path: &Path,
    change: impl FnOnce(&str) -> Result<String, E>,
) -> Result<Edited, EditFileError<E>> {
    update(path, MAX_SIZE, |old| change(old.unwrap_or_default()))
}

/// Like [`edit`], for files of up to `max` bytes; `change` gets `None` for a missing file.
pub(crate) fn update<E>(
    path: &Path,
    max: u64,
    change: impl FnOnce(Option<&str>) -> Result<String, E>,
) -> Result<Edited, EditFileError<E>> {
    let path = behind_links(path)?;
    let folder = folder_of(&path);
    create_folder(folder)?;
    let _lock = FolderLock::acquire(folder, LOCK_WAIT)?;
    remove_leftovers(folder);
    let old = read_bounded(&path, max)?;
    let new = match change(old.as_deref()) {
        Ok(new) => new,
        Err(cause) => return Err(EditFileError::Edit { path, cause }),
    };
    if new == old.as_deref().unwrap_or_default() {
        return Ok(Edited { path, change: Change::Unchanged });
    }
    if new.len() as u64 > max {
        return Err(FileError::TooLarge { path, max }.into());
    }
    let change = if old.is_some() { Change::Replaced } else { Change::Created };
    replace(&path, new.as_bytes())?;
    Ok(Edited { path, change })
}

/// Removes a file, unless its text is not `expected`; returns true if it was removed.
///
/// A link is followed and stays.
pub fn remove_unchanged(path: &Path, expected: &str) -> Result<bool, FileError> {
    let path = behind_links(path)?;
    let _lock = FolderLock::acquire(folder_of(&path), LOCK_WAIT)?;
    if read_bounded(&path, MAX_SIZE)?.as_deref() != Some(expected) {
        return Ok(false);
    }
    fs::remove_file(&path).map_err(|cause| FileError::Write { path, cause })?;
    Ok(true)
}

/// Does some work while no other process has the lock on a folder, which is created if missing.
///
/// The work must not edit files of that folder, as each edit needs the same lock.
pub fn with_lock<T>(folder: &Path, work: impl FnOnce() -> T) -> Result<T, FileError> {
    create_folder(folder)?;
    let _lock = FolderLock::acquire(folder, LOCK_WAIT)?;
    Ok(work())
}

/// Replaces a file or a link by a file with `bytes`.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let folder = folder_of(path);
    create_folder(folder)?;
    // Without the lock, another edit would remove the temporary file.
    let _lock = FolderLock::acquire(folder, LOCK_WAIT)?;
    remove_leftovers(folder);
    replace(path, bytes)
}

/// Replaces a file, which must not be a link, by one with `bytes`.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let failed = |cause| FileError::Write { path: path.to_owned(), cause };
    let old = match fs::metadata(path) {
        Ok(meta) => Some(meta),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
        Err(cause) => return Err(failed(cause)),
    };
    // A rename needs no permission on the file itself, so the read-only flag is checked here.
    if old.as_ref().is_some_and(|meta| meta.permissions().readonly()) {
        return Err(FileError::ReadOnly { path: path.to_owned() });
    }
    let folder = folder_of(path);
    let mut temp = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .suffix(TEMP_SUFFIX)
        .tempfile_in(folder)
        .map_err(failed)?;
    temp.write_all(bytes).map_err(failed)?;
    if let Some(old) = &old {
        keep_owner(temp.as_file(), old)
            .map_err(|cause| FileError::Owner { path: path.to_owned(), cause })?;
        let mode = Permissions::from_mode(old.mode() & 0o7777);
        temp.as_file().set_permissions(mode).map_err(failed)?;
    }
    temp.as_file().sync_all().map_err(failed)?;
    temp.persist(path).map_err(|error| failed(error.error))?;
    sync_folder(folder).map_err(|cause| FileError::Sync { path: path.to_owned(), cause })
}

/// Sets the owner and group of the old file, as its rights must not pass to another group.
fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let uid = (new.uid() != old.uid()).then(|| old.uid());
    let gid = (new.gid() != old.gid()).then(|| old.gid());
    match (uid, gid) {
        (None, None) => Ok(()),
        (uid, gid) => fchown(file, uid, gid),
    }
}

/// Makes the rename survive a power cut, if the file system supports it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

/// The path at the end of a chain of links; it need not exist.
pub(crate) fn behind_links(path: &Path) -> Result<PathBuf, FileError> {
    let mut place = path.to_owned();
    for _ in 0..=MAX_LINKS {
        let is_link = fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_symlink());
        if !is_link {
            return Ok(place);
        }
        let aim = fs::read_link(&place)
            .map_err(|cause| FileError::Read { path: place.clone(), cause })?;
        place = folder_of(&place).join(aim);
    }
    Err(FileError::TooManyLinks { path: path.to_owned() })
}

/// The folder of a file; the current one for a bare name.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    }
}

fn create_folder(folder: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|cause| FileError::Folder { folder: folder.to_owned(), cause })
}

/// Removes temporary files that killed edits left behind. Failures are harmless and ignored.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_leftover(&entry.file_name())) {
        drop(fs::remove_file(entry.path()));
    }
}

fn is_leftover(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(TEMP_PREFIX) && name.ends_with(TEMP_SUFFIX))
}
