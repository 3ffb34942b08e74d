//! The file next to the log that carries the lock and the start and end of the chain.
//!
//! A hash chain alone cannot reveal that its last lines are missing; this file can. It is written
//! after the log, so that a crash between the two leaves it one entry behind, which is harmless.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::AuditError;
use crate::row::ChainLink;

/// Timeout for the lock.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The first and the longest pause between two attempts to lock.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Size of a slot.
///
/// The file has two, for the start and for the end of the chain. Each is padded, so that a short
/// one completely overwrites a longer one.
const SLOT: usize = 128;

/// The start and the end of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The link before the oldest entry that is kept.
    pub(crate) start: ChainLink,
    /// The last written entry.
    pub(crate) last: ChainLink,
}

/// The file on disk.
#[derive(Debug)]
pub(crate) struct HeadFile {
    path: PathBuf,
    file: File,
}

/// A held lock. It is released on drop, and by the system when the process ends.
pub(crate) struct Locked<'a>(&'a File);

// === impl HeadFile ===

impl HeadFile {
    /// Opens the file for writing; creates it if it does not exist.
    pub(crate) fn create(path: PathBuf) -> Result<Self, AuditError> {
        // Not opened for appending: that would write after the old head.
        let made = crate::files::log_files::open_private(&path).map_err(AuditError::open(&path))?;
        drop(made);
        let file = File::options().read(true).write(true).open(&path);
        let file = file.map_err(AuditError::open(&path))?;
        Ok(Self { path, file })
    }

    /// Opens the file for reading; `None` if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, AuditError> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self { path: path.to_owned(), file })),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(AuditError::open(path)(cause)),
        }
    }

    /// Takes the exclusive lock.
    pub(crate) fn lock(&self, wait: Duration) -> Result<Locked<'_>, AuditError> {
        self.try_until(wait, File::try_lock)
    }

    /// Takes the shared lock, which excludes writers.
    pub(crate) fn lock_shared(&self) -> Result<Locked<'_>, AuditError> {
        self.try_until(LOCK_WAIT, File::try_lock_shared)
    }

    /// Reads the file; `None` if it is empty or malformed.
    pub(crate) fn read(&self) -> Result<Option<Head>, AuditError> {
        let mut bytes = [0; 2 * SLOT];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(cause) => return Err(AuditError::read(&self.path)(cause)),
        }
        let (start, last) = bytes.split_at(SLOT);
        let parse = |slot| serde_json::from_slice::<ChainLink>(slot).ok();
        let (Some(start), Some(last)) = (parse(start), parse(last)) else { return Ok(None) };
        Ok(Some(Head { start, last }))
    }

    /// Writes the link before the oldest entry that is kept.
    pub(crate) fn write_start(&self, link: &ChainLink) -> Result<(), AuditError> {
        self.write(link, 0)
    }

    /// Writes the last entry.
    pub(crate) fn write_last(&self, link: &ChainLink) -> Result<(), AuditError> {
        self.write(link, SLOT as u64)
    }

    fn write(&self, link: &ChainLink, offset: u64) -> Result<(), AuditError> {
        // A number and a hash always serialize, and fit into the slot.
        let text = serde_json::to_string(link).unwrap_or_default();
        let padded = format!("{text:width$}\n", width = SLOT - 1);
        self.file.write_all_at(padded.as_bytes(), offset).map_err(AuditError::write(&self.path))
    }

    fn try_until(
        &self,
        wait: Duration,
        try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Locked<'_>, AuditError> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match try_lock(&self.file) {
                Ok(()) => return Ok(Locked(&self.file)),
                Err(TryLockError::Error(cause)) => return Err(AuditError::open(&self.path)(cause)),
                Err(TryLockError::WouldBlock) if start.elapsed() >= wait => {
                    return Err(AuditError::Busy { path: self.path.clone(), waited: wait });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

// === impl Locked ===

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        drop(self.0.unlock());
    }
}
