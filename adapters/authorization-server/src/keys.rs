//! The keys that sign tokens and forms, and their replacement.
//!
//! Gateways that share a store share the keys: the first one that needs a new key makes it, and
//! the others read it when they meet it.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use capstan_hub::ports::{AuthorizationStore, Clock, StoreError, StoredKey};
use capstan_model::Secret;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::random::{self, NoRandomness};
use crate::settings::Signing;

/// Age at which a signing key is replaced.
const REPLACE_AFTER: Duration = Duration::from_hours(90 * 24);

/// Least time between two readings of the store because of an unknown key.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// The use of the key that protects forms.
const FORM: &str = "form";

/// The keys.
pub(crate) struct Keys {
    source: Source,
    store: Arc<dyn AuthorizationStore>,
    clock: Arc<dyn Clock>,
    ring: RwLock<Option<Arc<KeyRing>>>,
    read_at: Mutex<Option<Duration>>,
}

/// The keys at one moment.
pub(crate) struct KeyRing {
    /// The key that signs; also the first of `all`.
    pub(crate) signing: Arc<SigningKey>,
    /// All keys whose tokens may still be valid.
    all: Vec<Arc<SigningKey>>,
    /// Protects forms against requests of other pages.
    pub(crate) form: Secret<Vec<u8>>,
}

/// A key that signs access tokens.
pub(crate) struct SigningKey {
    pub(crate) id: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) encoding: EncodingKey,
    pub(crate) decoding: DecodingKey,
    /// The public key, if there is one.
    public: Option<Value>,
    created_at: Timestamp,
}

/// A problem with a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Random(#[from] NoRandomness),
    #[error("a key cannot be made or read")]
    Unusable,
}

enum Source {
    Secret(Arc<SigningKey>),
    Made(Algorithm),
}

// === impl Keys ===

impl Keys {
    pub(crate) fn new(
        signing: &Signing,
        store: Arc<dyn AuthorizationStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let source = match signing {
            Signing::Secret(secret) => Source::Secret(Arc::new(SigningKey::of_secret(secret))),
            Signing::Es256 => Source::Made(Algorithm::ES256),
            Signing::EdDsa => Source::Made(Algorithm::EdDSA),
        };
        Self { source, store, clock, ring: RwLock::default(), read_at: Mutex::default() }
    }

    /// The current keys; reads or makes them if there are none yet.
    pub(crate) async fn ring(&self) -> Result<Arc<KeyRing>, KeyError> {
        match self.known() {
            Some(ring) => Ok(ring),
            None => self.renew().await,
        }
    }

    /// The keys that were read last.
    pub(crate) fn known(&self) -> Option<Arc<KeyRing>> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finds a key by its id; reads the store again if it is unknown, but not too often.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<Arc<SigningKey>>, KeyError> {
        let ring = self.ring().await?;
        if let Some(key) = ring.find(id) {
            return Ok(Some(key));
        }
        if !self.may_read_again() {
            return Ok(None);
        }
        Ok(self.renew().await?.find(id))
    }

    fn may_read_again(&self) -> bool {
        let now = self.clock.monotonic();
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = read_at.is_none_or(|at| now.saturating_sub(at) >= READ_AGAIN);
        if may {
            *read_at = Some(now);
        }
        may
    }

    /// Reads the keys, and makes those that are missing or too old.
    pub(crate) async fn renew(&self) -> Result<Arc<KeyRing>, KeyError> {
        let now = self.clock.now();
        let mut stored = self.store.keys().await?;
        let mut made = false;
        if !stored.iter().any(|key| key.usage == FORM) {
            let key = StoredKey {
                id: random::text()?,
                usage: FORM.to_owned(),
                secret: Secret::new(random::text()?),
                created_at: now,
            };
            self.store.add_key(&key, Timestamp::MIN).await?;
            made = true;
        }
        if let Source::Made(algorithm) = self.source {
            let after = now.checked_sub(REPLACE_AFTER).unwrap_or(Timestamp::MIN);
            let is_current =
                |key: &StoredKey| key.usage == word(algorithm) && key.created_at >= after;
            if !stored.iter().any(is_current) {
                self.store.add_key(&make(algorithm, now)?, after).await?;
                made = true;
            }
        }
        if made {
            stored = self.store.keys().await?;
        }
        let ring = Arc::new(self.ring_of(&stored)?);
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&ring));
        Ok(ring)
    }

    /// Deletes keys whose tokens have all expired.
    pub(crate) async fn delete_old(&self, access_token_ttl: Duration) -> Result<(), KeyError> {
        let kept = REPLACE_AFTER + access_token_ttl + Duration::from_hours(1);
        let before = self.clock.now().checked_sub(kept).unwrap_or(Timestamp::MIN);
        for algorithm in [Algorithm::ES256, Algorithm::EdDSA] {
            self.store.delete_keys(word(algorithm), before).await?;
        }
        Ok(())
    }

    fn ring_of(&self, stored: &[StoredKey]) -> Result<KeyRing, KeyError> {
        let form = stored.iter().rev().find(|key| key.usage == FORM);
        let form = form.and_then(|key| random::decode(key.secret.reveal()));
        let form = Secret::new(form.ok_or(KeyError::Unusable)?);
        if let Source::Secret(key) = &self.source {
            return Ok(KeyRing { signing: Arc::clone(key), all: vec![Arc::clone(key)], form });
        }
        let signing = stored.iter().filter(|key| key.usage != FORM);
        let mut all: Vec<_> =
            signing.filter_map(|key| SigningKey::read(key).map(Arc::new)).collect();
        all.sort_by_key(|key| std::cmp::Reverse(key.created_at));
        let current = |key: &&Arc<SigningKey>| match self.source {
            Source::Made(algorithm) => key.algorithm == algorithm,
            Source::Secret(_) => false,
        };
        let signing = all.iter().find(current).map(Arc::clone).ok_or(KeyError::Unusable)?;
        Ok(KeyRing { signing, all, form })
    }
}

// === impl KeyRing ===

impl KeyRing {
    pub(crate) fn find(&self, id: &str) -> Option<Arc<SigningKey>> {
        self.all.iter().find(|key| key.id == id).map(Arc::clone)
    }

    /// The public keys, as a JSON Web Key Set.
    pub(crate) fn public(&self) -> Value {
        let keys: Vec<&Value> = self.all.iter().filter_map(|key| key.public.as_ref()).collect();
        json!({ "keys": keys })
    }
}

// === impl SigningKey ===

impl SigningKey {
    fn of_secret(secret: &Secret<String>) -> Self {
        let bytes = secret.reveal().as_bytes();
        let digest = Sha256::digest([b"capstan key id\0", bytes].concat());
        Self {
            id: digest.get(..6).map(random::encode).unwrap_or_default(),
            algorithm: Algorithm::HS256,
            encoding: EncodingKey::from_secret(bytes),
            decoding: DecodingKey::from_secret(bytes),
            public: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Reads a stored key; `None` if it is damaged or of a newer version.
    fn read(stored: &StoredKey) -> Option<Self> {
        let secret = random::decode(stored.secret.reveal())?;
        let (id, created_at) = (stored.id.clone(), stored.created_at);
        match stored.usage.as_str() {
            "ES256" => {
                let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let pair = EcdsaKeyPair::from_pkcs8(algorithm, &secret).ok()?;
                let point = pair.public_key().as_ref();
                let (x, y) = point.get(1..)?.split_at_checked(32)?;
                let (x, y) = (random::encode(x), random::encode(y));
                Some(Self {
                    algorithm: Algorithm::ES256,
                    encoding: EncodingKey::from_ec_der(&secret),
                    decoding: DecodingKey::from_ec_components(&x, &y).ok()?,
                    public: Some(json!({
                        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256",
                        "kid": id, "x": x, "y": y,
                    })),
                    id,
                    created_at,
                })
            }
            "EdDSA" => {
                let pair = Ed25519KeyPair::from_pkcs8(&secret).ok()?;
                let x = random::encode(pair.public_key().as_ref());
                Some(Self {
                    algorithm: Algorithm::EdDSA,
                    encoding: EncodingKey::from_ed_der(&secret),
                    decoding: DecodingKey::from_ed_components(&x).ok()?,
                    public: Some(json!({
                        "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA",
                        "kid": id, "x": x,
                    })),
                    id,
                    created_at,
                })
            }
            _ => None,
        }
    }
}

/// Makes a key.
fn make(algorithm: Algorithm, now: Timestamp) -> Result<StoredKey, KeyError> {
    let random = SystemRandom::new();
    let secret = if algorithm == Algorithm::EdDSA {
        Ed25519KeyPair::generate_pkcs8(&random)
    } else {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
    };
    let secret = secret.map_err(|_| KeyError::Unusable)?;
    Ok(StoredKey {
        id: random::bytes()?.get(..9).map(random::encode).unwrap_or_default(),
        usage: word(algorithm).to_owned(),
        secret: Secret::new(random::encode(secret.as_ref())),
        created_at: now,
    })
}

/// The word for an algorithm in stored data.
fn word(algorithm: Algorithm) -> &'static str {
    if algorithm == Algorithm::EdDSA { "EdDSA" } else { "ES256" }
}
