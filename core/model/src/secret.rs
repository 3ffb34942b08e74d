//! Values that must never be shown.

use std::fmt;

/// What is printed in place of a secret.
pub const MASK: &str = "***";

/// A value without `Display`, whose `Debug` prints [`MASK`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself, for the one place that must use it.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Words that make a name tell of a secret.
const SECRET_WORDS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "private_key",
    "privatekey",
    "authorization",
    "cookie",
    "bearer",
];

/// Whether what stands under this name is likely a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // `progressToken`, `max_tokens` and the like count things; they are no secrets.
    let counts = name == "progresstoken" || name.ends_with("tokens");
    let is_key = name.ends_with("_key") || name.ends_with("-key") || name.ends_with("_pat");
    !counts && (is_key || SECRET_WORDS.iter().any(|word| name.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_names_are_known() {
        for name in ["GITHUB_TOKEN", "api_key", "OPENAI_API_KEY", "db_password", "Authorization"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["progressToken", "max_tokens", "keyboard", "name", "monkey"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), MASK);
    }
}
