//! The file: the index of all entries, and the values that no keyring has.
//!
//! A new text goes to a temporary file in the same folder, is synced to disk and renamed over the old
//! one. All writers hold the lock, so every temporary file that one of them finds is a leftover of a
//! killed process.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use capstan_hub::ports::{VaultError, VaultKey, VaultPlace};
use capstan_model::secret::MASK;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::lock::{FILE_WAIT, FileLock};

/// The version of the format.
const VERSION: u32 = 1;

/// Largest file.
const MAX_SIZE: u64 = 8 * 1024 * 1024;

/// Prefix and suffix of the names of temporary files.
const TEMP_PREFIX: &str = ".capstan-tokens-";
const TEMP_SUFFIX: &str = ".tmp";

/// The most items of the keyring that are remembered for removal.
const MAX_STALE: usize = 256;

/// The most damaged files that are kept aside.
const MAX_ASIDE: usize = 100;

/// The file.
pub(crate) struct TokenFile {
    path: PathBuf,
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    version: u32,
    entries: BTreeMap<String, BTreeMap<String, Stored>>,
    #[serde(default)]
    stale: Vec<String>,
}

/// An entry of the index: the place of its value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stored {
    /// An item of the keyring, by its user name.
    Keyring(String),
    /// The value itself.
    Value(String),
}

/// The version alone, which is read first.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A text that is no index.
enum Unreadable {
    /// It is damaged.
    Damaged(String),
    /// A later version of Capstan wrote it.
    Later(u32),
}

// === impl TokenFile ===

impl TokenFile {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn place(&self) -> VaultPlace {
        VaultPlace::File(self.path.display().to_string())
    }

    /// The folder of the locks of entries.
    pub(crate) fn lock_folder(&self) -> PathBuf {
        self.path.with_extension("locks")
    }

    /// Takes the lock of the file.
    pub(crate) fn lock(&self) -> Result<FileLock, VaultError> {
        match FileLock::acquire(&self.path.with_extension("lock"), FILE_WAIT) {
            Ok(Some(lock)) => Ok(lock),
            Ok(None) => Err(VaultError::Busy),
            Err(cause) => Err(self.unavailable(&cause)),
        }
    }

    /// Reads the index. A missing file has no entries; a damaged one is an error and stays.
    pub(crate) fn read(&self) -> Result<Index, VaultError> {
        let Some(bytes) = self.bytes().map_err(|cause| self.unavailable(&cause))? else {
            return Ok(Index::default());
        };
        Index::parse(&bytes).map_err(|problem| match problem {
            Unreadable::Damaged(reason) => VaultError::Damaged {
                place: self.place(),
                reason: format!(
                    "{reason}; repair it, or log in or set the secret again, which moves it aside"
                ),
            },
            Unreadable::Later(version) => self.later(version),
        })
    }

    /// Reads the index to change it; the lock must be held. A damaged file is moved aside.
    pub(crate) fn read_to_write(&self) -> Result<Index, VaultError> {
        let failed = |cause: io::Error| self.unavailable(&cause);
        let Some(bytes) = self.bytes().map_err(failed)? else { return Ok(Index::default()) };
        match Index::parse(&bytes) {
            Ok(index) => Ok(index),
            Err(Unreadable::Later(version)) => Err(self.later(version)),
            Err(Unreadable::Damaged(reason)) => {
                let aside = self.move_aside().map_err(failed)?;
                tracing::warn!(
                    "`{}` is damaged: {reason}. It is now `{}`; the logins and secrets in it must \
                     be entered again",
                    self.path.display(),
                    aside.display()
                );
                Ok(Index::default())
            }
        }
    }

    /// Replaces the file; the lock must be held.
    pub(crate) fn save(&self, index: &Index) -> Result<(), VaultError> {
        let failed = |cause: &dyn std::fmt::Display| VaultError::Unavailable {
            place: self.place(),
            reason: cause.to_string(),
        };
        let mut text = serde_json::to_string_pretty(index).map_err(|cause| failed(&cause))?;
        text.push('\n');
        if text.len() as u64 > MAX_SIZE {
            let reason = format!("it would be larger than {MAX_SIZE} bytes; remove entries");
            return Err(failed(&reason));
        }
        self.replace(text.as_bytes()).map_err(|cause| failed(&cause))
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        // A link stays a link; the file behind it is replaced.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = path.parent().unwrap_or(Path::new("."));
        remove_leftovers(folder);
        // Such a file has mode 0600 from the start.
        let mut temp =
            tempfile::Builder::new().prefix(TEMP_PREFIX).suffix(TEMP_SUFFIX).tempfile_in(folder)?;
        temp.write_all(bytes)?;
        temp.as_file().sync_all()?;
        temp.persist(&path).map_err(|error| error.error)?;
        sync_folder(folder)
    }

    /// The bytes of the file; `None` if it is missing. Its rights are narrowed to the owner.
    fn bytes(&self) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match File::options().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if meta.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
            tracing::warn!("others could read `{}`; now only its owner can", self.path.display());
        }
        let mut bytes = Vec::new();
        file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_SIZE {
            return Err(io::Error::other(format!("it is larger than {MAX_SIZE} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Renames the file, so that nothing overwrites it; returns its new path.
    fn move_aside(&self) -> io::Result<PathBuf> {
        for count in 1..=MAX_ASIDE {
            let mut aside = self.path.clone().into_os_string();
            aside.push(format!(".damaged-{count}"));
            let aside = PathBuf::from(aside);
            // Fails if the name is taken, and leaves the original in place.
            match fs::hard_link(&self.path, &aside) {
                Ok(()) => {}
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(_) => fs::rename(&self.path, &aside)?,
            }
            if let Some(folder) = self.path.parent() {
                sync_folder(folder)?;
            }
            return Ok(aside);
        }
        Err(io::Error::other("it is damaged, and too many damaged ones are kept beside it"))
    }

    fn later(&self, version: u32) -> VaultError {
        VaultError::Unavailable {
            place: self.place(),
            reason: format!(
                "a later version of Capstan wrote it (format {version}, this one reads {VERSION}); \
                 update Capstan"
            ),
        }
    }

    fn unavailable(&self, cause: &io::Error) -> VaultError {
        VaultError::Unavailable { place: self.place(), reason: cause.to_string() }
    }
}

// === impl Index ===

impl Default for Index {
    fn default() -> Self {
        Self { version: VERSION, entries: BTreeMap::new(), stale: Vec::new() }
    }
}

impl Index {
    fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        // The messages of the parser could repeat a value, so only the position is used.
        let damaged = |error: serde_json::Error| {
            let (line, column) = (error.line(), error.column());
            Unreadable::Damaged(format!("line {line}, column {column} cannot be understood"))
        };
        let found: Version = serde_json::from_slice(bytes).map_err(damaged)?;
        if found.version > VERSION {
            return Err(Unreadable::Later(found.version));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    pub(crate) fn get(&self, key: &VaultKey) -> Option<&Stored> {
        self.entries.get(key.kind.word())?.get(&key.name)
    }

    /// Replaces an entry. The item of the old value becomes stale, the item of the new one is not.
    pub(crate) fn put(&mut self, key: &VaultKey, new: Stored) {
        if let Stored::Keyring(user) = &new {
            self.stale.retain(|stale| stale != user);
        }
        let kind = self.entries.entry(key.kind.word().to_owned()).or_default();
        let old = kind.insert(key.name.clone(), new);
        self.discard(old);
    }

    /// Removes an entry; false if there is none.
    pub(crate) fn take(&mut self, key: &VaultKey) -> bool {
        let old = self.entries.get_mut(key.kind.word()).and_then(|kind| kind.remove(&key.name));
        let existed = old.is_some();
        self.discard(old);
        existed
    }

    /// The entries of a kind, sorted by name.
    pub(crate) fn of_kind(&self, word: &str) -> impl Iterator<Item = (&String, &Stored)> {
        self.entries.get(word).into_iter().flatten()
    }

    /// The items of the keyring that no entry uses.
    pub(crate) fn stale(&self) -> &[String] {
        &self.stale
    }

    /// Notes an item of the keyring that no entry uses yet, or no longer.
    pub(crate) fn add_stale(&mut self, user: String) {
        if self.stale.len() >= MAX_STALE {
            self.stale.remove(0);
        }
        self.stale.push(user);
    }

    /// Forgets items that were removed from the keyring.
    pub(crate) fn forget_stale(&mut self, removed: &[String]) {
        self.stale.retain(|user| !removed.contains(user));
    }

    fn discard(&mut self, old: Option<Stored>) {
        if let Some(Stored::Keyring(user)) = old {
            self.add_stale(user);
        }
    }
}

// === impl Stored ===

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keyring(user) => f.debug_tuple("Keyring").field(user).finish(),
            Self::Value(_) => f.debug_tuple("Value").field(&MASK).finish(),
        }
    }
}

/// Removes temporary files that killed processes left behind. Failures are harmless and ignored.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_leftover = name
            .to_str()
            .is_some_and(|name| name.starts_with(TEMP_PREFIX) && name.ends_with(TEMP_SUFFIX));
        if is_leftover {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// Makes a rename survive a power cut, if the file system supports it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}
