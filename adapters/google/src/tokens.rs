//! The tokens of an account, as headers of requests.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use capstan_http::{HeaderSource, Headers, Url};
use capstan_hub::ports::Clock;
use capstan_model::Secret;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::credentials::{Found, Places};
use crate::error::GoogleError;
use crate::web::{Endpoints, Request, Whom, is_here, send};

/// The scope of an access token, if none is configured.
const CLOUD: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The grant of a signed token (RFC 7523).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The lifetime of a token that we sign, in seconds.
const LIFETIME: i64 = 3600;

/// The time before its expiry at which a token is no longer used.
const MARGIN: Duration = Duration::from_mins(1);

/// The lifetime of a token that does not say when it expires.
const UNKNOWN_LIFETIME: Duration = Duration::from_mins(5);

/// The token that a server gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// An access token of the own credentials, with these scopes; empty for all of the cloud.
    Access {
        /// The scopes.
        scopes: Vec<String>,
    },
    /// An ID token of a service account that the own credentials may impersonate.
    Identity {
        /// The audience.
        audience: String,
        /// The e-mail address of the service account.
        account: String,
    },
}

/// The tokens of an account, for one server.
#[derive(Clone)]
pub struct GoogleTokens {
    /// The address of the server.
    pub server: Secret<String>,
    /// The token that it gets.
    pub wanted: Wanted,
    /// The places of the credentials.
    pub places: Places,
    /// The addresses that tokens are requested from.
    pub endpoints: Endpoints,
    /// The clock, for tokens that we sign.
    pub clock: Arc<dyn Clock>,
}

/// A token and how long it can be used.
struct Token {
    value: Secret<String>,
    lifetime: Duration,
}

/// The claims of a token that a service account signs.
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

// === impl GoogleTokens ===

impl HeaderSource for GoogleTokens {
    fn fetch(&self) -> BoxFuture<'static, Result<Headers, String>> {
        let tokens = self.clone();
        async move {
            let token = tokens.token().await.map_err(|error| error.to_string())?;
            let bearer = Secret::new(format!("Bearer {}", token.value.reveal()));
            let headers = vec![("Authorization".to_owned(), bearer)];
            let lifetime = Some(token.lifetime.saturating_sub(MARGIN));
            Ok(Headers { headers, secrets: vec![token.value], lifetime })
        }
        .boxed()
    }
}

impl GoogleTokens {
    async fn token(&self) -> Result<Token, GoogleError> {
        self.check_server()?;
        match &self.wanted {
            Wanted::Access { scopes } => {
                let scope = if scopes.is_empty() { CLOUD.to_owned() } else { scopes.join(" ") };
                match self.credentials().await? {
                    Some(found) => self.access(&found, &scope).await,
                    None => self.metadata(&scope).await,
                }
            }
            Wanted::Identity { audience, account } => {
                let Some(found) = self.credentials().await? else {
                    return Err(GoogleError::NoCredentials(self.places.usual.clone()));
                };
                let access = self.access(&found, CLOUD).await?;
                self.identity(&access, audience, account).await
            }
        }
    }

    /// Refuses servers that must not get the token, before anything is requested.
    fn check_server(&self) -> Result<(), GoogleError> {
        let url = self.server.reveal();
        if is_here(url) {
            return Ok(());
        }
        let parsed = Url::parse(url).ok();
        let host = parsed.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        if parsed.is_none_or(|url| url.scheme() != "https") {
            return Err(GoogleError::Unencrypted(host));
        }
        match &self.wanted {
            Wanted::Identity { .. } => Ok(()),
            Wanted::Access { .. } if host.ends_with(".googleapis.com") => Ok(()),
            Wanted::Access { .. } => Err(GoogleError::ForeignHost(host)),
        }
    }

    async fn credentials(&self) -> Result<Option<Found>, GoogleError> {
        let places = self.places.clone();
        let reading = tokio::task::spawn_blocking(move || places.read()).await;
        reading.unwrap_or_else(|error| {
            let path = self.places.usual.clone();
            Err(GoogleError::Unreadable { path, reason: error.to_string() })
        })
    }

    /// An access token for credentials from a file.
    async fn access(&self, found: &Found, scope: &str) -> Result<Token, GoogleError> {
        let signed;
        let form: Vec<(&str, &str)> = match found {
            // The scopes of a user were chosen at the login.
            Found::User { client_id, client_secret, refresh_token } => vec![
                ("grant_type", "refresh_token"),
                ("client_id", client_id),
                ("client_secret", client_secret.reveal()),
                ("refresh_token", refresh_token.reveal()),
            ],
            Found::Service { email, key, key_id } => {
                signed = self.sign(email, key, key_id.as_deref(), scope)?;
                vec![("grant_type", JWT_BEARER), ("assertion", signed.reveal())]
            }
        };
        let body = Serializer::new(String::new()).extend_pairs(form).finish().into_bytes();
        let kind = ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned());
        let url = self.endpoints.token.clone();
        let request = Request { method: "POST", url, headers: vec![kind], body };
        access_token(&self.endpoints.token, &send(Whom::Google, request).await?)
    }

    /// An access token of the machine's own account.
    async fn metadata(&self, scope: &str) -> Result<Token, GoogleError> {
        let scopes = scope.replace(' ', ",");
        let query = Serializer::new(String::new()).append_pair("scopes", &scopes).finish();
        let host = &self.endpoints.metadata;
        let path = "computeMetadata/v1/instance/service-accounts/default/token";
        let flavor = ("metadata-flavor".to_owned(), "Google".to_owned());
        let request = Request {
            method: "GET",
            url: format!("http://{host}/{path}?{query}"),
            headers: vec![flavor],
            body: Vec::new(),
        };
        match send(Whom::Metadata, request).await {
            Ok(answer) => access_token(host, &answer),
            // Most machines have none; then the file is what is missing.
            Err(GoogleError::Refused { reason, .. }) if !reason.contains("HTTP status") => {
                Err(GoogleError::NoCredentials(self.places.usual.clone()))
            }
            Err(error) => Err(error),
        }
    }

    /// An ID token of the service account.
    async fn identity(
        &self,
        access: &Token,
        audience: &str,
        account: &str,
    ) -> Result<Token, GoogleError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:".contains(c);
        let endpoint = &self.endpoints.iam;
        let refused = |reason: &str| GoogleError::Refused {
            endpoint: endpoint.clone(),
            reason: reason.to_owned(),
        };
        if account.is_empty() || !account.chars().all(is_plain) {
            return Err(refused("`target_service_account` is not an e-mail address"));
        }
        let path = format!("v1/projects/-/serviceAccounts/{account}:generateIdToken");
        let headers = [
            ("authorization", format!("Bearer {}", access.value.reveal())),
            ("content-type", "application/json".to_owned()),
        ];
        let body = json!({ "audience": audience, "includeEmail": true });
        let request = Request {
            method: "POST",
            url: format!("{}/{path}", endpoint.trim_end_matches('/')),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            body: body.to_string().into_bytes(),
        };
        let answer = send(Whom::Google, request).await?;
        let token = answer.get("token").and_then(Value::as_str).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| refused("its answer has no `token`"))?;
        let lifetime = self.lifetime(token).unwrap_or(UNKNOWN_LIFETIME);
        Ok(Token { value: Secret::new(token.to_owned()), lifetime })
    }

    /// The time until an ID token expires. It is not verified: it comes from Google itself.
    fn lifetime(&self, token: &str) -> Option<Duration> {
        let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        let left = claims.get("exp")?.as_i64()?.checked_sub(self.clock.now().as_second())?;
        Some(Duration::from_secs(u64::try_from(left).unwrap_or_default()))
    }

    /// A token that the service account signs with its key.
    fn sign(
        &self,
        email: &str,
        key: &Secret<String>,
        key_id: Option<&str>,
        scope: &str,
    ) -> Result<Secret<String>, GoogleError> {
        // The errors of the library may quote the key.
        let unusable = || GoogleError::Unreadable {
            path: self.places.named.clone().unwrap_or_else(|| self.places.usual.clone()),
            reason: "its `private_key` is not an RSA key in PEM".to_owned(),
        };
        let now = self.clock.now().as_second();
        let claims = Claims {
            iss: email,
            scope,
            aud: &self.endpoints.token,
            iat: now,
            exp: now.saturating_add(LIFETIME),
        };
        let mut header = Header::new(Algorithm::RS256);
        header.kid = key_id.map(ToOwned::to_owned);
        let key = EncodingKey::from_rsa_pem(key.reveal().as_bytes()).map_err(|_| unusable())?;
        encode(&header, &claims, &key).map(Secret::new).map_err(|_| unusable())
    }
}

/// The access token in an answer.
fn access_token(endpoint: &str, answer: &Value) -> Result<Token, GoogleError> {
    let token = answer.get("access_token").and_then(Value::as_str);
    let token = token.filter(|token| !token.is_empty()).ok_or_else(|| GoogleError::Refused {
        endpoint: endpoint.to_owned(),
        reason: "its answer has no `access_token`".to_owned(),
    })?;
    let lifetime = answer.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
    let lifetime = lifetime.unwrap_or(UNKNOWN_LIFETIME);
    Ok(Token { value: Secret::new(token.to_owned()), lifetime })
}
