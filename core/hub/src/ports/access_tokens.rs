//! The port for tokens that the operator creates for callers of the gateway.

use jiff::Timestamp;

use super::{BoxFuture, StoreError};

/// A store of access tokens. All processes of one operator share it.
///
/// **Invariant:** it never gets a token itself, only the digest.
pub trait AccessTokens: Send + Sync {
    /// Saves a token. Once this returns, a crash cannot lose it.
    fn add<'a>(&'a self, token: &'a AccessToken) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the token with this digest, unless it has expired or was revoked.
    fn find<'a>(
        &'a self,
        digest: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<AccessToken>, StoreError>>;

    /// Returns all tokens that are not revoked, oldest first, at most `most`.
    fn all(&self, most: u32) -> BoxFuture<'_, Result<Vec<AccessToken>, StoreError>>;

    /// Revokes a token by its id, and returns it; `None` if there is none.
    fn revoke<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, StoreError>>;
}

/// A token of a caller, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// Names the token in lists; not a secret.
    pub id: String,
    /// The SHA-256 digest of the token, as hexadecimal digits.
    pub digest: String,
    /// The caller's name.
    pub subject: String,
    /// The caller's roles.
    pub roles: Vec<String>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time at which it expires, if ever.
    pub expires_at: Option<Timestamp>,
}
