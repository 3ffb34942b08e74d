//! Credentials for a login to a server or API.

use crate::secret::Secret;

/// The credentials for one kind of login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A key or a token, sent as it is.
    Token(Secret<String>),
    /// A name and a password.
    Password {
        /// The name.
        username: String,
        /// The password.
        password: Secret<String>,
    },
    /// An OAuth client that gets tokens for itself (client credentials grant).
    Client {
        /// The client id.
        id: String,
        /// The client secret.
        secret: Secret<String>,
        /// The token endpoint; `None` to use the one that the API declares.
        token_url: Option<String>,
        /// The scopes to request.
        scopes: Vec<String>,
    },
}

// === impl Credentials ===

impl Credentials {
    /// Returns the part that must not be shown.
    pub fn secret(&self) -> &Secret<String> {
        match self {
            Self::Token(secret)
            | Self::Password { password: secret, .. }
            | Self::Client { secret, .. } => secret,
        }
    }
}
