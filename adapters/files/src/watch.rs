//! Tells when files may have changed, also those that are not there yet.
//!
//! Folders are watched and not files: editors put a new file in the place of the old one, and a file
//! that is not there cannot be watched.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// The most folders that are watched.
const MAX_FOLDERS: usize = 64;

/// Watches files until it is dropped.
#[derive(Debug)]
pub struct Watch {
    watcher: RecommendedWatcher,
    /// The files, and what they are links to.
    files: Arc<Mutex<BTreeSet<PathBuf>>>,
    folders: BTreeSet<PathBuf>,
}

/// Why files cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("files cannot be watched")]
pub struct WatchError(#[from] notify::Error);

// === impl Watch ===

impl Watch {
    /// Watches nothing yet. `changed` is called in a thread of its own, once or more for a change.
    ///
    /// # Errors
    /// When the system has no means for it, or none left.
    pub fn new(changed: impl Fn() + Send + 'static) -> Result<Self, WatchError> {
        let files = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let wanted = Arc::clone(&files);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever cannot tell what has changed may have missed something.
            if event.as_ref().map_or(true, |event| concerns(event, &wanted)) {
                drop(wanted);
                changed();
            }
        })?;
        Ok(Self { watcher, files, folders: BTreeSet::new() })
    }

    /// Watches these files, or everything in these folders, and nothing else. To be called again
    /// after a change: a folder may have been made or put in the place of another.
    ///
    /// # Errors
    /// When one of the folders cannot be watched; the others are.
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
            // It may be gone.
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

/// The folder by which changes of a file are seen: its own or the nearest that is there. A folder
/// is seen by itself.
fn folder(file: &Path) -> Option<&Path> {
    if file.is_dir() {
        return Some(file);
    }
    file.ancestors().skip(1).find(|folder| folder.is_dir())
}

/// Whether something has happened to one of the files, to a folder above it or to something in it.
fn concerns(event: &Event, files: &BTreeSet<PathBuf>) -> bool {
    // Reading changes nothing, and we do it ourselves after every change.
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let touches =
        |path: &PathBuf| files.iter().any(|file| file.starts_with(path) || path.starts_with(file));
    event.need_rescan() || event.paths.iter().any(touches)
}
