//! The authorization endpoint: shows the question about a client, and issues a code after a yes.
//!
//! Every authorization is asked about; no earlier answer is remembered. A request with a wrong
//! client, redirect address, PKCE challenge or resource gets a page and no redirect, so that
//! nobody can use the endpoint to send a browser elsewhere (RFC 9700, section 4.11.2).

use capstan_http::header::{COOKIE, HeaderValue, ORIGIN, SET_COOKIE};
use capstan_http::{Method, StatusCode};
use capstan_hub::ports::{ClientSource, StoredClient, StoredCode, StoredGrant};
use capstan_model::Secret;
use url::Url;

use crate::consent::{self, Question};
use crate::documents;
use crate::error::OauthError;
use crate::events::Event;
use crate::form_token::{self, FormBinding, VALID_FOR};
use crate::http::{Request, Response};
use crate::params::Params;
use crate::random;
use crate::redirect;
use crate::register::{MAX_CLIENTS, USED_FOR};
use crate::server::AuthorizationServer;
use crate::settings::SignIn;
use crate::sign_in::{NotNamed, NotSignedIn, User};

/// Longest `state` of a client, in bytes.
const MAX_STATE: usize = 4096;

/// The length of a S256 challenge: 32 bytes in base64url.
const CHALLENGE: usize = 43;

/// An authorization request that was checked.
pub(crate) struct Asked {
    pub(crate) client: StoredClient,
    redirect_uri: String,
    state: Option<String>,
    challenge: String,
    scopes: Vec<String>,
    resource: String,
}

/// The reason why a request is not continued.
pub(crate) enum Stopped {
    /// Shown to the user.
    Shown(StatusCode, &'static str, String),
    /// Reported to the client.
    Sent(Box<Response>),
}

impl From<OauthError> for Stopped {
    fn from(error: OauthError) -> Self {
        Self::Shown(error.status, error.code, error.description)
    }
}

// === impl AuthorizationServer ===

impl AuthorizationServer {
    pub(crate) async fn authorize(&self, request: &Request) -> Response {
        let answered = if request.method == Method::POST {
            self.decide(request).await
        } else {
            self.ask(request).await
        };
        page_of(answered)
    }

    /// Shows the question.
    async fn ask(&self, request: &Request) -> Result<Response, Stopped> {
        let user = self.named_user(request)?;
        let asked = self.check(request).await?;
        self.show(request, &asked, user.as_ref(), None).await
    }

    /// Acts on the user's answer.
    async fn decide(&self, request: &Request) -> Result<Response, Stopped> {
        let user = self.named_user(request)?;
        self.check_origin(request)?;
        let asked = self.check(request).await?;
        let form = request.is_form().then(|| Params::parse(&request.body).ok()).flatten();
        let form = form.ok_or_else(|| shown("invalid_request", "The form is not complete."))?;
        let name = form_token::cookie_name(&asked.client.id);
        let cookies = request.header(COOKIE.as_str()).unwrap_or_default();
        let cookie = form_token::cookie(cookies, &name).unwrap_or_default();
        let ring = self.keys.ring().await.map_err(|error| self.no_keys(&error))?;
        let subject = user.as_ref().map_or("", |user| user.subject.as_str());
        let binding = FormBinding { cookie, query: &request.query, subject };
        let token = form.get("form_token").unwrap_or_default();
        if cookie.is_empty() || !binding.accepts(token, &ring.form, self.ports.clock.now()) {
            return Err(shown(
                "invalid_request",
                "The page was too old, or was opened in another browser, or cookies are blocked.",
            ));
        }
        match form.get("decision") {
            Some("allow") => {}
            Some("deny") => {
                self.record(Event::Denied { client: &asked.client.id, peer: request.peer });
                let words = "the user did not agree";
                return Ok(self.send_error(&asked, "access_denied", words));
            }
            _ => return Err(shown("invalid_request", "The form is not complete.")),
        }
        if let SignIn::Upstream(upstream) = &self.settings.sign_in {
            return self.begin_upstream(upstream, request, cookie).await;
        }
        let user = match user {
            Some(user) => user,
            None => match self.sign_in(request, &form).await? {
                Ok(user) => user,
                Err(problem) => {
                    let typed = form.get("user").unwrap_or_default();
                    let again = Some((problem.as_str(), typed));
                    return self.show(request, &asked, None, again).await;
                }
            },
        };
        self.grant(&asked, user).await
    }

    /// Checks a name and a password. The inner error is for the user to see.
    async fn sign_in(
        &self,
        request: &Request,
        form: &Params,
    ) -> Result<Result<User, String>, Stopped> {
        let name = form.get("user").unwrap_or_default().trim();
        let password = Secret::new(form.get("password").unwrap_or_default().to_owned());
        let users = &*self.ports.store;
        match self.passwords.check(users, name, password, request.peer).await {
            Ok(user) => Ok(Ok(user)),
            Err(NotSignedIn::Store(error)) => Err(OauthError::from(error).into()),
            Err(refused @ (NotSignedIn::Wrong | NotSignedIn::TooMany)) => {
                self.record(Event::SignInRefused { peer: request.peer });
                let words = refused.to_string();
                Ok(Err(capitalized(&words)))
            }
        }
    }

    /// The user that the proxy names; `None` where users type a password.
    fn named_user(&self, request: &Request) -> Result<Option<User>, Stopped> {
        let SignIn::Proxy(proxy) = &self.settings.sign_in else { return Ok(None) };
        proxy.user(request).map(Some).map_err(|error| {
            self.record(Event::SignInRefused { peer: request.peer });
            let (status, code) = match error {
                NotNamed::Elsewhere => (StatusCode::FORBIDDEN, "access_denied"),
                NotNamed::Nobody => (StatusCode::UNAUTHORIZED, "login_required"),
            };
            Stopped::Shown(status, code, format!("{}.", capitalized(&error.to_string())))
        })
    }

    /// Refuses a form that another site sent.
    fn check_origin(&self, request: &Request) -> Result<(), Stopped> {
        // The page sends no referrer, and therefore the origin `null`.
        let origin = request.headers.get(ORIGIN).map(HeaderValue::as_bytes);
        let is_own = match origin {
            None | Some(b"null") => true,
            Some(origin) => origin == self.settings.issuer.as_bytes(),
        };
        let site = request.header("sec-fetch-site").unwrap_or("same-origin");
        if is_own && matches!(site, "same-origin" | "none") {
            return Ok(());
        }
        let words = "The form was sent by another site.".to_owned();
        Err(Stopped::Shown(StatusCode::FORBIDDEN, "invalid_request", words))
    }

    /// Checks a request, in the order in which its parts can be trusted.
    pub(crate) async fn check(&self, request: &Request) -> Result<Asked, Stopped> {
        let params = Params::parse(request.query.as_bytes())
            .map_err(|error| shown("invalid_request", &format!("{error}.")))?;
        let id = params.get("client_id");
        let id = id.ok_or_else(|| shown("invalid_request", "The app did not say who it is."))?;
        let client = self.find_client(id).await?;
        let uri = params.get("redirect_uri").unwrap_or_default();
        let is_registered =
            client.redirect_uris.iter().any(|own| redirect::is_registered(own, uri));
        if !is_registered || redirect::check(uri, &self.settings.redirects).is_err() {
            return Err(shown(
                "invalid_request",
                "The app wants the answer at an address that it has not registered.",
            ));
        }
        let challenge = params.get("code_challenge").filter(|text| is_challenge(text));
        let method = params.get("code_challenge_method");
        let (Some(challenge), Some("S256")) = (challenge, method) else {
            let words = "The app does not use PKCE with S256, which protects the answer.";
            return Err(shown("invalid_request", words));
        };
        let resource = match params.get("resource") {
            None => Some(self.settings.resource()),
            Some(asked) => self.settings.own_resource(asked),
        };
        let Some(resource) = resource else {
            let words = "The app asks for access to something that is not here.";
            return Err(shown("invalid_target", words));
        };
        let state = params.get("state").map(ToOwned::to_owned);
        if state.as_ref().is_some_and(|state| state.len() > MAX_STATE) {
            return Err(shown("invalid_request", "The request of the app is too long."));
        }
        let asked_scopes: Vec<&str> =
            params.get("scope").unwrap_or_default().split_ascii_whitespace().collect();
        let known = self.settings.scopes.iter();
        let scopes = known.filter(|scope| asked_scopes.contains(&scope.as_str())).cloned();
        let asked = Asked {
            client,
            redirect_uri: uri.to_owned(),
            state,
            challenge: challenge.to_owned(),
            scopes: scopes.collect(),
            resource,
        };
        self.check_kind(&params, &asked)?;
        Ok(asked)
    }

    /// Reports to the client that it wants something that is not offered.
    fn check_kind(&self, params: &Params, asked: &Asked) -> Result<(), Stopped> {
        let refused =
            |code, words| Err(Stopped::Sent(Box::new(self.send_error(asked, code, words))));
        if params.get("response_type") != Some("code") {
            return refused("unsupported_response_type", "`response_type` must be `code`");
        }
        if params.get("response_mode").is_some_and(|mode| mode != "query") {
            return refused("invalid_request", "`response_mode` must be `query`");
        }
        if params.get("request").is_some() {
            return refused("request_not_supported", "request objects are not supported");
        }
        if params.get("request_uri").is_some() {
            return refused("request_uri_not_supported", "request objects are not supported");
        }
        if params.get("prompt") == Some("none") {
            return refused("interaction_required", "the user is always asked");
        }
        Ok(())
    }

    /// Finds a client by its id or by its document.
    async fn find_client(&self, id: &str) -> Result<StoredClient, Stopped> {
        let now = self.ports.clock.now();
        let unknown = |words: &str| shown("invalid_client", words);
        if !documents::is_url(id) {
            let client = self.ports.store.client(id, now).await.map_err(OauthError::from)?;
            return client.ok_or_else(|| {
                unknown("The app is not known here, or no longer. It has to register again.")
            });
        }
        if !documents::is_document_url(id) {
            return Err(unknown("The app's id is not the address of its description."));
        }
        let document = self.documents.find(id).await.map_err(|reason| {
            // The reason may describe the network here, which is for the operator only.
            tracing::info!(client = ?id, reason, "the document of a client cannot be used");
            unknown("The description of the app cannot be read.")
        })?;
        Ok(StoredClient {
            id: id.to_owned(),
            name: document.name.clone(),
            redirect_uris: document.redirect_uris.clone(),
            source: ClientSource::Document,
            created_at: now,
            used_at: now,
            expires_at: now.checked_add(USED_FOR).unwrap_or(now),
        })
    }

    /// Shows the question, again if there was a problem with the name that was typed.
    async fn show(
        &self,
        request: &Request,
        asked: &Asked,
        user: Option<&User>,
        again: Option<(&str, &str)>,
    ) -> Result<Response, Stopped> {
        let ring = self.keys.ring().await.map_err(|error| self.no_keys(&error))?;
        let cookie = random::text().map_err(|error| self.no_keys(&error.into()))?;
        let subject = user.map(|user| user.subject.as_str());
        let binding = FormBinding {
            cookie: &cookie,
            query: &request.query,
            subject: subject.unwrap_or_default(),
        };
        let token = binding.token(&ring.form, self.ports.clock.now());
        let host = match asked.client.source {
            ClientSource::Document => Some(redirect::shown_host(&asked.client.id)),
            ClientSource::Registered | ClientSource::Imported => None,
        };
        let question = Question {
            client_name: asked.client.name.as_deref(),
            client_host: host.as_deref(),
            redirect_host: &redirect::shown_host(&asked.redirect_uri),
            is_local: redirect::is_local(&asked.redirect_uri),
            scopes: &asked.scopes,
            resource: &asked.resource,
            user: subject,
            provider: self.provider(),
            typed_name: again.map_or("", |(_, typed)| typed),
            query: &request.query,
            token: &token,
            problem: again.map(|(problem, _)| problem),
        };
        let status = if again.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
        let cookie = format!(
            "{}={cookie}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}",
            form_token::cookie_name(&asked.client.id),
            VALID_FOR.as_secs()
        );
        let response = question.response(status);
        Ok(match HeaderValue::from_str(&cookie) {
            Ok(cookie) => response.with(SET_COOKIE, cookie),
            Err(_) => response,
        })
    }

    /// The host of the provider at which users sign in.
    fn provider(&self) -> Option<&str> {
        match &self.settings.sign_in {
            SignIn::Upstream(upstream) => {
                let (_, rest) = upstream.issuer.split_once("://")?;
                rest.split('/').next()
            }
            SignIn::Proxy(_) | SignIn::Users => None,
        }
    }

    /// Issues a code.
    pub(crate) async fn grant(&self, asked: &Asked, user: User) -> Result<Response, Stopped> {
        let now = self.ports.clock.now();
        let expires_at = now.checked_add(self.settings.code_ttl).unwrap_or(now);
        let random = || random::text().map_err(|error| self.no_keys(&error.into()));
        let (code, id) = (random()?, random()?);
        let store = &self.ports.store;
        if asked.client.source == ClientSource::Document {
            // Known from here on, so that the operator can list and revoke it.
            let added = store.add_client(&asked.client, MAX_CLIENTS).await;
            added.map_err(OauthError::from)?;
        }
        let until = now.checked_add(USED_FOR).unwrap_or(now);
        let noted = store.use_client(&asked.client.id, now, until).await;
        noted.map_err(OauthError::from)?;
        let grant = StoredGrant {
            id: id.clone(),
            client: asked.client.id.clone(),
            subject: user.subject,
            roles: user.roles,
            scopes: asked.scopes.clone(),
            resource: asked.resource.clone(),
            expires_at,
            revoked: false,
        };
        let stored = StoredCode {
            digest: random::digest(&code),
            redirect_uri: asked.redirect_uri.clone(),
            challenge: asked.challenge.clone(),
            grant: id,
            expires_at,
        };
        store.add_code(&stored, &grant).await.map_err(OauthError::from)?;
        self.record(Event::Granted { subject: &grant.subject, client: &grant.client });
        Ok(self.send(asked, &[("code", &code)]))
    }

    pub(crate) fn send_error(&self, asked: &Asked, code: &str, words: &str) -> Response {
        self.send(asked, &[("error", code), ("error_description", words)])
    }

    /// Redirects to the client, with `state` and `iss` (RFC 9207).
    fn send(&self, asked: &Asked, params: &[(&str, &str)]) -> Response {
        let Ok(mut url) = Url::parse(&asked.redirect_uri) else {
            return Response::new(StatusCode::BAD_REQUEST);
        };
        {
            let mut query = url.query_pairs_mut();
            query.extend_pairs(params);
            if let Some(state) = &asked.state {
                query.append_pair("state", state);
            }
            query.append_pair("iss", &self.settings.issuer);
        }
        Response::redirect(url.as_str())
    }
}

/// The response to a request, or the page about the reason why it is not continued.
pub(crate) fn page_of(answered: Result<Response, Stopped>) -> Response {
    match answered {
        Ok(response) => response,
        Err(Stopped::Sent(response)) => *response,
        Err(Stopped::Shown(status, code, words)) => consent::problem(status, code, &words),
    }
}

/// A page about a request that is wrong.
pub(crate) fn shown(code: &'static str, words: &str) -> Stopped {
    Stopped::Shown(StatusCode::BAD_REQUEST, code, capitalized(words))
}

/// True for 32 bytes in base64url.
fn is_challenge(text: &str) -> bool {
    text.len() == CHALLENGE && random::decode(text).is_some_and(|bytes| bytes.len() == 32)
}

/// A sentence with a capital letter.
pub(crate) fn capitalized(words: &str) -> String {
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
