//! Seals the state that a modern client carries for us, so that it comes back as it was.

use std::hash::{BuildHasher, Hasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::message::Request;

/// The size of a block of SHA-256.
const BLOCK: usize = 64;

/// Seals and opens; each process has a key of its own.
pub(super) struct Seal {
    key: [u8; BLOCK],
}

// === impl Seal ===

impl Seal {
    pub(super) fn new() -> Self {
        let mut key = [0; BLOCK];
        for piece in key.chunks_mut(8) {
            piece.copy_from_slice(&random().to_be_bytes());
        }
        Self { key }
    }

    /// A text that carries the value, and works only for this request.
    pub(super) fn close(&self, request: &Request, value: &Value) -> String {
        let body = json!({ "of": purpose(request), "value": value }).to_string();
        let tag = self.tag(body.as_bytes());
        format!("{}.{}", URL_SAFE_NO_PAD.encode(body), URL_SAFE_NO_PAD.encode(tag))
    }

    /// The value in such a text, unless anything about it is wrong.
    pub(super) fn open(&self, request: &Request, sealed: &str) -> Option<Value> {
        let (body, tag) = sealed.split_once('.')?;
        let body = URL_SAFE_NO_PAD.decode(body).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        if !same(&tag, &self.tag(&body)) {
            return None;
        }
        let mut body: Value = serde_json::from_slice(&body).ok()?;
        if body.get("of")?.as_str()? != purpose(request) {
            return None;
        }
        Some(body.get_mut("value")?.take())
    }

    /// HMAC-SHA-256 as in RFC 2104.
    fn tag(&self, body: &[u8]) -> [u8; 32] {
        let pad = |with: u8| self.key.map(|byte| byte ^ with);
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(body).finalize();
        Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
    }
}

/// A number that nobody outside can guess: the standard library keys its hashes from the system.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What a retry has in common with the request it repeats.
fn purpose(request: &Request) -> String {
    let of = |key: &str| request.params.get(key).cloned().unwrap_or_default();
    json!([request.method, of("name"), of("uri"), of("arguments")]).to_string()
}

/// Compares without telling by its time where the difference is.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str) -> Request {
        let params = json!({ "name": name, "arguments": { "a": 1 } });
        Request { id: json!(1), method: "tools/call".to_owned(), params }
    }

    #[test]
    fn what_was_sealed_opens_for_the_same_request_only() {
        let seal = Seal::new();
        let value = json!({ "name": "x" });
        let sealed = seal.close(&request("t"), &value);
        assert_eq!(seal.open(&request("t"), &sealed), Some(value));
        assert_eq!(seal.open(&request("u"), &sealed), None);
        let mut other = request("t");
        other.params["arguments"]["a"] = json!(2);
        assert_eq!(seal.open(&other, &sealed), None);
        assert_eq!(Seal::new().open(&request("t"), &sealed), None);
    }

    #[test]
    fn a_changed_seal_does_not_open() {
        let seal = Seal::new();
        let sealed = seal.close(&request("t"), &json!({}));
        let flipped = sealed.replacen('e', "f", 1);
        for wrong in [format!("{sealed}-TAMPERED"), flipped, String::new(), ".".to_owned()] {
            assert_eq!(seal.open(&request("t"), &wrong), None, "{wrong}");
        }
    }
}
