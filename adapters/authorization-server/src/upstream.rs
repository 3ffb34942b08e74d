//! Sign-in of users at an OpenID Connect provider, after they have agreed on the page.
//!
//! **Invariant:** the answer of the provider counts once, in the browser in which the user agreed,
//! and for the request that the user agreed to.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_http::StatusCode;
use capstan_http::header::COOKIE;
use capstan_hub::ports::BoxFuture;
use sha2::{Digest, Sha256};

use crate::authorize::{Asked, Stopped, capitalized, shown};
use crate::events::Event;
use crate::form_token;
use crate::http::{Endpoint, Request, Response};
use crate::params::Params;
use crate::random;
use crate::server::AuthorizationServer;
use crate::settings::SignIn;
use crate::sign_in::{MAX_NAME, User};

/// Time for which a sign-in may take.
const VALID_FOR: Duration = Duration::from_mins(10);

/// Most sign-ins that wait at the same time.
const MAX_WAITING: usize = 1000;

/// The port to an OpenID Connect provider.
pub trait Upstream: Send + Sync {
    /// The address of its page for a sign-in.
    fn page<'a>(&'a self, sign_in: &'a UpstreamSignIn) -> BoxFuture<'a, Result<String, String>>;

    /// The user who signed in, for the code that came back.
    fn user<'a>(
        &'a self,
        sign_in: &'a UpstreamSignIn,
        code: &'a str,
    ) -> BoxFuture<'a, Result<UpstreamUser, String>>;
}

/// A provider, and its name for users.
#[derive(Clone)]
pub struct UpstreamProvider {
    /// The issuer, which answers must name if they name one.
    pub issuer: String,
    /// The provider.
    pub provider: Arc<dyn Upstream>,
}

/// The values of one sign-in.
#[derive(Clone)]
pub struct UpstreamSignIn {
    /// The value that comes back with the browser.
    pub state: String,
    /// The value that the ID token must have.
    pub nonce: String,
    /// The verifier of PKCE.
    pub verifier: String,
    /// The callback.
    pub redirect_uri: String,
}

/// A user as the provider names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamUser {
    /// The name.
    pub subject: String,
    /// The roles.
    pub roles: Vec<String>,
}

/// The sign-ins that wait for their users.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<String, Waiting>>);

struct Waiting {
    sign_in: UpstreamSignIn,
    /// The query of the request that the user agreed to.
    query: String,
    /// The cookie of the page.
    cookie: String,
    expires: Duration,
}

// === impl UpstreamProvider ===

impl fmt::Debug for UpstreamProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UpstreamProvider").field(&self.issuer).finish()
    }
}

// === impl UpstreamSignIn ===

impl UpstreamSignIn {
    /// The S256 challenge of the verifier.
    pub fn challenge(&self) -> String {
        random::encode(&Sha256::digest(self.verifier.as_bytes()))
    }
}

// === impl SignIns ===

impl SignIns {
    /// The query and the cookie of a sign-in that waits.
    fn find(&self, state: &str, now: Duration) -> Option<(String, String)> {
        let all = self.all();
        let waiting = all.get(state).filter(|waiting| waiting.expires > now)?;
        let found = (waiting.query.clone(), waiting.cookie.clone());
        drop(all);
        Some(found)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl AuthorizationServer ===

impl AuthorizationServer {
    /// Sends a user who agreed to the provider.
    pub(crate) async fn begin_upstream(
        &self,
        upstream: &UpstreamProvider,
        request: &Request,
        cookie: &str,
    ) -> Result<Response, Stopped> {
        let random = || random::text().map_err(|error| self.no_keys(&error.into()));
        let sign_in = UpstreamSignIn {
            state: random()?,
            nonce: random()?,
            verifier: random()?,
            redirect_uri: format!("{}{}", self.settings.issuer, Endpoint::Callback.path()),
        };
        let page = upstream.provider.page(&sign_in).await.map_err(|reason| {
            tracing::warn!(reason, "the sign-in provider cannot be used");
            unavailable()
        })?;
        let now = self.ports.clock.monotonic();
        let mut all = self.sign_ins.all();
        all.retain(|_, waiting| waiting.expires > now);
        if all.len() >= MAX_WAITING {
            return Err(unavailable());
        }
        let (query, cookie) = (request.query.clone(), cookie.to_owned());
        let expires = now.saturating_add(VALID_FOR);
        all.insert(sign_in.state.clone(), Waiting { sign_in, query, cookie, expires });
        drop(all);
        Ok(Response::redirect(&page))
    }

    /// Takes the answer of the provider.
    pub(crate) async fn callback(&self, request: &Request) -> Result<Response, Stopped> {
        let SignIn::Upstream(upstream) = &self.settings.sign_in else {
            let words = "There is no such page.".to_owned();
            return Err(Stopped::Shown(StatusCode::NOT_FOUND, "not_found", words));
        };
        let params = Params::parse(request.query.as_bytes())
            .map_err(|error| shown("invalid_request", &format!("{error}.")))?;
        let other = || {
            shown(
                "invalid_request",
                "This sign-in was not begun in this browser, or took too long.",
            )
        };
        let state = params.get("state").ok_or_else(other)?;
        let now = self.ports.clock.monotonic();
        let (asked, waiting) = {
            let found = self.sign_ins.find(state, now);
            let (query, expected) = found.ok_or_else(other)?;
            let asked = self.check(&Request { query, ..request.clone() }).await?;
            let name = form_token::cookie_name(&asked.client.id);
            let cookies = request.header(COOKIE.as_str()).unwrap_or_default();
            if form_token::cookie(cookies, &name) != Some(expected.as_str()) {
                return Err(other());
            }
            // Whatever the answer says, it counts once.
            let waiting = self.sign_ins.all().remove(state).ok_or_else(other)?;
            (asked, waiting)
        };
        if params.get("iss").is_some_and(|issuer| issuer != upstream.issuer) {
            return Err(self.refused(request, "the answer names another issuer"));
        }
        let code = match (params.get("code"), params.get("error")) {
            (Some(code), None) => code,
            (_, Some("access_denied")) => return Ok(self.declined(request, &asked)),
            _ => return Err(self.refused(request, "the answer has no code")),
        };
        let user = upstream.provider.user(&waiting.sign_in, code).await;
        let user = user.map_err(|reason| self.refused(request, &reason))?;
        let user =
            named(user).ok_or_else(|| self.refused(request, "the user has no usable name"))?;
        self.grant(&asked, user).await
    }

    fn declined(&self, request: &Request, asked: &Asked) -> Response {
        self.record(Event::Denied { client: &asked.client.id, peer: request.peer });
        self.send_error(asked, "access_denied", "the user did not sign in")
    }

    fn refused(&self, request: &Request, reason: &str) -> Stopped {
        // The reason may quote the provider, and is for the operator.
        tracing::warn!(reason, "a user could not sign in at the provider");
        self.record(Event::SignInRefused { peer: request.peer });
        let words = capitalized("the sign-in provider did not name a user who may sign in here.");
        Stopped::Shown(StatusCode::FORBIDDEN, "access_denied", words)
    }
}

/// The user of the provider, unless the name is one that callers cannot have.
fn named(user: UpstreamUser) -> Option<User> {
    let UpstreamUser { subject, roles } = user;
    let is_usable = !subject.is_empty()
        && subject.len() <= MAX_NAME
        && !subject.chars().any(char::is_control)
        && !["operator", "anonymous"].contains(&subject.as_str());
    let roles =
        roles.into_iter().filter(|role| !role.is_empty() && !role.contains(char::is_control));
    is_usable.then(|| User { subject, roles: roles.collect() })
}

fn unavailable() -> Stopped {
    let words = "The sign-in provider cannot be reached. Try again later.".to_owned();
    Stopped::Shown(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", words)
}
