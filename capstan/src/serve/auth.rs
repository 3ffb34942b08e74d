//! Authentication of callers over HTTP: builds the chain of the configuration for the gateway.
//!
//! `mount` adds the metadata by which clients find out where to get a token. Accepted and refused
//! credentials are written to the audit log.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_app::AppError;
use capstan_auth::resource::{Authorities, PublicAddress};
use capstan_auth::{
    AccessTokenType, Algorithm, Authenticating, Chain, Forwarded, ForwardedSettings, Identity,
    Issued, Jwt, JwtSettings, Observer, OwnServer, Refusal, Refused, StaticToken,
};
use capstan_authorization_server::AuthorizationServer;
use capstan_config::{Auth, AuthProvider, Config, Gateway, JwtAlgorithm, JwtAuth};
use capstan_gateway::http::{
    Authentication, Authenticator, Body, Bound, HttpRequest, PublicEndpoint, RemotePeer, Routes,
    Unauthenticated,
};
use capstan_hub::ports::{AuditLog, BoxFuture, Clock};
use capstan_hub::{Entry, HubBuilder, Outcome};
use capstan_model::{Caller, ErrorCode, Kind};
use capstan_store::Database;
use hyper::Response;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, HOST,
    HeaderValue,
};
use hyper::http::request::Parts;
use hyper::http::{Method, StatusCode};

use super::own_authorization;
use crate::adapters::Adapters;

/// Subjects that are named at the start.
const MAX_NAMED: usize = 5;

/// The paths of the gateway's resources, each with the path of its metadata.
const RESOURCES: [(&str, &str); 5] = [
    ("", "/.well-known/oauth-protected-resource"),
    ("/mcp", "/.well-known/oauth-protected-resource/mcp"),
    ("/sse", "/.well-known/oauth-protected-resource/sse"),
    ("/servers/{}/mcp", "/.well-known/oauth-protected-resource/servers/{}/mcp"),
    ("/servers/{}/sse", "/.well-known/oauth-protected-resource/servers/{}/sse"),
];

/// Authenticates the callers of the gateway.
pub(super) struct GatewayAuth {
    chain: Chain,
    authorities: Authorities,
    /// The configured address; without one, it is the host that a request names.
    public: Option<PublicAddress>,
    scheme: &'static str,
    ways: Vec<String>,
    /// The gateway's own authorization server.
    own: Option<Arc<AuthorizationServer>>,
}

/// Writes logins and refusals to the audit log.
pub(super) struct AuditLogins {
    log: Arc<dyn AuditLog>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Serves the metadata of one resource, or of those that a pattern matches.
struct Metadata {
    auth: Arc<GatewayAuth>,
    resource: &'static str,
}

// === impl GatewayAuth ===

impl GatewayAuth {
    /// Builds the chain of the configuration; `None` if it has none.
    pub(super) async fn new(
        adapters: &Adapters,
        config: &Config,
        bound: &Bound,
        hub: &HubBuilder,
    ) -> Result<Option<Arc<Self>>, AppError> {
        let gateway = &config.gateway;
        let Some(auth) = gateway.auth.as_ref().filter(|auth| !auth.providers.is_empty()) else {
            return Ok(None);
        };
        let clock = Arc::clone(&hub.clock);
        let observer = AuditLogins::new(hub);
        let own = own_authorization::start(adapters, gateway, bound, Arc::clone(&observer)).await?;
        let mut chain = Chain::new(Arc::clone(&clock), observer);
        for provider in &auth.providers {
            chain = match provider {
                AuthProvider::None => chain.with_none(),
                AuthProvider::Bearer => {
                    chain.with_bearer(static_tokens(auth)).map_err(|subject| {
                        AppError::config(format!(
                            "`gateway.auth.bearer` has the subject `{subject}`"
                        ))
                        .hint("use a short name without control characters")
                    })?
                }
                AuthProvider::Tokens => {
                    let tokens = Arc::<Database>::clone(&adapters.database);
                    chain.with(Issued::new(tokens, Arc::clone(&clock)))
                }
                AuthProvider::Forwarded => chain.with(forwarded(auth)?),
                AuthProvider::Jwt => chain.with(jwt(gateway, auth, &clock)?),
                AuthProvider::OauthAs => {
                    let own = own.as_deref().ok_or_else(no_server)?;
                    let verifier = own_authorization::verifier(own);
                    chain.with(OwnServer::new(verifier, Arc::clone(&clock)))
                }
            };
        }
        Ok(Some(Arc::new(Self {
            chain,
            authorities: authorities(own.as_deref(), auth),
            public: public(gateway, own.as_deref()),
            scheme: bound.scheme(),
            ways: auth.providers.iter().map(|one| way(*one, own.as_deref(), auth)).collect(),
            own,
        })))
    }

    /// The ways in which callers authenticate, in words; empty if everyone may connect.
    pub(super) fn ways(&self) -> Vec<String> {
        self.ways.clone()
    }

    /// Deletes what the authorization server no longer needs, until it is dropped.
    pub(super) async fn maintain(self: Arc<Self>) {
        if let Some(own) = &self.own {
            own.maintain().await;
        }
    }

    /// Mounts the authorization server, and the metadata of all resources if there is an issuer of
    /// tokens.
    pub(super) fn mount(self: &Arc<Self>, routes: Routes) -> Routes {
        let routes = match &self.own {
            Some(own) => own_authorization::mount(routes, own),
            None => routes,
        };
        if self.authorities.issuers.is_empty() {
            return routes;
        }
        RESOURCES.into_iter().fold(routes, |routes, (resource, path)| {
            routes.open(path, Metadata { auth: Arc::clone(self), resource })
        })
    }

    /// The address of the gateway, as clients reach it.
    ///
    /// The host of a request was checked before: it is one that the operator allows.
    fn address(&self, head: &Parts) -> Option<PublicAddress> {
        if let Some(public) = &self.public {
            return Some(public.clone());
        }
        let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
        PublicAddress::parse(&format!("{}://{}", self.scheme, host?))
    }

    fn refusal(&self, refused: Refused, head: &Parts) -> Unauthenticated {
        match refused {
            Refused::TooManyAttempts(retry_after) => {
                return Unauthenticated::TooManyAttempts { retry_after };
            }
            Refused::Credentials(Refusal::Unavailable) => return Unauthenticated::Unavailable,
            Refused::Credentials(Refusal::Missing | Refusal::Invalid) => {}
        }
        let challenge = match self.address(head) {
            Some(address) => self.authorities.challenge(refused, &address, head.uri.path()),
            None => "Bearer realm=\"capstan\"".to_owned(),
        };
        let plain = HeaderValue::from_static("Bearer realm=\"capstan\"");
        Unauthenticated::Challenge(HeaderValue::try_from(challenge).unwrap_or(plain))
    }
}

impl Authenticator for GatewayAuth {
    fn authenticate<'a>(&'a self, head: &'a Parts, from: &'a RemotePeer) -> Authentication<'a> {
        match self.chain.authenticate(&head.headers, from.address, &from.anonymous) {
            Authenticating::Ready(Ok(caller)) => Authentication::Ready(Ok(caller)),
            Authenticating::Ready(Err(refused)) => {
                Authentication::Ready(Err(self.refusal(refused, head)))
            }
            Authenticating::Wait(answer) => Authentication::Wait(Box::pin(async move {
                answer.await.map_err(|refused| self.refusal(refused, head))
            })),
        }
    }
}

fn static_tokens(auth: &Auth) -> impl Iterator<Item = StaticToken> {
    auth.bearer.iter().map(|one| {
        let identity = Identity { subject: one.subject.clone(), roles: one.roles.clone() };
        StaticToken { token: one.token.clone(), identity }
    })
}

fn forwarded(auth: &Auth) -> Result<Forwarded, AppError> {
    let settings = ForwardedSettings {
        header: auth.forwarded.header.clone(),
        groups_header: auth.forwarded.groups_header.clone(),
        trusted: auth.forwarded.trusted_source_cidrs.clone(),
    };
    Forwarded::new(&settings).map_err(|name| {
        AppError::config(format!("`gateway.auth.forwarded`: `{name}` is no name of a header"))
    })
}

fn jwt(gateway: &Gateway, auth: &Auth, clock: &Arc<dyn Clock>) -> Result<Jwt, AppError> {
    let missing = || AppError::config("`jwt` needs `gateway.auth.jwt` with an `issuer`");
    let jwt = auth.jwt.as_ref().ok_or_else(missing)?;
    let settings = JwtSettings {
        issuer: jwt.issuer.clone().ok_or_else(missing)?,
        jwks_url: jwt.jwks_url.clone(),
        audience: audience(gateway, jwt),
        algorithms: jwt.algorithms.iter().map(|one| algorithm(*one)).collect(),
        subject_claim: jwt.subject_claim.clone(),
        roles_claim: jwt.roles_claim.clone(),
        required_claims: jwt.required_claims.clone().into_iter().collect(),
        access_tokens: if jwt.access_tokens_only {
            AccessTokenType::Strict
        } else {
            AccessTokenType::Any
        },
        leeway: jwt.leeway,
        networks: jwt.networks.clone(),
    };
    Jwt::new(settings, Arc::clone(clock))
        .map_err(|why| AppError::config(format!("`gateway.auth.jwt.issuer` cannot be used: {why}")))
}

/// The audiences of tokens: those of the configuration, or every resource of this gateway.
fn audience(gateway: &Gateway, jwt: &JwtAuth) -> Vec<String> {
    if !jwt.audience.is_empty() {
        return jwt.audience.clone();
    }
    let public = gateway.public_url.as_deref().and_then(PublicAddress::parse);
    public.map(|public| public.resource("/*")).into_iter().collect()
}

fn algorithm(algorithm: JwtAlgorithm) -> Algorithm {
    match algorithm {
        JwtAlgorithm::Rs256 => Algorithm::RS256,
        JwtAlgorithm::Rs384 => Algorithm::RS384,
        JwtAlgorithm::Rs512 => Algorithm::RS512,
        JwtAlgorithm::Ps256 => Algorithm::PS256,
        JwtAlgorithm::Ps384 => Algorithm::PS384,
        JwtAlgorithm::Ps512 => Algorithm::PS512,
        JwtAlgorithm::Es256 => Algorithm::ES256,
        JwtAlgorithm::Es384 => Algorithm::ES384,
        JwtAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}

fn no_server() -> AppError {
    AppError::config("`oauth_as` needs `gateway.auth.oauth_as`, which is missing")
}

/// The configured address of the gateway; that of its own authorization server if there is none.
fn public(gateway: &Gateway, own: Option<&AuthorizationServer>) -> Option<PublicAddress> {
    let address = gateway.public_url.as_deref().or_else(|| own.map(AuthorizationServer::issuer));
    address.and_then(PublicAddress::parse)
}

/// The issuers of tokens that clients can ask.
fn authorities(own: Option<&AuthorizationServer>, auth: &Auth) -> Authorities {
    let mut authorities = Authorities::default();
    for provider in &auth.providers {
        match provider {
            AuthProvider::Jwt => {
                let issuer = auth.jwt.as_ref().and_then(|jwt| jwt.issuer.clone());
                authorities.issuers.extend(issuer);
            }
            AuthProvider::OauthAs => {
                let Some(server) = &auth.oauth_as else { continue };
                authorities.issuers.extend(own.map(|own| own.issuer().to_owned()));
                authorities.scopes.extend(server.scopes_supported.iter().cloned());
            }
            AuthProvider::None
            | AuthProvider::Bearer
            | AuthProvider::Tokens
            | AuthProvider::Forwarded => {}
        }
    }
    authorities
}

/// A way to authenticate, in words.
fn way(provider: AuthProvider, own: Option<&AuthorizationServer>, auth: &Auth) -> String {
    match provider {
        AuthProvider::None => "nothing at all (as `anonymous`)".to_owned(),
        AuthProvider::Bearer => {
            let subjects: Vec<&str> = auth.bearer.iter().map(|one| one.subject.as_str()).collect();
            let named = subjects.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
            match subjects.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
                Some(more) => format!("a configured token (as {named} and {more} more)"),
                None => format!("a configured token (as {named})"),
            }
        }
        AuthProvider::Tokens => "a token of `capstan auth token create`".to_owned(),
        AuthProvider::Forwarded => {
            let networks = auth.forwarded.trusted_source_cidrs.iter().map(ToString::to_string);
            let networks = networks.collect::<Vec<_>>().join(", ");
            format!("the header `{}` of a proxy in {networks}", auth.forwarded.header)
        }
        AuthProvider::Jwt => {
            let issuer = auth.jwt.as_ref().and_then(|jwt| jwt.issuer.as_deref());
            format!("a token of {}", issuer.unwrap_or_default())
        }
        AuthProvider::OauthAs => {
            let issuer = own.map(AuthorizationServer::issuer).unwrap_or_default();
            format!("a token of this gateway ({issuer})")
        }
    }
}

// === impl Metadata ===

impl PublicEndpoint for Metadata {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        let path = self.resource.replace("{}", &request.segment);
        let address = self.auth.address(&request.head);
        let metadata = address.and_then(|address| self.auth.authorities.metadata(&address, &path));
        let (status, body) = match metadata {
            _ if request.head.method == Method::OPTIONS => (StatusCode::NO_CONTENT, Bytes::new()),
            _ if ![Method::GET, Method::HEAD].contains(&request.head.method) => {
                (StatusCode::METHOD_NOT_ALLOWED, Bytes::new())
            }
            Some(metadata) => (StatusCode::OK, Bytes::from(metadata.to_string())),
            None => (StatusCode::NOT_FOUND, Bytes::new()),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
        // Clients in a browser read it too; it is the same for all.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers
            .insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("mcp-protocol-version"));
        Box::pin(std::future::ready(response))
    }
}

// === impl AuditLogins ===

impl AuditLogins {
    pub(super) fn new(hub: &HubBuilder) -> Arc<Self> {
        Arc::new(Self { log: Arc::clone(&hub.audit), clock: Arc::clone(&hub.clock) })
    }

    pub(super) fn record(
        &self,
        caller: Arc<Caller>,
        method: &'static str,
        item: String,
        outcome: Outcome,
    ) {
        self.log.record(Entry {
            time: self.clock.now(),
            caller,
            kind: Kind::Tool,
            method: Some(method),
            server: None,
            item,
            effect: None,
            verdict: None,
            rule: None,
            approval: None,
            arguments: None,
            outcome,
            duration: Duration::ZERO,
            request_bytes: 0,
            answer_bytes: 0,
        });
    }
}

impl Observer for AuditLogins {
    fn accepted(&self, caller: &Arc<Caller>, provider: &'static str, from: IpAddr) {
        let item = format!("{provider} from {from}");
        self.record(Arc::clone(caller), "auth/login", item, Outcome::Answered);
    }

    fn refused(&self, refused: Refused, from: IpAddr) {
        let (item, code) = match refused {
            Refused::Credentials(_) => {
                (format!("wrong credentials from {from}"), ErrorCode::AuthFailure)
            }
            Refused::TooManyAttempts(_) => {
                (format!("too many attempts from {from}"), ErrorCode::RateLimited)
            }
        };
        let caller = Arc::new(Caller::stranger(Some(from)));
        self.record(caller, "auth/failure", item, Outcome::Failed(code));
    }
}
