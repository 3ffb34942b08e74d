//! The notes on disk: one JSON file that is replaced whole.
//!
//! A change is written beside the file, flushed to the disk and renamed over it, so that whoever
//! dies in the middle leaves the old notes or the new ones. A lock file lets several processes
//! share the folder without losing each other's notes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::missing;
use crate::fault::Fault;

/// Most notes in the file.
const MAX_NOTES: usize = 500;

/// Largest file read: what the bounds of titles and texts allow, when every byte is escaped.
const MAX_FILE: u64 = 128 * 1024 * 1024;

/// The folder of the notes.
pub(super) struct Store {
    folder: PathBuf,
}

/// One note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) id: u64,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) created: Timestamp,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Shelf {
    /// Never given twice, so that an old reference cannot reach a new note.
    next_id: u64,
    notes: Vec<Note>,
}

// === impl Store ===

impl Store {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// All notes, oldest first.
    pub(super) fn load(&self) -> Result<Vec<Note>, Fault> {
        Ok(self.read()?.notes)
    }

    pub(super) fn add(
        &self,
        title: String,
        text: String,
        created: Timestamp,
    ) -> Result<Note, Fault> {
        let _lock = self.lock()?;
        let mut kept = self.read()?;
        if kept.notes.len() >= MAX_NOTES {
            let reason = format!("there are {MAX_NOTES} notes already; delete one first");
            return Err(Fault::refused(reason));
        }
        let note = Note { id: kept.next_id, title, text, created };
        kept.next_id += 1;
        kept.notes.push(note.clone());
        self.write(&kept)?;
        Ok(note)
    }

    pub(super) fn delete(&self, id: u64) -> Result<Note, Fault> {
        let _lock = self.lock()?;
        let mut kept = self.read()?;
        let place = kept.notes.iter().position(|note| note.id == id).ok_or_else(|| missing(id))?;
        let gone = kept.notes.remove(place);
        self.write(&kept)?;
        Ok(gone)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("notes.json")
    }

    /// Keeps other processes out until it is dropped.
    fn lock(&self) -> Result<File, Fault> {
        fs::create_dir_all(&self.folder).map_err(Fault::io("create", &self.folder))?;
        let path = self.folder.join("notes.lock");
        let lock = private(OpenOptions::new().create(true).truncate(false).write(true))
            .open(&path)
            .map_err(Fault::io("open", &path))?;
        lock.lock().map_err(Fault::io("lock", &path))?;
        Ok(lock)
    }

    fn read(&self) -> Result<Shelf, Fault> {
        let path = self.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Ok(Shelf { next_id: 1, notes: Vec::new() });
            }
            Err(cause) => return Err(Fault::io("read", path)(cause)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(Fault::io("read", &path))?;
        // Never overwritten: somebody may want it back.
        serde_json::from_slice(&bytes).map_err(|problem| {
            let problem = format!("it does not hold notes ({problem}); move it away");
            Fault::io("read", path)(io::Error::new(io::ErrorKind::InvalidData, problem))
        })
    }

    fn write(&self, kept: &Shelf) -> Result<(), Fault> {
        let path = self.path();
        let problem = Fault::io("write", &path);
        let bytes = serde_json::to_vec_pretty(kept).map_err(io::Error::from).map_err(&problem)?;
        let fresh = self.folder.join("notes.json.new");
        let mut file = private(OpenOptions::new().create(true).truncate(true).write(true))
            .open(&fresh)
            .map_err(&problem)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(&problem)?;
        fs::rename(&fresh, &path).map_err(&problem)?;
        self.sync_folder().map_err(problem)
    }

    /// Without this a power cut could undo the rename.
    #[cfg(unix)]
    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    /// Folders cannot be opened as files here, and the rename is durable without.
    #[cfg(not(unix))]
    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Notes are nobody else's business.
#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

/// Where files have no modes they inherit from their folder.
#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}
