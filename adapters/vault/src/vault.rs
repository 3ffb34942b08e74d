//! The vault: the port over the keyring and the file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_hub::ports::{
    BoxFuture, Vault, VaultError, VaultKey, VaultKind, VaultLock, VaultPlace,
};
use capstan_model::Secret;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::file::{Index, Stored, TokenFile};
use crate::keyring::{self, Keyring, KeyringMode, MAX_VALUE, OpenStore, Unusable};
use crate::lock::{ENTRY_WAIT, FileLock, TRY_EVERY};
use crate::memory;

/// Longest name of an entry.
const MAX_NAME: usize = 4096;

/// Longest value of an entry.
const MAX_SECRET: usize = 512 * 1024;

/// The most attempts to read an entry that others replace at the same time.
const MAX_ATTEMPTS: usize = 5;

/// Secrets in the keyring of the system, else in a file.
///
/// Nothing is opened before the first operation.
pub struct SystemVault(Arc<Places>);

/// Both places.
struct Places {
    file: TokenFile,
    keyring: Keyring,
    /// True once the user knows that the keyring cannot be used.
    told: AtomicBool,
}

// === impl SystemVault ===

impl SystemVault {
    /// Makes a vault with this file.
    pub fn new(file: PathBuf, mode: KeyringMode) -> Self {
        Self::with_store(file, mode, Arc::new(keyring::open_system))
    }

    fn with_store(file: PathBuf, mode: KeyringMode, open: OpenStore) -> Self {
        Self(Arc::new(Places {
            file: TokenFile::at(file),
            keyring: Keyring::new(mode, open),
            told: AtomicBool::new(false),
        }))
    }

    /// Runs an operation on a thread that may block.
    fn run<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Places) -> Result<T, VaultError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, VaultError>> {
        let places = Arc::clone(&self.0);
        Box::pin(async move {
            let task = tokio::task::spawn_blocking({
                let places = Arc::clone(&places);
                move || work(&places)
            });
            task.await.unwrap_or_else(|error| {
                let reason = error.to_string();
                Err(VaultError::Unavailable { place: places.file.place(), reason })
            })
        })
    }
}

impl Vault for SystemVault {
    fn read<'a>(
        &'a self,
        key: &'a VaultKey,
    ) -> BoxFuture<'a, Result<Option<Secret<String>>, VaultError>> {
        let key = key.clone();
        self.run(move |places| places.read(&key))
    }

    fn write<'a>(
        &'a self,
        key: &'a VaultKey,
        value: &'a Secret<String>,
    ) -> BoxFuture<'a, Result<VaultPlace, VaultError>> {
        let (key, value) = (key.clone(), value.clone());
        self.run(move |places| places.write(&key, &value))
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        let key = key.clone();
        self.run(move |places| places.remove(&key))
    }

    fn list(
        &self,
        kind: VaultKind,
    ) -> BoxFuture<'_, Result<Vec<(VaultKey, VaultPlace)>, VaultError>> {
        self.run(move |places| places.list(kind))
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        Box::pin(async move {
            let file = &self.0.file;
            let failed = |cause: std::io::Error| VaultError::Unavailable {
                place: file.place(),
                reason: format!("its lock cannot be taken: {cause}"),
            };
            let path = file.lock_folder().join(lock_name(key));
            let start = Instant::now();
            let mut handle = FileLock::open(&path).map_err(failed)?;
            loop {
                match FileLock::attempt(handle).map_err(failed)? {
                    Ok(lock) => return Ok(VaultLock(Box::new(lock))),
                    Err(_) if start.elapsed() >= ENTRY_WAIT => return Err(VaultError::Busy),
                    Err(held) => handle = held,
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
        })
    }
}

// === impl Places ===

impl Places {
    fn read(&self, key: &VaultKey) -> Result<Option<Secret<String>>, VaultError> {
        let mut before = None;
        for _ in 0..MAX_ATTEMPTS {
            let index = self.file.read()?;
            let found = index.get(key);
            if found.is_some() {
                memory::protect();
            }
            let user = match found {
                None => return Ok(None),
                Some(Stored::Value(value)) => return Ok(Some(Secret::new(value.clone()))),
                Some(Stored::Keyring(user)) => user.clone(),
            };
            match self.keyring.get(&user) {
                Ok(Some(value)) => return Ok(Some(Secret::new(value))),
                // Another process has replaced the entry, or somebody has removed the item.
                Ok(None) if before.as_ref() == Some(&user) => return Ok(None),
                Ok(None) => before = Some(user),
                Err(reason) => {
                    let reason = format!("{reason}; `{}` is stored there", key.name);
                    return Err(VaultError::Unavailable { place: VaultPlace::Keyring, reason });
                }
            }
        }
        Err(VaultError::Busy)
    }

    fn write(&self, key: &VaultKey, value: &Secret<String>) -> Result<VaultPlace, VaultError> {
        self.check(key, value)?;
        memory::protect();
        let _lock = self.file.lock()?;
        let mut index = self.file.read_to_write()?;
        let (place, stored) = match self.offer(&mut index, key, value)? {
            Ok(user) => (VaultPlace::Keyring, Stored::Keyring(user)),
            Err(reason) => {
                self.tell(&reason);
                (self.file.place(), Stored::Value(value.reveal().clone()))
            }
        };
        index.put(key, stored);
        self.file.save(&index)?;
        self.clean_up(index);
        Ok(place)
    }

    fn remove(&self, key: &VaultKey) -> Result<bool, VaultError> {
        let _lock = self.file.lock()?;
        let mut index = self.file.read()?;
        let existed = index.take(key);
        if existed {
            self.file.save(&index)?;
            self.clean_up(index);
        }
        Ok(existed)
    }

    fn list(&self, kind: VaultKind) -> Result<Vec<(VaultKey, VaultPlace)>, VaultError> {
        let index = self.file.read()?;
        let entries = index.of_kind(kind.word()).map(|(name, stored)| {
            let place = match stored {
                Stored::Keyring(_) => VaultPlace::Keyring,
                Stored::Value(_) => self.file.place(),
            };
            (VaultKey { kind, name: name.clone() }, place)
        });
        Ok(entries.collect())
    }

    /// Puts a value into the keyring, in a new item; the index still has the old value.
    fn offer(
        &self,
        index: &mut Index,
        key: &VaultKey,
        value: &Secret<String>,
    ) -> Result<Result<String, Unusable>, VaultError> {
        if *self.keyring.mode() == KeyringMode::Off {
            return Ok(Err(Unusable::Off));
        }
        if value.reveal().len() > MAX_VALUE {
            let reason = format!("the value is longer than {MAX_VALUE} bytes");
            return Ok(Err(Unusable::Refused(reason)));
        }
        let user = item_name(key)?;
        // If this process is killed, or the keyring stores the item after the deadline, the next
        // write finds the item here.
        index.add_stale(user.clone());
        self.file.save(index)?;
        Ok(self.keyring.set(&user, value.reveal()).map(|()| user))
    }

    /// Removes items that no entry uses. What fails now is done by a later write.
    fn clean_up(&self, mut index: Index) {
        let mut removed = Vec::new();
        for user in index.stale() {
            match self.keyring.delete(user) {
                Ok(()) => removed.push(user.clone()),
                Err(Unusable::Refused(_)) => {}
                Err(_) => break,
            }
        }
        if removed.is_empty() {
            return;
        }
        index.forget_stale(&removed);
        if let Err(error) = self.file.save(&index) {
            tracing::debug!("{error}");
        }
    }

    fn check(&self, key: &VaultKey, value: &Secret<String>) -> Result<(), VaultError> {
        let refused = |place, reason| Err(VaultError::Unavailable { place, reason });
        if let KeyringMode::Unknown(value) = self.keyring.mode() {
            let reason = format!("CAPSTAN_KEYRING is `{value}`; set it to `auto` or `off`");
            return refused(VaultPlace::Keyring, reason);
        }
        if key.name.is_empty() || key.name.len() > MAX_NAME {
            let reason = format!("the name of an entry has 1 to {MAX_NAME} bytes");
            return refused(self.file.place(), reason);
        }
        if value.reveal().len() > MAX_SECRET {
            let reason = format!("the value is longer than {MAX_SECRET} bytes");
            return refused(self.file.place(), reason);
        }
        Ok(())
    }

    /// Tells the user once why the file is used.
    fn tell(&self, reason: &Unusable) {
        let is_expected = *reason == Unusable::Off;
        if !is_expected && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the keyring cannot be used: {reason}. Secrets are stored in {} instead; set \
                 CAPSTAN_KEYRING=off to always use it",
                self.file.place()
            );
        }
    }
}

/// A new name for an item of the keyring.
fn item_name(key: &VaultKey) -> Result<String, VaultError> {
    let mut random = [0_u8; 12];
    getrandom::fill(&mut random).map_err(|cause| VaultError::Unavailable {
        place: VaultPlace::Keyring,
        reason: format!("the system has no random numbers: {cause}"),
    })?;
    Ok(format!("{}:{}#{}", key.kind.word(), key.name, hex(&random)))
}

/// The name of the lock file of an entry.
fn lock_name(key: &VaultKey) -> String {
    let digest = Sha256::digest(format!("{}:{}", key.kind.word(), key.name));
    let (start, _) = digest.as_slice().split_at(16);
    hex(start)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests;
