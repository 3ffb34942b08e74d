//! Hashes the passwords of users.

use capstan_app::PasswordHash;
use capstan_authorization_server::hash_password;
use capstan_model::Secret;

/// Hashes passwords as the authorization server checks them.
pub(crate) struct Argon2Passwords;

impl PasswordHash for Argon2Passwords {
    fn hash(&self, password: &Secret<String>) -> Result<Secret<String>, String> {
        hash_password(password).map_err(|error| error.to_string())
    }
}
