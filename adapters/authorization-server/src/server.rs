//! The server: its parts, and the way of a request to its endpoint.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use capstan_http::Method;
use capstan_http::StatusCode;
use capstan_http::header::{ALLOW, HeaderValue};
use capstan_hub::ports::{AuthorizationStore, Clock};

use crate::authorize::page_of;
use crate::documents::{ClientDocuments, Documents};
use crate::error::OauthError;
use crate::events::{Event, EventLog};
use crate::http::{Endpoint, Request, Response};
use crate::import::{self, ImportError, Imported};
use crate::keys::{KeyError, Keys};
use crate::metadata;
use crate::rate_limit::RateLimit;
use crate::settings::{Checked, Settings, SettingsError};
use crate::sign_in::Passwords;
use crate::upstream::SignIns;
use crate::validate::AccessTokens;

/// Interval at which expired state is deleted and keys are replaced.
const MAINTENANCE: Duration = Duration::from_mins(10);

/// The ports of the server.
#[derive(Clone)]
pub struct Ports {
    /// Its state.
    pub store: Arc<dyn AuthorizationStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fetches documents of clients.
    pub documents: Arc<dyn ClientDocuments>,
    /// The log of its events.
    pub events: Arc<dyn EventLog>,
}

/// The authorization server.
pub struct AuthorizationServer {
    pub(crate) settings: Arc<Checked>,
    pub(crate) ports: Ports,
    pub(crate) keys: Arc<Keys>,
    pub(crate) tokens: Arc<AccessTokens>,
    pub(crate) documents: Documents,
    pub(crate) passwords: Passwords,
    pub(crate) limits: Limits,
    pub(crate) sign_ins: SignIns,
}

/// Limits on attempts, per address of the peer.
pub(crate) struct Limits {
    pub(crate) registrations: RateLimit<IpAddr>,
    pub(crate) failed_tokens: RateLimit<IpAddr>,
    pub(crate) revocations: RateLimit<IpAddr>,
}

/// The reason why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings are unsafe.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The keys cannot be read or made.
    #[error("the authorization server has no keys: {0}")]
    Keys(String),
}

// === impl AuthorizationServer ===

impl AuthorizationServer {
    /// Starts the server: checks the settings, and reads or makes its keys.
    ///
    /// # Errors
    /// If the settings are unsafe or the keys cannot be read.
    pub async fn start(settings: Settings, ports: Ports) -> Result<Arc<Self>, StartError> {
        let (settings, signing) = settings.check()?;
        let settings = Arc::new(settings);
        let (store, clock) = (Arc::clone(&ports.store), Arc::clone(&ports.clock));
        let keys = Arc::new(Keys::new(&signing, Arc::clone(&store), Arc::clone(&clock)));
        keys.ring().await.map_err(|error| StartError::Keys(error.to_string()))?;
        let tokens = AccessTokens {
            settings: Arc::clone(&settings),
            keys: Arc::clone(&keys),
            store,
            clock: Arc::clone(&clock),
        };
        let documents = Documents::new(Arc::clone(&ports.documents), Arc::clone(&clock));
        Ok(Arc::new(Self {
            settings,
            keys,
            tokens: Arc::new(tokens),
            documents,
            passwords: Passwords::new(clock),
            limits: Limits::new(),
            sign_ins: SignIns::default(),
            ports,
        }))
    }

    /// The issuer, as tokens name it.
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// The check of access tokens.
    pub fn tokens(&self) -> Arc<AccessTokens> {
        Arc::clone(&self.tokens)
    }

    /// Imports the clients and refresh tokens of `auth_server.json`, once for each text.
    ///
    /// # Errors
    /// If the text cannot be read or the store fails.
    pub async fn import(&self, text: &str) -> Result<Imported, ImportError> {
        import::import_once(text, &*self.ports.store, &self.settings.resource(), &*self.ports.clock)
            .await
    }

    /// Answers a request of an endpoint.
    pub async fn serve(&self, endpoint: Endpoint, request: Request) -> Response {
        let response = if request.method == Method::OPTIONS && endpoint.is_for_scripts() {
            Response::preflight(endpoint.methods())
        } else if endpoint.methods().contains(&request.method) {
            self.answer(endpoint, &request).await
        } else {
            let allowed: Vec<&str> = endpoint.methods().iter().map(Method::as_str).collect();
            let response = Response::new(StatusCode::METHOD_NOT_ALLOWED);
            match HeaderValue::from_str(&allowed.join(", ")) {
                Ok(allowed) => response.with(ALLOW, allowed),
                Err(_) => response,
            }
        };
        if endpoint.is_for_scripts() { response.for_scripts() } else { response }
    }

    /// The answer to a request whose body is too large.
    pub fn too_large(&self, endpoint: Endpoint) -> Response {
        let error = OauthError {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            ..OauthError::invalid_request("the body is too large")
        };
        let response = error.response();
        if endpoint.is_for_scripts() { response.for_scripts() } else { response }
    }

    async fn answer(&self, endpoint: Endpoint, request: &Request) -> Response {
        let answered = match endpoint {
            Endpoint::Metadata => Ok(metadata::response(&self.settings)),
            Endpoint::Authorize => Ok(self.authorize(request).await),
            Endpoint::Callback => Ok(page_of(self.callback(request).await)),
            Endpoint::Token => self.token(request).await,
            Endpoint::Register => self.register(request).await,
            Endpoint::Revoke => self.revoke(request).await,
            Endpoint::Introspect => self.introspect(request).await,
            Endpoint::Keys => match self.keys.ring().await {
                Ok(ring) => Ok(metadata::public(&ring.public())),
                Err(error) => Err(self.no_keys(&error)),
            },
        };
        answered.unwrap_or_else(|error| error.response())
    }

    /// Deletes expired state and replaces old keys, until it is dropped.
    pub async fn maintain(&self) {
        loop {
            if let Err(error) = self.clean_up().await {
                tracing::warn!(error, "the authorization server could not clean up");
            }
            self.ports.clock.sleep(MAINTENANCE).await;
        }
    }

    /// Deletes expired state and replaces old keys once.
    ///
    /// # Errors
    /// If the store cannot be used; the text has the reason.
    pub async fn clean_up(&self) -> Result<(), String> {
        let deleted = self.ports.store.delete_expired(self.ports.clock.now()).await;
        deleted.map_err(|error| error.to_string())?;
        let old = self.keys.delete_old(self.settings.access_token_ttl).await;
        old.map_err(|error| error.to_string())?;
        self.keys.renew().await.map(drop).map_err(|error| error.to_string())
    }

    pub(crate) fn record(&self, event: Event<'_>) {
        self.ports.events.record(event);
    }

    /// The error for a request that needs keys or randomness that are not there.
    #[expect(clippy::unused_self, reason = "reads as a part of the server at its many calls")]
    pub(crate) fn no_keys(&self, error: &KeyError) -> OauthError {
        tracing::error!(%error, "the authorization server cannot use its keys");
        OauthError {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "temporarily_unavailable",
            description: "the server cannot use its keys; see the gateway's log".to_owned(),
        }
    }
}

// === impl Limits ===

impl Limits {
    fn new() -> Self {
        Self {
            registrations: RateLimit::new(60, Duration::from_hours(1)),
            failed_tokens: RateLimit::new(60, Duration::from_mins(1)),
            revocations: RateLimit::new(120, Duration::from_mins(1)),
        }
    }
}
