//! Revocation (RFC 7009) and introspection (RFC 7662) of tokens.

use capstan_http::StatusCode;
use capstan_http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use capstan_hub::ports::StoredGrant;
use serde_json::{Value, json};

use crate::access_token::Claims;
use crate::error::OauthError;
use crate::events::Event;
use crate::http::{Request, Response};
use crate::random;
use crate::server::AuthorizationServer;
use crate::token::{form, missing};

// === impl AuthorizationServer ===

impl AuthorizationServer {
    /// Revokes the grant of a token. The answer is the same for tokens that are unknown or belong
    /// to another client.
    pub(crate) async fn revoke(&self, request: &Request) -> Result<Response, OauthError> {
        let params = form(request)?;
        let token = params.get("token").ok_or_else(|| missing("token"))?;
        let client = params.get("client_id").ok_or_else(|| missing("client_id"))?;
        let now = self.ports.clock.monotonic();
        if !self.limits.revocations.admit(request.peer, now) {
            return Err(OauthError::too_many());
        }
        let grant = self.grant_of(token).await?;
        if let Some(grant) = grant.filter(|grant| grant.client == client)
            && self.ports.store.revoke_grant(&grant.id).await?
        {
            self.record(Event::Revoked { subject: &grant.subject, client: &grant.client });
        }
        Ok(Response::json(StatusCode::OK, &json!({})))
    }

    /// Describes a token to the client that it was issued to.
    ///
    /// The request is authenticated by a valid access token; tokens of others are not active for
    /// it.
    pub(crate) async fn introspect(&self, request: &Request) -> Result<Response, OauthError> {
        let own = request.header(AUTHORIZATION.as_str());
        let own = own.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        let Ok(caller) = self.tokens.claims(own).await else {
            let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
            let error = OauthError {
                status: StatusCode::UNAUTHORIZED,
                ..OauthError::new("invalid_token", "a valid access token is required")
            };
            return Ok(error.response().with(WWW_AUTHENTICATE, challenge));
        };
        let params = form(request)?;
        let token = params.get("token").ok_or_else(|| missing("token"))?;
        let described = self.describe(token, &caller).await?;
        let body = described.unwrap_or_else(|| json!({ "active": false }));
        Ok(Response::json(StatusCode::OK, &body))
    }

    async fn describe(&self, token: &str, caller: &Claims) -> Result<Option<Value>, OauthError> {
        let is_own =
            |client: &str, subject: &str| client == caller.client_id && subject == caller.sub;
        if let Ok(claims) = self.tokens.claims(token).await {
            let body = json!({
                "active": true, "token_type": "Bearer", "iss": claims.iss, "aud": claims.aud,
                "sub": claims.sub, "client_id": claims.client_id, "scope": claims.scope,
                "iat": claims.iat, "nbf": claims.nbf, "exp": claims.exp, "jti": claims.jti,
            });
            return Ok(is_own(&claims.client_id, &claims.sub).then_some(body));
        }
        let found = self.ports.store.token(&random::digest(token)).await?;
        let now = self.ports.clock.now();
        let found = found.filter(|(token, grant)| {
            token.used_at.is_none()
                && token.expires_at > now
                && !grant.revoked
                && is_own(&grant.client, &grant.subject)
        });
        Ok(found.map(|(token, grant)| {
            json!({
                "active": true, "token_type": "refresh_token", "iss": self.settings.issuer,
                "sub": grant.subject, "client_id": grant.client, "aud": grant.resource,
                "scope": grant.scopes.join(" "), "exp": token.expires_at.as_second(),
            })
        }))
    }

    /// The grant of a refresh token or of an access token.
    async fn grant_of(&self, token: &str) -> Result<Option<StoredGrant>, OauthError> {
        if let Some((_, grant)) = self.ports.store.token(&random::digest(token)).await? {
            return Ok(Some(grant));
        }
        match self.tokens.claims(token).await {
            Ok(claims) => Ok(self.ports.store.find_grant(&claims.grant).await?),
            Err(_) => Ok(None),
        }
    }
}
