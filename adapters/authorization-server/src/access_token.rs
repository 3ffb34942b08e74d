//! Access tokens: JSON Web Tokens in the profile of RFC 9068.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Header, Validation};
use serde::{Deserialize, Serialize};

use crate::keys::SigningKey;

/// The type of an access token, which tells it from other tokens.
pub(crate) const TYPE: &str = "at+jwt";

/// Difference between the clocks of two gateways that is tolerated.
const LEEWAY: Duration = Duration::from_secs(5);

/// The claims of an access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    /// The resource that the token is for.
    pub(crate) aud: String,
    pub(crate) sub: String,
    pub(crate) client_id: String,
    /// The roles of the user.
    pub(crate) groups: Vec<String>,
    pub(crate) scope: String,
    pub(crate) iat: i64,
    pub(crate) nbf: i64,
    pub(crate) exp: i64,
    pub(crate) jti: String,
    /// The id of the grant, which can be revoked.
    pub(crate) grant: String,
}

// === impl Claims ===

impl Claims {
    /// Signs the claims.
    pub(crate) fn sign(&self, key: &SigningKey) -> Result<String, jsonwebtoken::errors::Error> {
        let mut header = Header::new(key.algorithm);
        header.typ = Some(TYPE.to_owned());
        header.kid = Some(key.id.clone());
        jsonwebtoken::encode(&header, self, &key.encoding)
    }

    /// Reads the claims of a token that has this key's signature; `None` for any other.
    ///
    /// The key decides about the algorithm, not the token.
    pub(crate) fn verify(token: &str, key: &SigningKey) -> Option<Self> {
        let mut validation = Validation::new(key.algorithm);
        validation.required_spec_claims.clear();
        // Checked by `is_valid_at`, with the clock of the server.
        validation.validate_exp = false;
        validation.validate_aud = false;
        let data = jsonwebtoken::decode::<Self>(token, &key.decoding, &validation).ok()?;
        let is_access_token = data.header.typ.as_deref() == Some(TYPE);
        (is_access_token && data.header.crit.is_none()).then_some(data.claims)
    }

    /// True if the token has begun and has not expired.
    pub(crate) fn is_valid_at(&self, now: Timestamp) -> bool {
        let leeway = i64::try_from(LEEWAY.as_secs()).unwrap_or_default();
        let now = now.as_second();
        self.exp > now && self.nbf <= now.saturating_add(leeway)
    }
}
