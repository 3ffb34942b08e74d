//! Random texts, and digests under which they are stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The random generator of the system failed.
#[derive(Debug, thiserror::Error)]
#[error("the system returned no random bytes")]
pub(crate) struct NoRandomness;

/// 32 random bytes.
pub(crate) fn bytes() -> Result<[u8; 32], NoRandomness> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// A random text of 256 bits that fits into a URL.
pub(crate) fn text() -> Result<String, NoRandomness> {
    Ok(encode(&bytes()?))
}

/// The digest under which a secret text is stored. The text has 256 random bits, so it needs no
/// salt.
pub(crate) fn digest(text: &str) -> String {
    encode(&Sha256::digest(text.as_bytes()))
}

/// Base64url without padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads base64url without padding.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
