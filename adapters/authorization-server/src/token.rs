//! The token endpoint: exchanges codes and refresh tokens.

use std::time::Duration;

use capstan_http::StatusCode;
use capstan_hub::ports::{StoredGrant, StoredToken};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::access_token::Claims;
use crate::error::OauthError;
use crate::events::Event;
use crate::http::{Request, Response};
use crate::params::Params;
use crate::random;
use crate::register::USED_FOR;
use crate::server::AuthorizationServer;
use crate::settings::SignIn;

/// Time after its use in which a code or refresh token is refused without revoking its grant.
///
/// Two programs of one user may use it at the same moment, or one may try again; the one that
/// loses must not log out the other.
const GRACE: Duration = Duration::from_secs(10);

/// The tokens of a response.
struct Issued {
    access_token: String,
    refresh_token: String,
    scopes: Vec<String>,
}

// === impl AuthorizationServer ===

impl AuthorizationServer {
    pub(crate) async fn token(&self, request: &Request) -> Result<Response, OauthError> {
        let now = self.ports.clock.monotonic();
        if self.limits.failed_tokens.is_exhausted(&request.peer, now) {
            return Err(OauthError::too_many());
        }
        let answered = self.exchange(request).await;
        if answered.as_ref().is_err_and(|error| error.status == StatusCode::BAD_REQUEST) {
            self.limits.failed_tokens.admit(request.peer, now);
        }
        answered
    }

    async fn exchange(&self, request: &Request) -> Result<Response, OauthError> {
        let params = form(request)?;
        let client = params.get("client_id").ok_or_else(|| missing("client_id"))?;
        let now = self.ports.clock.now();
        if self.ports.store.client(client, now).await?.is_none() {
            return Err(OauthError::invalid_client());
        }
        let issued = match params.get("grant_type") {
            Some("authorization_code") => self.redeem(&params, client).await?,
            Some("refresh_token") => self.refresh(&params, client).await?,
            Some(_) => {
                let words = "`grant_type` must be `authorization_code` or `refresh_token`";
                return Err(OauthError::new("unsupported_grant_type", words));
            }
            None => return Err(missing("grant_type")),
        };
        let until = now.checked_add(USED_FOR).unwrap_or(now);
        self.ports.store.use_client(client, now, until).await?;
        let body = json!({
            "access_token": issued.access_token,
            "token_type": "Bearer",
            "expires_in": self.settings.access_token_ttl.as_secs(),
            "refresh_token": issued.refresh_token,
            "scope": issued.scopes.join(" "),
        });
        Ok(Response::json(StatusCode::OK, &body))
    }

    /// Exchanges a code.
    async fn redeem(&self, params: &Params, client: &str) -> Result<Issued, OauthError> {
        let code = params.get("code").ok_or_else(|| missing("code"))?;
        let verifier = params.get("code_verifier").ok_or_else(|| missing("code_verifier"))?;
        let uri = params.get("redirect_uri").ok_or_else(|| missing("redirect_uri"))?;
        let now = self.ports.clock.now();
        let taken = self.ports.store.take_code(&random::digest(code), now).await?;
        let taken = taken.ok_or_else(OauthError::invalid_grant)?;
        let is_owner = taken.grant.client == client
            && is_verifier(verifier)
            && random::encode(&Sha256::digest(verifier.as_bytes())) == taken.code.challenge;
        if let Some(taken_at) = taken.taken_before {
            // Only one who has the verifier can have got tokens for it, or lost them to a thief.
            if is_owner && taken_at.checked_add(GRACE).is_ok_and(|end| end < now) {
                self.reused(&taken.grant).await?;
            }
            return Err(OauthError::invalid_grant());
        }
        if !is_owner || taken.code.redirect_uri != uri {
            return Err(OauthError::invalid_grant());
        }
        self.check_target(params, &taken.grant)?;
        let (refresh_token, stored) = self.new_token(&taken.grant.id)?;
        let scopes = taken.grant.scopes.clone();
        // Signed first: an error after the token is saved would leave one that nobody has.
        let access_token = self.sign(&taken.grant, &taken.grant.roles, &scopes).await?;
        if !self.ports.store.add_token(&stored).await? {
            return Err(OauthError::invalid_grant());
        }
        Ok(Issued { access_token, refresh_token, scopes })
    }

    /// Exchanges a refresh token.
    async fn refresh(&self, params: &Params, client: &str) -> Result<Issued, OauthError> {
        let token = params.get("refresh_token").ok_or_else(|| missing("refresh_token"))?;
        let digest = random::digest(token);
        let found = self.ports.store.token(&digest).await?;
        let (stored, grant) = found.ok_or_else(OauthError::invalid_grant)?;
        let now = self.ports.clock.now();
        if grant.client != client || grant.revoked || stored.expires_at <= now {
            return Err(OauthError::invalid_grant());
        }
        if let Some(used_at) = stored.used_at {
            if used_at.checked_add(GRACE).is_ok_and(|end| end < now) {
                self.reused(&grant).await?;
            }
            return Err(OauthError::invalid_grant());
        }
        self.check_target(params, &grant)?;
        let scopes = narrowed(params, &grant)?;
        let roles = self.current_roles(&grant).await?;
        let (next, stored) = self.new_token(&grant.id)?;
        let access_token = self.sign(&grant, &roles, &scopes).await?;
        // The other one of two that refresh at the same time gets nothing, and loses nothing.
        if !self.ports.store.rotate(&digest, &stored, now).await? {
            return Err(OauthError::invalid_grant());
        }
        Ok(Issued { access_token, refresh_token: next, scopes })
    }

    /// The roles of the user now. A user that was removed has no more tokens.
    async fn current_roles(&self, grant: &StoredGrant) -> Result<Vec<String>, OauthError> {
        match &self.settings.sign_in {
            SignIn::Proxy(_) | SignIn::Upstream(_) => Ok(grant.roles.clone()),
            SignIn::Users => {
                let user = self.ports.store.user(&grant.subject).await?;
                user.map(|user| user.roles).ok_or_else(OauthError::invalid_grant)
            }
        }
    }

    /// Revokes a grant whose code or token was used twice.
    async fn reused(&self, grant: &StoredGrant) -> Result<(), OauthError> {
        if self.ports.store.revoke_grant(&grant.id).await? {
            self.record(Event::Reused { subject: &grant.subject, client: &grant.client });
        }
        Ok(())
    }

    /// Checks that the token is asked for the granted resource.
    fn check_target(&self, params: &Params, grant: &StoredGrant) -> Result<(), OauthError> {
        let Some(asked) = params.get("resource") else { return Ok(()) };
        if self.settings.own_resource(asked).as_ref() == Some(&grant.resource) {
            return Ok(());
        }
        let words = "`resource` must be the one that the user agreed to";
        Err(OauthError::new("invalid_target", words))
    }

    fn new_token(&self, grant: &str) -> Result<(String, StoredToken), OauthError> {
        let token = random::text().map_err(|error| self.no_keys(&error.into()))?;
        let now = self.ports.clock.now();
        let stored = StoredToken {
            digest: random::digest(&token),
            grant: grant.to_owned(),
            expires_at: now.checked_add(self.settings.refresh_token_ttl).unwrap_or(now),
            used_at: None,
        };
        Ok((token, stored))
    }

    async fn sign(
        &self,
        grant: &StoredGrant,
        roles: &[String],
        scopes: &[String],
    ) -> Result<String, OauthError> {
        let ring = self.keys.ring().await.map_err(|error| self.no_keys(&error))?;
        let now = self.ports.clock.now().as_second();
        let ttl = i64::try_from(self.settings.access_token_ttl.as_secs()).unwrap_or(i64::MAX);
        let mut groups = roles.to_vec();
        for role in &self.settings.injected_roles {
            if !groups.contains(role) {
                groups.push(role.clone());
            }
        }
        let claims = Claims {
            iss: self.settings.issuer.clone(),
            aud: grant.resource.clone(),
            sub: grant.subject.clone(),
            client_id: grant.client.clone(),
            groups,
            scope: scopes.join(" "),
            iat: now,
            nbf: now,
            exp: now.saturating_add(ttl),
            jti: random::text().map_err(|error| self.no_keys(&error.into()))?,
            grant: grant.id.clone(),
        };
        claims.sign(&ring.signing).map_err(|_| self.no_keys(&crate::keys::KeyError::Unusable))
    }
}

/// The parameters of a form. Those of a query would end up in logs.
pub(crate) fn form(request: &Request) -> Result<Params, OauthError> {
    if !request.is_form() {
        let words = "the body must be `application/x-www-form-urlencoded`";
        return Err(OauthError::invalid_request(words));
    }
    if !request.query.is_empty() {
        let words = "parameters belong into the body, not into the address";
        return Err(OauthError::invalid_request(words));
    }
    Params::parse(&request.body).map_err(|error| OauthError::invalid_request(error.to_string()))
}

pub(crate) fn missing(name: &str) -> OauthError {
    OauthError::invalid_request(format!("the parameter `{name}` is missing"))
}

/// The scopes of a refresh, at most those of the grant.
fn narrowed(params: &Params, grant: &StoredGrant) -> Result<Vec<String>, OauthError> {
    let Some(asked) = params.get("scope") else { return Ok(grant.scopes.clone()) };
    let asked: Vec<String> = asked.split_ascii_whitespace().map(ToOwned::to_owned).collect();
    if asked.iter().all(|scope| grant.scopes.contains(scope)) {
        return Ok(asked);
    }
    Err(OauthError::new("invalid_scope", "a refresh cannot widen the scopes"))
}

/// True for a verifier as RFC 7636 defines it.
fn is_verifier(text: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved)
}
