//! The provider `bearer`: static tokens of the configuration.
//!
//! A token is found by a keyed hash, and compared in constant time. The time of a comparison
//! therefore depends neither on how much of a guess is right nor on the number of tokens.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::{Caller, Secret};
use subtle::ConstantTimeEq as _;

use crate::keyed_hash::{KeyedHash, TokenHash};
use crate::provider::{Identity, Outcome, Provider, Refusal, Request};

/// A static token and the caller that presents it.
#[derive(Clone, Debug)]
pub struct StaticToken {
    /// The token.
    pub token: Secret<String>,
    /// The caller.
    pub identity: Identity,
}

/// Static tokens.
pub struct Bearer {
    tokens: HashMap<TokenHash, Entry>,
    /// Compared with a token that is not in the table.
    dummy: Entry,
}

struct Entry {
    token: Secret<String>,
    caller: Arc<Caller>,
}

// === impl Bearer ===

impl Bearer {
    /// Creates the provider for these tokens. `hash` is that of the chain.
    ///
    /// # Errors
    /// The subject of a token that cannot be used.
    pub(crate) fn new(
        tokens: impl IntoIterator<Item = StaticToken>,
        hash: &KeyedHash,
    ) -> Result<Self, String> {
        let mut table = HashMap::new();
        for StaticToken { token, identity } in tokens {
            let subject = identity.subject.clone();
            let caller = identity.caller().ok_or(subject)?;
            table.insert(hash.token(token.reveal()), Entry { token, caller });
        }
        let nobody = Arc::new(Caller::remote(String::new(), Vec::new()));
        let dummy = Entry { token: Secret::new(String::new()), caller: nobody };
        Ok(Self { tokens: table, dummy })
    }
}

impl Provider for Bearer {
    fn name(&self) -> &'static str {
        "bearer"
    }

    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a> {
        let Some(token) = request.token else { return Outcome::Ready(Err(Refusal::Missing)) };
        let entry = self.tokens.get(&token.hash).unwrap_or(&self.dummy);
        let is_equal = entry.token.reveal().as_bytes().ct_eq(token.text.as_bytes());
        Outcome::Ready(if bool::from(is_equal) {
            Ok(Arc::clone(&entry.caller))
        } else {
            Err(Refusal::Invalid)
        })
    }
}
