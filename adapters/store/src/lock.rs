//! A lock: one process at a time creates or repairs the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use crate::open::{AGAIN, OpenError, PATIENCE};

/// The lock among all processes. It is held across awaits, all of which have a timeout.
pub(crate) struct Lock(File);

// === impl Lock ===

impl Lock {
    pub(crate) async fn shared(database: &Path) -> Result<Self, OpenError> {
        Self::acquire(database, File::try_lock_shared).await
    }

    pub(crate) async fn exclusive(database: &Path) -> Result<Self, OpenError> {
        Self::acquire(database, File::try_lock).await
    }

    async fn acquire(
        database: &Path,
        try_lock: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, OpenError> {
        let path = database.with_extension("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        let began = Instant::now();
        loop {
            match try_lock(&file) {
                // Closing the file releases the lock.
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::Error(cause)) => return Err(cause.into()),
                Err(TryLockError::WouldBlock) if began.elapsed() >= PATIENCE * 2 => {
                    return Err(OpenError::Locked { path });
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        drop(self.0.unlock());
    }
}
