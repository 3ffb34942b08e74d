//! Passwords of local users, hashed with Argon2id.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use capstan_model::Secret;

/// Shortest password, in characters.
const MIN_LENGTH: usize = 10;

/// Longest password, in bytes: hashing a longer one costs time without a gain.
const MAX_LENGTH: usize = 1024;

/// The reason why a password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// It can be guessed.
    #[error("the password has fewer than {MIN_LENGTH} characters")]
    Short,
    /// It is no password.
    #[error("the password has more than {MAX_LENGTH} bytes")]
    Long,
    /// It cannot be hashed.
    #[error("the password cannot be hashed")]
    Hash,
}

/// Hashes a password. This takes a while and much memory, on purpose.
///
/// # Errors
/// If the password is too short or too long.
pub fn hash(password: &Secret<String>) -> Result<Secret<String>, BadPassword> {
    if password.reveal().chars().count() < MIN_LENGTH {
        return Err(BadPassword::Short);
    }
    if password.reveal().len() > MAX_LENGTH {
        return Err(BadPassword::Long);
    }
    let hash = Argon2::default().hash_password(password.reveal().as_bytes());
    hash.map(|hash| Secret::new(hash.to_string())).map_err(|_| BadPassword::Hash)
}

/// True if a password has this hash. This takes as long as hashing.
pub fn verify(password: &Secret<String>, hash: &Secret<String>) -> bool {
    password.reveal().len() <= MAX_LENGTH
        && Argon2::default()
            .verify_password(password.reveal().as_bytes(), hash.reveal().as_str())
            .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    #[test]
    fn a_password_fits_its_own_hash_only_and_hashes_differ() {
        let (first, second) = (hash(&secret("correct horse")), hash(&secret("correct horse")));
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(first.reveal().starts_with("$argon2id$"));
        assert_ne!(first, second);
        assert!(verify(&secret("correct horse"), &first));
        for wrong in ["correct horse ", "Correct horse", ""] {
            assert!(!verify(&secret(wrong), &first), "{wrong}");
        }
        assert!(!verify(&secret("correct horse"), &secret("correct horse")));
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        assert_eq!(hash(&secret("123456789")), Err(BadPassword::Short));
        assert_eq!(hash(&secret(&"x".repeat(1025))), Err(BadPassword::Long));
    }
}
