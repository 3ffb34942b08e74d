//! Locks among all processes, each on a file of its own.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// Timeout of an operation for the lock of the file.
pub(crate) const FILE_WAIT: Duration = Duration::from_secs(20);

/// Timeout for the lock of an entry. Its holder sends requests, which have their own timeouts.
pub(crate) const ENTRY_WAIT: Duration = Duration::from_mins(1);

/// Interval of attempts to lock.
pub(crate) const TRY_EVERY: Duration = Duration::from_millis(5);

/// A lock, held until dropped. The system releases it when the process ends, for any reason.
pub(crate) struct FileLock {
    _handle: File,
}

// === impl FileLock ===

impl FileLock {
    /// Opens the lock file, which is created with its folder if missing.
    pub(crate) fn open(path: &Path) -> io::Result<File> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)
    }

    /// Tries to lock once; returns the handle if another one holds the lock.
    pub(crate) fn attempt(handle: File) -> io::Result<Result<Self, File>> {
        match handle.try_lock() {
            Ok(()) => Ok(Ok(Self { _handle: handle })),
            Err(TryLockError::WouldBlock) => Ok(Err(handle)),
            Err(TryLockError::Error(cause)) => Err(cause),
        }
    }

    /// Locks and blocks the thread for up to `wait`; `None` if the lock is still held then.
    pub(crate) fn acquire(path: &Path, wait: Duration) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let mut handle = Self::open(path)?;
        loop {
            match Self::attempt(handle)? {
                Ok(lock) => return Ok(Some(lock)),
                Err(_) if start.elapsed() >= wait => return Ok(None),
                Err(held) => handle = held,
            }
            std::thread::sleep(TRY_EVERY);
        }
    }
}
