//! The keys of an issuer: fetched when they are needed, and again when they are old or do not fit.
//!
//! Concurrent requests share one fetch. Keys that were fetched are used until newer ones are there,
//! so that a short failure of the issuer goes unnoticed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_http::{WebAddress, download};
use capstan_safety::address::AddressPolicy;
use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::JwtSettings;

/// The age at which keys are fetched again.
const MAX_AGE: Duration = Duration::from_mins(10);

/// The age at which keys are no longer used if no newer ones can be fetched.
const MAX_STALE: Duration = Duration::from_hours(24);

/// The shortest time between two fetches. Tokens with made-up key ids cannot cause more.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// The time limit for a fetch.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

/// The largest metadata, and the largest set of keys, in bytes.
const MAX_DOCUMENT: usize = 256 * 1024;

/// The most keys of a set.
const MAX_KEYS: usize = 64;

/// The places of an issuer's metadata, below its address.
const OPENID: &str = "/.well-known/openid-configuration";
const OAUTH: &str = "/.well-known/oauth-authorization-server";

/// The keys of an issuer.
pub(super) struct IssuerKeys {
    issuer: String,
    jwks_url: Option<String>,
    policy: AddressPolicy,
    state: Mutex<State>,
    /// Held by the one who fetches.
    fetching: Semaphore,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// The time of the last successful fetch.
    fetched: Duration,
    /// The time of the last fetch.
    tried: Option<Duration>,
}

/// A set of keys.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

struct Key {
    jwk: Jwk,
    decoding: DecodingKey,
}

// === impl IssuerKeys ===

impl IssuerKeys {
    pub(super) fn new(settings: &JwtSettings) -> Result<Self, String> {
        WebAddress::parse(&settings.issuer)?;
        let networks = settings.networks.clone();
        Ok(Self {
            issuer: settings.issuer.clone(),
            jwks_url: settings.jwks_url.clone(),
            policy: AddressPolicy { networks, ..AddressPolicy::default() },
            state: Mutex::default(),
            fetching: Semaphore::new(1),
        })
    }

    /// The keys, unless they are old.
    pub(super) fn fresh(&self, now: Duration) -> Option<Arc<KeySet>> {
        let state = self.state();
        let is_fresh = now.saturating_sub(state.fetched) < MAX_AGE || !state.may_fetch(now);
        state.usable(now).filter(|_| is_fresh)
    }

    /// The keys, however old.
    pub(super) fn known(&self) -> Option<Arc<KeySet>> {
        self.state().keys.clone()
    }

    /// True if the last fetch was long enough ago.
    pub(super) fn may_fetch(&self, now: Duration) -> bool {
        self.state().may_fetch(now)
    }

    /// Fetches the keys, unless another request has just done so. Returns those that may be used.
    pub(super) async fn fetch(&self, now: Duration) -> Option<Arc<KeySet>> {
        let Ok(_permit) = self.fetching.acquire().await else { return None };
        let may_fetch = {
            let mut state = self.state();
            let may_fetch = state.may_fetch(now);
            if may_fetch {
                state.tried = Some(now);
            }
            may_fetch
        };
        if may_fetch {
            let fetched = timeout(FETCH_LIMIT, self.download()).await;
            let fetched = fetched.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
            match fetched {
                Ok(keys) => {
                    let mut state = self.state();
                    let keys = Arc::new(keys);
                    (state.keys, state.fetched) = (Some(keys), now);
                }
                Err(why) => {
                    tracing::warn!(issuer = %self.issuer, why, "the issuer's keys cannot be fetched");
                }
            }
        }
        self.state().usable(now)
    }

    async fn download(&self) -> Result<KeySet, String> {
        let issuer = WebAddress::parse(&self.issuer)?;
        let address = match &self.jwks_url {
            Some(url) => WebAddress::parse(url)?,
            None => self.discover(&issuer).await?,
        };
        let document = self.document(&address).await?.ok_or("it has no keys at this address")?;
        let keys = KeySet::parse(&document);
        if keys.0.is_empty() { Err("it has no key that can be used".to_owned()) } else { Ok(keys) }
    }

    /// The address of the keys, from the metadata of the issuer.
    async fn discover(&self, issuer: &WebAddress) -> Result<WebAddress, String> {
        let path = issuer.path().trim_end_matches('/');
        for place in [format!("{path}{OPENID}"), format!("{OAUTH}{path}")] {
            let Some(metadata) = self.document(&issuer.join(&place)?).await? else { continue };
            let text = |key: &str| metadata.get(key).and_then(Value::as_str);
            // RFC 8414, 3.3: metadata of another issuer must not be used.
            if text("issuer") != Some(&self.issuer) {
                return Err("its metadata names another issuer".to_owned());
            }
            let keys = text("jwks_uri").ok_or("its metadata has no `jwks_uri`")?;
            let keys = issuer.join(keys)?;
            if issuer.is_encrypted() && !keys.is_encrypted() {
                return Err("its keys are at an address that is not encrypted".to_owned());
            }
            return Ok(keys);
        }
        Err("it has no metadata; set `jwks_url`".to_owned())
    }

    /// Downloads a JSON document; `None` if there is none.
    async fn document(&self, address: &WebAddress) -> Result<Option<Value>, String> {
        let answer = download(address, &self.policy, MAX_DOCUMENT).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            200 if answer.whole => {
                let document = serde_json::from_slice(&answer.body);
                document
                    .map(Some)
                    .map_err(|_| "it answers with something else than JSON".to_owned())
            }
            200 => Err("its answer is too large".to_owned()),
            400..=499 => Ok(None),
            status => Err(format!("it answers with HTTP status {status}")),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn may_fetch(&self, now: Duration) -> bool {
        self.tried.is_none_or(|tried| now.saturating_sub(tried) >= MIN_INTERVAL)
    }

    fn usable(&self, now: Duration) -> Option<Arc<KeySet>> {
        self.keys.clone().filter(|_| now.saturating_sub(self.fetched) < MAX_STALE)
    }
}

// === impl KeySet ===

impl KeySet {
    /// Reads a set. Keys that cannot verify signatures are left out.
    fn parse(document: &Value) -> Self {
        let keys = document.get("keys").and_then(Value::as_array).map(Vec::as_slice);
        let keys = keys.unwrap_or_default().iter().take(MAX_KEYS).filter_map(|key| {
            let jwk: Jwk = serde_json::from_value(key.clone()).ok()?;
            let is_public = key.get("kty").and_then(Value::as_str) != Some("oct");
            let for_signatures =
                !matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption));
            let decoding = DecodingKey::from_jwk(&jwk).ok()?;
            (is_public && for_signatures).then_some(Key { jwk, decoding })
        });
        Self(keys.collect())
    }

    /// The keys for a token with this header.
    pub(super) fn fitting<'k>(
        &'k self,
        id: Option<&'k str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'k DecodingKey> {
        let fits = move |key: &&Key| {
            let has_id = id.is_none_or(|id| key.jwk.common.key_id.as_deref() == Some(id));
            let for_algorithm = key.jwk.common.key_algorithm.is_none_or(|its| is(its, algorithm));
            has_id && for_algorithm && key.decoding.family() == algorithm.family()
        };
        self.0.iter().filter(fits).map(|key| &key.decoding)
    }

    /// True if both have the same keys.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| one.jwk == other.jwk)
    }
}

/// True if a key that names an algorithm is for this one.
fn is(key: KeyAlgorithm, algorithm: Algorithm) -> bool {
    key.to_string() == format!("{algorithm:?}")
}
