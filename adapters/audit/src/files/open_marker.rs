//! Markers of the processes that write the log in the background.
//!
//! Such a process has entries in memory for a moment, and calls whose entries are still to come. It
//! keeps a marker in the folder `audit.open` as long as it runs, with a file lock on it. A clean
//! end removes the marker; a process that is killed leaves it behind without the lock, and so does
//! one that ends with lost entries that the log does not record. The lock decides, not the process
//! id, which another process may get.
//!
//! **Invariant:** markers are created and examined under the lock of the log, so that none is seen
//! between its creation and its locking.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::files::log_files::{LogFiles, PRIVATE};

/// Maximum number of markers of killed processes that are recorded together; the rest follow later.
const MOST: usize = 64;

/// Maximum number of files that are examined: many processes may be running.
const MOST_FILES: usize = 16_384;

/// The marker of this process. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct OpenMarker {
    /// The file to remove on drop.
    path: Option<PathBuf>,
    /// Holds the lock.
    _file: File,
}

/// A marker left behind by a killed process.
#[derive(Debug)]
pub(crate) struct Unclosed {
    /// The id of the killed process.
    pub(crate) process: u32,
    path: PathBuf,
    _file: File,
}

// === impl OpenMarker ===

impl OpenMarker {
    /// Creates a marker. The caller must hold the lock of the log.
    pub(crate) fn create(files: &LogFiles) -> io::Result<Self> {
        let folder = files.open_markers();
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let process = std::process::id();
        for number in 0..MOST {
            let path = folder.join(format!("{process}-{number}"));
            let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path);
            match file {
                Ok(file) => {
                    file.try_lock()?;
                    return Ok(Self { path: Some(path), _file: file });
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(cause),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Leaves the marker behind, like a process that is killed.
    pub(crate) fn leave(mut self) {
        self.path = None;
    }
}

impl Drop for OpenMarker {
    fn drop(&mut self) {
        // If this fails, the next writer records a crash that did not happen.
        drop(self.path.as_ref().map(fs::remove_file));
    }
}

// === impl Unclosed ===

impl Unclosed {
    /// Finds markers that no running process holds. The caller must hold the lock of the log.
    pub(crate) fn find(files: &LogFiles) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(files.open_markers()) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(cause) => return Err(cause),
        };
        for entry in entries.take(MOST_FILES) {
            found.extend(Self::at(entry?.path()));
            if found.len() == MOST {
                break;
            }
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    fn at(path: PathBuf) -> Option<Self> {
        let process = path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()?;
        let file = File::open(&path).ok()?;
        // The owner has an exclusive lock. Several readers may check at the same time.
        file.try_lock_shared().ok()?;
        // The owner may have removed it in between, and ended cleanly.
        is_at(&file, &path).then_some(Self { process, path, _file: file })
    }

    /// Removes the marker after the log has recorded it.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// True if the file at `path` is still this one.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}
