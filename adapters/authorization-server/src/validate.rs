//! Checks the access tokens that callers present to the gateway.

use std::sync::Arc;

use capstan_hub::ports::{AuthorizationStore, Clock};

use crate::access_token::Claims;
use crate::keys::Keys;
use crate::settings::Checked;

/// Longest token, in bytes.
const MAX_TOKEN: usize = 8 * 1024;

/// The user and the client of an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub subject: String,
    /// The roles of the user, with the injected ones.
    pub roles: Vec<String>,
    /// The client that acts for the user.
    pub client: String,
}

/// The reason why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not valid here, or no longer.
    #[error("the access token is not valid")]
    Invalid,
    /// It cannot be checked now.
    #[error("the access token cannot be checked now")]
    Unavailable,
}

/// Checks access tokens.
pub struct AccessTokens {
    pub(crate) settings: Arc<Checked>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) store: Arc<dyn AuthorizationStore>,
    pub(crate) clock: Arc<dyn Clock>,
}

// === impl AccessTokens ===

impl AccessTokens {
    /// Checks a token: signature, type, issuer, audience, times, revocation.
    ///
    /// # Errors
    /// If the token is not valid here, or cannot be checked.
    pub async fn check(&self, token: &str) -> Result<Identity, Refused> {
        let claims = self.claims(token).await?;
        Ok(Identity { subject: claims.sub, roles: claims.groups, client: claims.client_id })
    }

    /// The claims of a token of ours that is valid now.
    pub(crate) async fn claims(&self, token: &str) -> Result<Claims, Refused> {
        if token.len() > MAX_TOKEN {
            return Err(Refused::Invalid);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| Refused::Invalid)?;
        let id = header.kid.ok_or(Refused::Invalid)?;
        let key = self.keys.find(&id).await.map_err(|error| {
            tracing::error!(%error, "access tokens cannot be checked");
            Refused::Unavailable
        })?;
        let claims = key.and_then(|key| Claims::verify(token, &key)).ok_or(Refused::Invalid)?;
        let is_ours = claims.iss == self.settings.issuer && claims.aud == self.settings.resource();
        if !is_ours || !claims.is_valid_at(self.clock.now()) {
            return Err(Refused::Invalid);
        }
        let grant = self.store.find_grant(&claims.grant).await.map_err(|error| {
            tracing::error!(%error, "access tokens cannot be checked");
            Refused::Unavailable
        })?;
        match grant {
            Some(grant) if !grant.revoked && grant.client == claims.client_id => Ok(claims),
            Some(_) | None => Err(Refused::Invalid),
        }
    }
}
