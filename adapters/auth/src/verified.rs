//! Tokens that were verified, with their callers, so that the next request needs no verification.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_model::Caller;

use crate::keyed_hash::TokenHash;
use crate::provider::Token;

/// Tokens that are remembered; beyond it, the one that expires first is forgotten.
const MAX_TOKENS: usize = 4096;

/// Verified tokens.
#[derive(Default)]
pub(crate) struct Verified(Mutex<HashMap<TokenHash, Entry>>);

struct Entry {
    token: Box<str>,
    caller: Arc<Caller>,
    until: Duration,
}

// === impl Verified ===

impl Verified {
    /// The caller of a token that was verified.
    ///
    /// The texts are compared only if their keyed hashes are equal, which no guess achieves. The
    /// comparison therefore tells nothing about a token.
    pub(crate) fn get(&self, token: Token<'_>, now: Duration) -> Option<Arc<Caller>> {
        let is_valid = |entry: &&Entry| now < entry.until && *entry.token == *token.text;
        let entries = self.entries();
        let caller =
            entries.get(&token.hash).filter(is_valid).map(|entry| Arc::clone(&entry.caller));
        drop(entries);
        caller
    }

    /// Remembers a token for this time.
    pub(crate) fn put(
        &self,
        token: Token<'_>,
        caller: &Arc<Caller>,
        now: Duration,
        valid_for: Duration,
    ) {
        let mut entries = self.entries();
        if entries.len() >= MAX_TOKENS && !entries.contains_key(&token.hash) {
            entries.retain(|_, entry| now < entry.until);
            if entries.len() >= MAX_TOKENS {
                let first = entries.iter().min_by_key(|(_, entry)| entry.until);
                let first = first.map(|(hash, _)| *hash);
                first.and_then(|hash| entries.remove(&hash));
            }
        }
        let (caller, until) = (Arc::clone(caller), now + valid_for);
        entries.insert(token.hash, Entry { token: token.text.into(), caller, until });
    }

    /// Forgets all tokens: the keys that they were verified with have changed.
    pub(crate) fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<TokenHash, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed_hash::KeyedHash;

    #[test]
    fn a_token_is_remembered_until_it_expires_and_for_itself_only() {
        let (verified, hash) = (Verified::default(), KeyedHash::default());
        let token = |text| Token { text, hash: hash.token(text) };
        let (ann, now) = (Arc::new(Caller::remote("ann", Vec::new())), Duration::from_secs(5));
        verified.put(token("good"), &ann, now, Duration::from_secs(10));
        assert!(verified.get(token("good"), now).is_some());
        assert!(verified.get(token("gooe"), now).is_none());
        let forged = Token { text: "evil", hash: hash.token("good") };
        assert!(verified.get(forged, now).is_none(), "the hash alone is not enough");
        assert!(verified.get(token("good"), now + Duration::from_secs(10)).is_none());
        verified.clear();
        assert!(verified.get(token("good"), now).is_none());
    }

    #[test]
    fn the_table_is_bounded() {
        let (verified, hash) = (Verified::default(), KeyedHash::default());
        let ann = Arc::new(Caller::remote("ann", Vec::new()));
        for number in 0..MAX_TOKENS + 100 {
            let text = number.to_string();
            let token = Token { text: &text, hash: hash.token(&text) };
            verified.put(token, &ann, Duration::ZERO, Duration::from_secs(9));
        }
        assert_eq!(verified.entries().len(), MAX_TOKENS);
    }
}
