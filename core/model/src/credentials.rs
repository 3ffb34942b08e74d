//! What we make ourselves known by to an interface that wants it.

use crate::secret::Secret;

/// What belongs to one way of making oneself known.
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
    /// A program of its own right, which gets tokens for itself (OAuth, client credentials).
    Client {
        /// What it is called.
        id: String,
        /// What it proves that by.
        secret: Secret<String>,
        /// Where tokens are; `None` for where the interface says.
        token_url: Option<String>,
        /// What tokens shall be good for.
        scopes: Vec<String>,
    },
}

// === impl Credentials ===

impl Credentials {
    /// What must not be shown.
    pub fn secret(&self) -> &Secret<String> {
        match self {
            Self::Token(secret)
            | Self::Password { password: secret, .. }
            | Self::Client { secret, .. } => secret,
        }
    }
}
