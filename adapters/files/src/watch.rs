//! Reports when files may have changed, including files that do not exist yet.
//!
//! Folders are watched, not files: editors replace the old file by a new one, and a missing file
//! cannot be watched.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// Maximum number of watched folders.
const MAX_FOLDERS: usize = 64;

/// Watches files until it is dropped.
#[derive(Debug)]
pub struct Watch {
    watcher: RecommendedWatcher,
    /// The files, and the targets of links.
    files: Arc<Mutex<BTreeSet<PathBuf>>>,
    folders: BTreeSet<PathBuf>,
}

/// Files cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("files cannot be watched")]
pub struct WatchError(#[from] notify::Error);

// === impl Watch ===

impl Watch {
    /// Creates a watch without files.
    ///
    /// `changed` is called on a separate thread, once or more per change.
    ///
    /// # Errors
    /// If the system does not support it, or has no resources left.
    pub fn new(changed: impl Fn() + Send + 'static) -> Result<Self, WatchError> {
        let files = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let wanted = Arc::clone(&files);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
            // An unclear event may stand for missed changes.
            if event.as_ref().map_or(true, |event| concerns(event, &wanted)) {
                drop(wanted);
                changed();
            }
        })?;
        Ok(Self { watcher, files, folders: BTreeSet::new() })
    }

    /// Watches these files, or everything in these folders, and nothing else.
    ///
    /// Must be called again after a change: a folder may have been created or replaced.
    ///
    /// # Errors
    /// If one of the folders cannot be watched; the others are.
    pub fn set<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) -> Result<(), WatchError> {
        let mut all = BTreeSet::new();
        for file in files {
            all.insert(file.to_owned());
            all.extend(file.canonicalize());
        }
        let folders = all.iter().filter_map(|file| folder(file)).take(MAX_FOLDERS);
        let folders: BTreeSet<PathBuf> = folders.map(Path::to_owned).collect();
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = all;
        for old in std::mem::replace(&mut self.folders, folders) {
            // The folder may be gone.
            drop(self.watcher.unwatch(&old));
        }
        let mut result = Ok(());
        for folder in &self.folders {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                result = Err(error.into());
            }
        }
        result
    }
}

/// The folder that must be watched for a file: its own, or the nearest that exists.
///
/// A folder is watched itself.
fn folder(file: &Path) -> Option<&Path> {
    if file.is_dir() {
        return Some(file);
    }
    file.ancestors().skip(1).find(|folder| folder.is_dir())
}

/// True if an event concerns one of the files, a folder above it or an entry in it.
fn concerns(event: &Event, files: &BTreeSet<PathBuf>) -> bool {
    // Reading changes nothing, and the gateway reads after every change.
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let touches =
        |path: &PathBuf| files.iter().any(|file| file.starts_with(path) || path.starts_with(file));
    event.need_rescan() || event.paths.iter().any(touches)
}
