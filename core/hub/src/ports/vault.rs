//! The port for secrets that must outlive a process: tokens of logins, registered clients, and
//! secrets that the user named.

use std::any::Any;
use std::fmt;

use capstan_model::Secret;

use super::BoxFuture;

/// A store of secrets. All processes of one operator share it.
pub trait Vault: Send + Sync {
    /// Reads an entry; `None` if there is none.
    fn read<'a>(
        &'a self,
        key: &'a VaultKey,
    ) -> BoxFuture<'a, Result<Option<Secret<String>>, VaultError>>;

    /// Replaces an entry and returns its place. Once this returns, a crash cannot lose it; before,
    /// the old value stays.
    fn write<'a>(
        &'a self,
        key: &'a VaultKey,
        value: &'a Secret<String>,
    ) -> BoxFuture<'a, Result<VaultPlace, VaultError>>;

    /// Removes an entry. Returns false if there is none.
    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>>;

    /// Returns the entries of one kind, sorted by name, each with its place.
    fn list(
        &self,
        kind: VaultKind,
    ) -> BoxFuture<'_, Result<Vec<(VaultKey, VaultPlace)>, VaultError>>;

    /// Takes the lock of an entry over all processes. Waits for a bounded time.
    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>>;
}

/// The name of an entry. It is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VaultKey {
    /// The kind of secret.
    pub kind: VaultKind,
    /// The name, unique within its kind.
    pub name: String,
}

/// A kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VaultKind {
    /// The tokens of a login to a server.
    Tokens,
    /// A client that was registered at an authorization server.
    Client,
    /// A secret that the user named, for `keyring:NAME`.
    Secret,
}

/// The place that an entry is stored in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultPlace {
    /// The keyring of the operating system.
    Keyring,
    /// A file that only its owner can read, at this path.
    File(String),
}

/// The lock of an entry. Dropping it releases the lock.
pub struct VaultLock(
    /// The value that holds the lock.
    pub Box<dyn Any + Send>,
);

/// A failed operation of the vault. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// The place cannot be read or written.
    #[error("{place} cannot be used: {reason}")]
    Unavailable {
        /// The place.
        place: VaultPlace,
        /// The reason.
        reason: String,
    },
    /// The contents cannot be understood. They were set aside and not overwritten.
    #[error("{place} is damaged: {reason}")]
    Damaged {
        /// The place.
        place: VaultPlace,
        /// The reason, and where the contents are now.
        reason: String,
    },
    /// Another process holds the lock of the entry for too long.
    #[error("another process is using the login; try again")]
    Busy,
}

// === impl VaultKind ===

impl VaultKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tokens, Self::Client, Self::Secret];

    /// The word for the kind in stored data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Client => "client",
            Self::Secret => "secret",
        }
    }
}

// === impl VaultPlace ===

impl fmt::Display for VaultPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyring => f.write_str("the keyring"),
            Self::File(path) => write!(f, "{path}"),
        }
    }
}

// === impl VaultLock ===

impl fmt::Debug for VaultLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultLock")
    }
}
