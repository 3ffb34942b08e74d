//! The provider `jwt`: tokens of an OpenID Connect issuer.
//!
//! `issuer_keys` fetches the keys of the issuer and follows their rotation; `claims` decides about
//! the content of a token whose signature is right.

mod claims;
mod issuer_keys;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::Clock;
use capstan_model::Caller;
use capstan_safety::address::Network;
use jsonwebtoken::{Validation, decode_header};
use serde_json::{Map, Value};

use self::issuer_keys::{IssuerKeys, KeySet};
use crate::provider::{Outcome, Provider, Refusal, Request, Token};
use crate::verified::Verified;

pub use jsonwebtoken::Algorithm;

/// The longest time for which a token is not verified again, so that a key that the issuer has
/// withdrawn is not used for longer.
const RECHECK: Duration = Duration::from_mins(5);

/// Keys that are tried for a token that names none.
const MAX_TRIES: usize = 8;

/// The settings of the provider.
#[derive(Clone, Debug)]
pub struct JwtSettings {
    /// The issuer, exactly as tokens name it.
    pub issuer: String,
    /// The address of its keys, if the metadata of the issuer is not to be asked.
    pub jwks_url: Option<String>,
    /// The audiences that are accepted. One that ends with `/*` covers all paths below it.
    pub audience: Vec<String>,
    /// The signature algorithms that are accepted.
    pub algorithms: Vec<Algorithm>,
    /// The claim with the caller's name.
    pub subject_claim: String,
    /// The claim with the caller's roles; dots lead into nested claims.
    pub roles_claim: String,
    /// Claims that a token must have, with their values.
    pub required_claims: BTreeMap<String, String>,
    /// Requires tokens of the type `at+jwt` (RFC 9068).
    pub access_tokens: AccessTokenType,
    /// The tolerated difference between the clocks.
    pub leeway: Duration,
    /// Networks that the issuer may be reached in although they are not public.
    pub networks: Vec<Network>,
}

/// The types of tokens that are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTokenType {
    /// Any type, except for tokens that are evidently ID tokens.
    #[default]
    Any,
    /// Only `at+jwt`.
    Strict,
}

/// Accepts the tokens of an issuer.
pub struct Jwt {
    settings: JwtSettings,
    keys: IssuerKeys,
    clock: Arc<dyn Clock>,
    verified: Verified,
}

/// A failed verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The token is not valid.
    Invalid,
    /// No known key fits; the issuer may have a new one.
    UnknownKey,
}

// === impl Jwt ===

impl Jwt {
    /// Creates the provider. Nothing is fetched yet.
    ///
    /// # Errors
    /// If the address of the issuer cannot be used.
    pub fn new(settings: JwtSettings, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let keys = IssuerKeys::new(&settings)?;
        Ok(Self { settings, keys, clock, verified: Verified::default() })
    }

    /// Verifies a token with these keys.
    fn verify(&self, token: Token<'_>, keys: &KeySet) -> Result<Arc<Caller>, Failure> {
        let header = decode_header(token.text).map_err(|_| Failure::Invalid)?;
        if !self.settings.algorithms.contains(&header.alg) || header.crit.is_some() {
            return Err(Failure::Invalid);
        }
        if !claims::is_access_token(header.typ.as_deref(), self.settings.access_tokens) {
            return Err(Failure::Invalid);
        }
        let mut validation = Validation::new(header.alg);
        // `claims` checks them, with our clock.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let mut fitting =
            keys.fitting(header.kid.as_deref(), header.alg).take(MAX_TRIES).peekable();
        if fitting.peek().is_none() {
            return Err(Failure::UnknownKey);
        }
        let claims: Map<String, Value> = fitting
            .find_map(|key| jsonwebtoken::decode(token.text, key, &validation).ok())
            .map(|token| token.claims)
            // An issuer may use one id for two keys in succession, and a token need not name one.
            .ok_or(Failure::UnknownKey)?;
        let now = self.clock.now();
        let accepted = claims::check(&claims, &self.settings, now).ok_or(Failure::Invalid)?;
        let caller = accepted.identity.caller().ok_or(Failure::Invalid)?;
        let valid_for = accepted.valid_for.min(RECHECK);
        self.verified.put(token, &caller, self.clock.monotonic(), valid_for);
        Ok(caller)
    }

    /// Fetches the keys if they are missing, old or do not fit, and verifies the token.
    async fn verify_later(&self, token: Token<'_>) -> Result<Arc<Caller>, Refusal> {
        let before = self.keys.known();
        let keys = self.keys.fetch(self.clock.monotonic()).await;
        if let (Some(before), Some(keys)) = (&before, &keys)
            && !before.is_same(keys)
        {
            self.verified.clear();
        }
        let keys = keys.ok_or(Refusal::Unavailable)?;
        self.verify(token, &keys).map_err(|_| Refusal::Invalid)
    }
}

impl Provider for Jwt {
    fn name(&self) -> &'static str {
        "jwt"
    }

    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a> {
        let Some(token) = request.token else { return Outcome::Ready(Err(Refusal::Missing)) };
        let now = self.clock.monotonic();
        if let Some(caller) = self.verified.get(token, now) {
            return Outcome::Ready(Ok(caller));
        }
        // A token of another kind must not lead to a request to the issuer.
        if token.text.bytes().filter(|byte| *byte == b'.').count() != 2 {
            return Outcome::Ready(Err(Refusal::Invalid));
        }
        let Some(keys) = self.keys.fresh(now) else {
            return Outcome::Wait(Box::pin(self.verify_later(token)));
        };
        match self.verify(token, &keys) {
            Ok(caller) => Outcome::Ready(Ok(caller)),
            Err(Failure::UnknownKey) if self.keys.may_fetch(now) => {
                Outcome::Wait(Box::pin(self.verify_later(token)))
            }
            Err(Failure::Invalid | Failure::UnknownKey) => Outcome::Ready(Err(Refusal::Invalid)),
        }
    }
}
