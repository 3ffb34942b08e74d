//! The gateway's own authorization server: its settings, its ports and its routes.

use std::path::Path;
use std::sync::Arc;

use capstan_app::{AppError, Environment};
use capstan_auth::resource::PublicAddress;
use capstan_auth::{Identity, Refusal, TokenVerifier, Verification};
use capstan_authorization_server::{
    AccessTokens, AuthorizationServer, Endpoint, Event, EventLog, HttpDocuments, HttpUpstream,
    Ports, Refused, Request, Settings, SettingsError, SignIn, Signing, StartError, TrustedProxy,
    UpstreamProvider, UpstreamSettings,
};
use capstan_config::{AuthProvider, Gateway, OauthAs, TokenAlgorithm};
use capstan_gateway::http::{Body, Bound, HttpRequest, PublicEndpoint, Routes, UnreadBody};
use capstan_hub::Outcome;
use capstan_hub::ports::{BoxFuture, Clock};
use capstan_model::{Caller, ErrorCode};
use capstan_store::Database;
use hyper::Response;
use hyper::http::StatusCode;

use super::auth::AuditLogins;
use crate::adapters::Adapters;

/// Largest state of another program that is imported, in bytes.
const MAX_IMPORT: u64 = 16 * 1024 * 1024;

/// The variable with the state of another program's authorization server.
const INLINE_STATE: &str = "MCP_AUTH_SERVER_CONFIG";

/// The variable with the file of that state.
const STATE_FILE: &str = "MCP_AUTH_SERVER_PATH";

/// One endpoint of the server, as a route.
struct Mounted {
    server: Arc<AuthorizationServer>,
    endpoint: Endpoint,
}

/// Writes the events of the server to the audit log.
struct AuditedEvents(Arc<AuditLogins>);

/// Verifies access tokens for the chain of providers.
struct OwnTokens(Arc<AccessTokens>);

/// Starts the server, if the configuration asks for it.
pub(super) async fn start(
    adapters: &Adapters,
    gateway: &Gateway,
    bound: &Bound,
    logins: Arc<AuditLogins>,
) -> Result<Option<Arc<AuthorizationServer>>, AppError> {
    let auth = gateway.auth.as_ref().filter(|auth| auth.has(AuthProvider::OauthAs));
    let Some(configured) = auth.and_then(|auth| auth.oauth_as.as_ref()) else { return Ok(None) };
    let upstream = configured.upstream.as_ref();
    let upstream = upstream.map(|one| provider(one, &logins.clock)).transpose()?;
    let ports = Ports {
        store: Arc::<Database>::clone(&adapters.database),
        clock: Arc::clone(&logins.clock),
        documents: Arc::new(HttpDocuments),
        events: Arc::new(AuditedEvents(logins)),
    };
    let settings = settings(gateway, configured, bound, upstream);
    let server =
        AuthorizationServer::start(settings, ports).await.map_err(|error| refused(&error))?;
    import(&adapters.environment, configured, &server).await?;
    Ok(Some(server))
}

/// The provider at which users sign in.
fn provider(
    configured: &capstan_config::UpstreamProvider,
    clock: &Arc<dyn Clock>,
) -> Result<UpstreamProvider, AppError> {
    let place = "`gateway.auth.oauth_as.upstream`";
    let missing = |key: &str| AppError::config(format!("{place} has no `{key}`"));
    let issuer = configured.issuer.clone().ok_or_else(|| missing("issuer"))?;
    let settings = UpstreamSettings {
        issuer: issuer.clone(),
        client_id: configured.client_id.clone().ok_or_else(|| missing("client_id"))?,
        client_secret: configured.client_secret.clone(),
        scopes: configured.scopes.clone(),
        subject_claim: configured.subject_claim.clone(),
        roles_claim: configured.roles_claim.clone(),
        networks: configured.networks.clone(),
    };
    let provider = HttpUpstream::new(settings, Arc::clone(clock))
        .map_err(|why| AppError::config(format!("{place} cannot be used: {why}")))?;
    Ok(UpstreamProvider { issuer, provider: Arc::new(provider) })
}

/// The issuer of tokens: the configured one, or the address of the gateway.
fn issuer(gateway: &Gateway, configured: &OauthAs, bound: &Bound) -> String {
    let public = configured.issuer_url.clone().or_else(|| {
        let url = gateway.public_url.as_ref()?;
        // The public address may have the path of the MCP endpoint.
        Some(url.strip_suffix("/mcp").unwrap_or(url).to_owned())
    });
    public.unwrap_or_else(|| format!("{}://{}", bound.scheme(), super::host(bound.address())))
}

/// Mounts all endpoints.
pub(super) fn mount(routes: Routes, server: &Arc<AuthorizationServer>) -> Routes {
    Endpoint::ALL.into_iter().fold(routes, |routes, endpoint| {
        routes.open(endpoint.path(), Mounted { server: Arc::clone(server), endpoint })
    })
}

/// The verifier of the server's tokens.
pub(super) fn verifier(server: &AuthorizationServer) -> Arc<dyn TokenVerifier> {
    Arc::new(OwnTokens(server.tokens()))
}

fn settings(
    gateway: &Gateway,
    configured: &OauthAs,
    bound: &Bound,
    upstream: Option<UpstreamProvider>,
) -> Settings {
    let sign_in = if let Some(upstream) = upstream {
        SignIn::Upstream(upstream)
    } else if configured.trusted_source_cidrs.is_empty() {
        SignIn::Users
    } else {
        SignIn::Proxy(TrustedProxy {
            networks: configured.trusted_source_cidrs.clone(),
            user_header: configured.trusted_user_header.clone(),
            groups_header: configured.trusted_groups_header.clone(),
        })
    };
    let signing = match (&configured.jwt_secret, configured.token_algorithm) {
        (Some(secret), _) => Signing::Secret(secret.clone()),
        (None, TokenAlgorithm::Es256) => Signing::Es256,
        (None, TokenAlgorithm::EdDsa) => Signing::EdDsa,
    };
    Settings {
        issuer: issuer(gateway, configured, bound),
        gateway: gateway
            .public_url
            .as_deref()
            .and_then(PublicAddress::parse)
            .map(|at| at.resource("")),
        signing,
        sign_in,
        access_token_ttl: configured.access_token_ttl,
        refresh_token_ttl: configured.refresh_token_ttl,
        code_ttl: configured.authorization_code_ttl,
        scopes: configured.scopes_supported.clone(),
        redirect_patterns: configured.redirect_uri_allowlist.clone(),
        injected_roles: configured.injected_roles.clone(),
    }
}

/// Explains why the server does not start.
fn refused(error: &StartError) -> AppError {
    let failure = AppError::config(format!("`gateway.auth.oauth_as` cannot be used: {error}"));
    let hint = match error {
        StartError::Settings(SettingsError::Issuer(_)) => {
            "set `issuer_url` to the public address: \"https://mcp.example.com\""
        }
        StartError::Settings(SettingsError::Secret) => {
            "use a random secret, as `openssl rand -hex 32` prints"
        }
        StartError::Settings(SettingsError::Networks) => {
            "name the proxy in `trusted_source_cidrs`, or remove it to use local users"
        }
        StartError::Settings(SettingsError::Pattern(_)) => {
            "list redirect addresses: [\"https://claude.ai/api/mcp/auth_callback\"]"
        }
        StartError::Settings(SettingsError::Header | SettingsError::Lifetime)
        | StartError::Keys(_) => return failure,
    };
    failure.hint(hint)
}

/// Imports the state of another program: the one that a variable names, or with its `jwtSecret`, the
/// file at its usual place.
async fn import(
    environment: &Environment,
    configured: &OauthAs,
    server: &AuthorizationServer,
) -> Result<(), AppError> {
    let set = |name| environment.variable(name).filter(|text| !text.trim().is_empty());
    let usual = || {
        let path = environment.shared_config.join("mcp/auth_server.json");
        configured.jwt_secret.is_some().then_some(path)
    };
    let path = set(STATE_FILE).map(|path| environment.current_folder.join(path.trim()));
    let (text, name) = match (set(INLINE_STATE), path.or_else(usual)) {
        (Some(text), _) => (text.clone(), INLINE_STATE.to_owned()),
        (None, Some(path)) => match read(&path).await? {
            Some(text) => (text, path.display().to_string()),
            None => return Ok(()),
        },
        (None, None) => return Ok(()),
    };
    let imported = server.import(&text).await.map_err(|error| {
        AppError::config(format!("the clients and logins in `{name}` cannot be imported: {error}"))
            .hint(format!("set `{STATE_FILE}` to another file to start without it"))
    })?;
    if imported.clients + imported.tokens > 0 {
        let (clients, tokens) = (imported.clients, imported.tokens);
        tracing::info!(clients, tokens, "imported clients and refresh tokens from `{name}`");
    }
    Ok(())
}

/// Reads a file; `None` if there is none yet.
async fn read(path: &Path) -> Result<Option<String>, AppError> {
    let (shown, path) = (path.display().to_string(), path.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        if std::fs::metadata(&path)?.len() > MAX_IMPORT {
            return Err(std::io::Error::other("it is too large"));
        }
        std::fs::read_to_string(&path)
    });
    match read.await {
        Ok(Ok(text)) => Ok(Some(text)),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(Err(error)) => Err(AppError::config(format!("`{shown}` cannot be read: {error}"))),
        Err(error) => Err(AppError::internal(error.to_string())),
    }
}

// === impl Mounted ===

impl PublicEndpoint for Mounted {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            let peer = request.peer;
            let answer = match request.read_body(self.endpoint.max_body()).await {
                Ok((head, body)) => {
                    let query = head.uri.query().unwrap_or_default().to_owned();
                    let (method, headers) = (head.method, head.headers);
                    let request = Request { method, query, headers, body, peer };
                    self.server.serve(self.endpoint, request).await
                }
                Err(UnreadBody::TooLarge) => self.server.too_large(self.endpoint),
                Err(UnreadBody::Broken) => {
                    let mut response = Response::new(Body::from(bytes::Bytes::new()));
                    *response.status_mut() = StatusCode::BAD_REQUEST;
                    return response;
                }
            };
            let mut response = Response::new(Body::from(answer.body));
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            response
        })
    }
}

// === impl OwnTokens ===

impl TokenVerifier for OwnTokens {
    fn verify<'a>(&'a self, token: &'a str) -> Verification<'a> {
        Verification::Wait(Box::pin(async move {
            match self.0.check(token).await {
                Ok(identity) => Ok(Identity { subject: identity.subject, roles: identity.roles }),
                Err(Refused::Invalid) => Err(Refusal::Invalid),
                Err(Refused::Unavailable) => Err(Refusal::Unavailable),
            }
        }))
    }
}

// === impl AuditedEvents ===

impl EventLog for AuditedEvents {
    fn record(&self, event: Event<'_>) {
        let user = |subject: &str| Arc::new(Caller::remote(subject, Vec::new()));
        let stranger = |peer| Arc::new(Caller::stranger(Some(peer)));
        let denied = Outcome::Failed(ErrorCode::AuthFailure);
        let (caller, method, item, outcome) = match event {
            Event::Registered { client, peer } => {
                (stranger(peer), "auth/register", client.to_owned(), Outcome::Answered)
            }
            Event::Granted { subject, client } => {
                (user(subject), "auth/grant", client.to_owned(), Outcome::Answered)
            }
            Event::Denied { client, peer } => {
                (stranger(peer), "auth/deny", client.to_owned(), Outcome::Answered)
            }
            Event::SignInRefused { peer } => {
                (stranger(peer), "auth/failure", format!("sign-in from {peer}"), denied)
            }
            Event::Reused { subject, client } => {
                (user(subject), "auth/reuse", client.to_owned(), denied)
            }
            Event::Revoked { subject, client } => {
                (user(subject), "auth/revoke", client.to_owned(), Outcome::Answered)
            }
        };
        self.0.record(caller, method, item, outcome);
    }
}
