//! The ports for the state of the authorization server: clients, grants, users and keys.
//!
//! All gateways that share a store act on it at the same time, so each operation is one atomic
//! step. Tokens and codes are stored as digests.

use capstan_model::Secret;
use jiff::Timestamp;

use super::{BoxFuture, StoreError};

/// The clients that may ask for tokens.
pub trait ClientStore: Send + Sync {
    /// Saves a client, unless `most` registered ones are there already or the id is taken. Returns
    /// true if it was saved; once this returns, a crash cannot lose it.
    fn add_client<'a>(
        &'a self,
        client: &'a StoredClient,
        most: u32,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns a client; `None` if there is none or it has expired.
    fn client<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredClient>, StoreError>>;

    /// Returns the clients, oldest first, at most `most`.
    fn clients(
        &self,
        now: Timestamp,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredClient>, StoreError>>;

    /// Records that a client was used, and that it now expires later.
    fn use_client<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes a client with its codes and tokens. Returns false if there is none.
    fn remove_client<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The grants of users to clients: codes and refresh tokens.
///
/// All refresh tokens that descend from one authorization are a family.
pub trait GrantStore: Send + Sync {
    /// Saves a code with the grant that it stands for.
    fn add_code<'a>(
        &'a self,
        code: &'a StoredCode,
        grant: &'a StoredGrant,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes a code. Of all that take one code, exactly one is told that nobody took it before.
    fn take_code<'a>(
        &'a self,
        digest: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TakenCode>, StoreError>>;

    /// Saves the first refresh token of a grant, which then lasts as long as the token. Returns
    /// false if the grant is gone or revoked.
    fn add_token<'a>(&'a self, token: &'a StoredToken) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns a refresh token with its grant, whatever its state.
    fn token<'a>(
        &'a self,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<(StoredToken, StoredGrant)>, StoreError>>;

    /// Replaces a refresh token that is valid and unused by the next one. Returns false if it is
    /// not; of all that replace one token, exactly one gets true.
    fn rotate<'a>(
        &'a self,
        digest: &'a str,
        next: &'a StoredToken,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns a grant, whatever its state.
    fn find_grant<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredGrant>, StoreError>>;

    /// Revokes a grant with its family of tokens. Returns false if there was nothing to revoke.
    fn revoke_grant<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Revokes all grants of a user, and returns their number.
    fn revoke_subject<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Deletes expired clients, codes, grants and tokens, and returns their number.
    fn delete_expired(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// The users that sign in with a password.
pub trait UserStore: Send + Sync {
    /// Saves a user. Returns false if the name is taken.
    fn add_user<'a>(&'a self, user: &'a StoredUser) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns a user.
    fn user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<StoredUser>, StoreError>>;

    /// Returns the users by name, at most `most`.
    fn users(&self, most: u32) -> BoxFuture<'_, Result<Vec<StoredUser>, StoreError>>;

    /// Replaces the password of a user. Returns false if there is none.
    fn set_password<'a>(
        &'a self,
        name: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes a user. Returns false if there is none.
    fn remove_user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The keys that sign tokens and forms.
pub trait KeyStore: Send + Sync {
    /// Saves a key, unless one of the same use was created at `after` or later. Returns true if it
    /// was saved.
    fn add_key<'a>(
        &'a self,
        key: &'a StoredKey,
        after: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns all keys, newest first.
    fn keys(&self) -> BoxFuture<'_, Result<Vec<StoredKey>, StoreError>>;

    /// Deletes the keys of a use that were created before a time.
    fn delete_keys<'a>(
        &'a self,
        usage: &'a str,
        before: Timestamp,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;
}

/// All state of the authorization server.
pub trait AuthorizationStore: ClientStore + GrantStore + UserStore + KeyStore {}

impl<T: ClientStore + GrantStore + UserStore + KeyStore> AuthorizationStore for T {}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredClient {
    /// Its id; the URL of its document if it has one.
    pub id: String,
    /// The name that it gives itself.
    pub name: Option<String>,
    /// Its redirect URIs, as they were registered.
    pub redirect_uris: Vec<String>,
    /// How it became known.
    pub source: ClientSource,
    /// The time of its registration.
    pub created_at: Timestamp,
    /// The time of its last use.
    pub used_at: Timestamp,
    /// The time at which it is forgotten unless it is used.
    pub expires_at: Timestamp,
}

/// How a client became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSource {
    /// It registered itself.
    Registered,
    /// Its id is the URL of its metadata document.
    Document,
    /// It was imported from another program.
    Imported,
}

/// An authorization code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCode {
    /// The digest of the code.
    pub digest: String,
    /// The redirect URI of the request.
    pub redirect_uri: String,
    /// The PKCE challenge, of method S256.
    pub challenge: String,
    /// The id of the grant.
    pub grant: String,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// The grant of a user to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Its id.
    pub id: String,
    /// The client.
    pub client: String,
    /// The user.
    pub subject: String,
    /// The roles of the user.
    pub roles: Vec<String>,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The resource that tokens are for.
    pub resource: String,
    /// The time at which it ends.
    pub expires_at: Timestamp,
    /// True if it was revoked.
    pub revoked: bool,
}

/// A code that was taken, and its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCode {
    /// The code.
    pub code: StoredCode,
    /// The grant that it stands for.
    pub grant: StoredGrant,
    /// The time at which it was first taken, if that was before.
    pub taken_before: Option<Timestamp>,
}

/// A refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredToken {
    /// The digest of the token.
    pub digest: String,
    /// The id of the grant.
    pub grant: String,
    /// The time at which it expires.
    pub expires_at: Timestamp,
    /// The time at which it was replaced.
    pub used_at: Option<Timestamp>,
}

/// A user that signs in with a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUser {
    /// The name, which is also the subject of tokens.
    pub name: String,
    /// The hash of the password, with its parameters.
    pub password: Secret<String>,
    /// The roles.
    pub roles: Vec<String>,
    /// The time at which the user was added.
    pub created_at: Timestamp,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Its id.
    pub id: String,
    /// What it is used for: an algorithm of tokens, `form`, or the mark of an import.
    pub usage: String,
    /// The key itself, in base64url.
    pub secret: Secret<String>,
    /// The time of its creation.
    pub created_at: Timestamp,
}

// === impl ClientSource ===

impl ClientSource {
    /// The word for the source in stored data and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Document => "document",
            Self::Imported => "imported",
        }
    }

    /// Reads the word of a source.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Registered, Self::Document, Self::Imported]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}
