//! The provider `tokens`: tokens that `capstan auth token create` made.
//!
//! The store has only their digests. A token has 256 random bits, so that a plain hash cannot be
//! reversed, and a lookup by it tells nothing about other tokens.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{AccessTokens, Clock};
use capstan_model::{Caller, Secret};
use sha2::{Digest as _, Sha256};

use crate::provider::{Identity, Outcome, Provider, Refusal, Request, Token};
use crate::verified::Verified;

/// The beginning of every token, by which scanners for secrets recognise it.
const PREFIX: &str = "capstan_";

/// Random bytes of a token.
const RANDOM: usize = 32;

/// The longest time for which a token is not looked up again: a revocation takes effect after it.
const RECHECK: Duration = Duration::from_secs(5);

/// Tokens in a store.
pub struct Issued {
    store: Arc<dyn AccessTokens>,
    clock: Arc<dyn Clock>,
    verified: Verified,
}

/// A new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The token, which is shown once.
    pub token: Secret<String>,
    /// Its digest, which is stored.
    pub digest: String,
    /// Its name in lists.
    pub id: String,
}

/// Makes a new token of random bytes: `fill` fills a buffer with them.
///
/// # Errors
/// If there is no randomness.
pub fn new_token<E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<NewToken, E> {
    let mut bytes = [0; RANDOM];
    fill(&mut bytes)?;
    let token = format!("{PREFIX}{}", hex(&bytes));
    let digest = digest(&token);
    // The digest is public enough: it does not lead back to the token.
    let id = digest.chars().take(12).collect();
    Ok(NewToken { token: Secret::new(token), digest, id })
}

/// The SHA-256 digest of a token, as hexadecimal digits.
fn digest(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

// === impl Issued ===

impl Issued {
    /// Creates the provider for the tokens of a store.
    pub fn new(store: Arc<dyn AccessTokens>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, verified: Verified::default() }
    }

    async fn find(&self, token: Token<'_>) -> Result<Arc<Caller>, Refusal> {
        let now = self.clock.now();
        let found = self.store.find(&digest(token.text), now).await.map_err(|error| {
            tracing::warn!(%error, "an access token cannot be looked up");
            Refusal::Unavailable
        })?;
        let found = found.ok_or(Refusal::Invalid)?;
        let left = found.expires_at.map(|end| Duration::try_from(end - now).unwrap_or_default());
        let identity = Identity { subject: found.subject, roles: found.roles };
        let caller = identity.caller().ok_or(Refusal::Invalid)?;
        let valid_for = left.map_or(RECHECK, |left| left.min(RECHECK));
        self.verified.put(token, &caller, self.clock.monotonic(), valid_for);
        Ok(caller)
    }
}

impl Provider for Issued {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a> {
        let Some(token) = request.token else { return Outcome::Ready(Err(Refusal::Missing)) };
        let length = PREFIX.len() + 2 * RANDOM;
        if !token.text.starts_with(PREFIX) || token.text.len() != length {
            return Outcome::Ready(Err(Refusal::Invalid));
        }
        match self.verified.get(token, self.clock.monotonic()) {
            Some(caller) => Outcome::Ready(Ok(caller)),
            None => Outcome::Wait(Box::pin(self.find(token))),
        }
    }
}
