//! Random values of a login: `state`, and the verifier of PKCE with its challenge.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use capstan_model::Secret;
use sha2::{Digest, Sha256};

use crate::error::LoginError;

/// The number of random bytes in a value: 43 characters.
const BYTES: usize = 32;

/// A random text of characters that need no escape in an address.
///
/// # Errors
/// If the system has no random numbers.
pub fn text() -> Result<Secret<String>, LoginError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| LoginError::Settings(format!("there are no random numbers: {error}")))?;
    Ok(Secret::new(BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

/// The challenge for a verifier, by the method `S256`.
pub(crate) fn challenge(verifier: &Secret<String>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.reveal()))
}

/// True if two texts are equal. The time does not depend on where they differ.
pub fn same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_standard() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn random_texts_are_long_enough_and_differ() {
        let (one, other) = (text().unwrap(), text().unwrap());
        assert_eq!(one.reveal().len(), 43);
        assert!(!same(one.reveal(), other.reveal()) && same(one.reveal(), one.reveal()));
        assert!(!same("a", "ab") && !same("", "a"));
    }
}
