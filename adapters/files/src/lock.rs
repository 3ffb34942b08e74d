//! A lock on a folder: one writer at a time, among all processes.
//!
//! The folder itself is locked, so that no lock file is left in a project; the system releases the
//! lock when its process ends, for any reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::FileError;

/// Timeout of an edit for the lock.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Interval of attempts to lock.
const TRY_EVERY: Duration = Duration::from_millis(2);

/// The lock file for file systems that cannot lock a folder, such as NFS.
const LOCK_FILE: &str = ".capstan.lock";

/// A lock on a folder, held until dropped.
pub(crate) struct FolderLock {
    /// The lock belongs to the open handle and is released with it.
    _handle: File,
}

// === impl FolderLock ===

impl FolderLock {
    /// Acquires the lock on `folder`, with a timeout of `wait`.
    pub(crate) fn acquire(folder: &Path, wait: Duration) -> Result<Self, FileError> {
        let failed = |cause| FileError::Lock { folder: folder.to_owned(), cause };
        let mut handle = File::open(folder).map_err(failed)?;
        let mut locked = try_until(&handle, wait);
        if locked.is_err() {
            handle = open_lock_file(folder).map_err(failed)?;
            locked = try_until(&handle, wait);
        }
        if locked.map_err(failed)? {
            return Ok(Self { _handle: handle });
        }
        Err(FileError::Locked { folder: folder.to_owned(), holder: holder(&handle), waited: wait })
    }
}

/// Tries to lock until the timeout; returns true on success.
fn try_until(handle: &File, wait: Duration) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match handle.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(cause)) => return Err(cause),
            Err(TryLockError::WouldBlock) if start.elapsed() >= wait => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_EVERY),
        }
    }
}

/// Opens the lock file without following a link: a project could make the name point anywhere.
fn open_lock_file(folder: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(folder.join(LOCK_FILE))
}

/// The process that holds the lock on an open file, from the system's table of locks.
///
/// The table may change while it is read and then lack a line, so the holder may not be found.
#[cfg(target_os = "linux")]
fn holder(handle: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    let meta = handle.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, &wanted)
}

/// Finds the process that holds a lock in the text of `/proc/locks`.
///
/// A line is `7: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`; the lines of waiting processes have
/// a `->` after the number.
#[cfg(target_os = "linux")]
fn holder_in(table: &str, wanted: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = fields.as_slice() else { return None };
        if *file == wanted { pid.parse().ok() } else { None }
    })
}

/// Only Linux provides the holder.
#[cfg(not(target_os = "linux"))]
fn holder(_handle: &File) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_is_turned_away_until_the_first_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::acquire(folder.path(), Duration::ZERO).unwrap();
        let Err(error) = FolderLock::acquire(folder.path(), Duration::ZERO) else {
            panic!("two writers at once");
        };
        let FileError::Locked { holder, .. } = &error else { panic!("{error:?}") };
        assert!(holder.is_none_or(|pid| pid == std::process::id()), "{holder:?}");
        drop(first);
        assert!(FolderLock::acquire(folder.path(), Duration::ZERO).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_holder_of_a_lock_is_named_and_nobody_else_is() {
        let table = "1: POSIX  ADVISORY  WRITE 11 fe:00:5678 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 22 fe:00:567 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 33 fe:00:5678 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 44 fe:00:5678 0 EOF\n";
        assert_eq!(holder_in(table, "fe:00:5678"), Some(44));
        assert_eq!(holder_in(table, "fe:01:5678"), None);
        assert_eq!(holder_in("", "fe:00:5678"), None);
    }

    #[test]
    fn a_lock_file_that_is_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open_lock_file(folder.path()).is_ok());
        std::fs::remove_file(folder.path().join(LOCK_FILE)).unwrap();
        let aim = folder.path().join("aim");
        std::os::unix::fs::symlink(&aim, folder.path().join(LOCK_FILE)).unwrap();
        assert!(open_lock_file(folder.path()).is_err());
        assert!(!aim.exists());
    }
}
