//! Requests tokens, and reads the answers.

use capstan_hub::ports::Clock;
use capstan_model::Secret;
use serde_json::Value;

use crate::client::Client;
use crate::discovery::Discovered;
use crate::entry::Entry;
use crate::error::LoginError;
use crate::settings::OAuthSettings;
use crate::web::{Endpoint, Form, Web};

/// The longest lifetime that is believed, in seconds: ten years.
const LONGEST: i64 = 10 * 365 * 24 * 3600;

/// The longest token that is stored, in bytes.
const MAX_TOKEN: usize = 256 * 1024;

/// Requests tokens for one server.
#[derive(Clone, Copy)]
pub(crate) struct TokenRequest<'a> {
    pub(crate) web: &'a Web,
    pub(crate) settings: &'a OAuthSettings,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) to: &'a Endpoint,
    pub(crate) client: &'a Client,
    /// The audience of a signed token: the issuer, else the endpoint.
    pub(crate) issuer: Option<&'a str>,
}

/// Tokens that were granted.
#[derive(Clone)]
pub(crate) struct Granted {
    pub(crate) access: Secret<String>,
    pub(crate) refresh: Option<Secret<String>>,
    /// The scopes, if the answer names them.
    pub(crate) scopes: Option<Vec<String>>,
    /// The time of expiry, in seconds since 1970; `None` if it is not known.
    pub(crate) expires: Option<i64>,
    /// The person, as the ID token names them. Shown only.
    pub(crate) account: Option<String>,
}

// === impl TokenRequest ===

impl TokenRequest<'_> {
    /// Sends a request for tokens.
    pub(crate) async fn send(&self, mut form: Form) -> Result<Granted, LoginError> {
        let body = self.exchange(&mut form).await?;
        Granted::read(&body, self.clock).ok_or_else(|| self.to.unusable("it has no bearer token"))
    }

    /// Sends a request to the token endpoint and returns the answer if it is no error.
    pub(crate) async fn exchange(&self, form: &mut Form) -> Result<Value, LoginError> {
        let audience = self.issuer.unwrap_or(self.to.url().as_str());
        let header = self.client.authenticate(form, self.settings, audience, self.clock)?;
        let answer = self.web.post(self.to, form, header).await?;
        match answer.error(self.to) {
            Some(error) => Err(error),
            None => Ok(answer.body),
        }
    }

    /// Requests new tokens with a refresh token.
    pub(crate) async fn refresh(
        &self,
        entry: &Entry,
        refresh: &Secret<String>,
    ) -> Result<Granted, LoginError> {
        let mut form = Form::new("grant_type", "refresh_token");
        form.add("refresh_token", refresh.reveal());
        form.add("resource", &entry.resource);
        self.send(form).await
    }
}

/// The form of a request for tokens: the grant, the resource and the audience.
pub(crate) fn form(grant: &str, discovered: &Discovered, settings: &OAuthSettings) -> Form {
    let mut form = Form::new("grant_type", grant);
    form.add("resource", &discovered.resource);
    for audience in &settings.audience {
        form.add("audience", audience);
    }
    form
}

// === impl Granted ===

impl Granted {
    /// Tokens that another program was granted; `None` if they cannot be sent.
    pub(crate) fn imported(
        access: Secret<String>,
        refresh: Option<Secret<String>>,
        expires: Option<i64>,
    ) -> Option<Self> {
        let all = [Some(&access), refresh.as_ref()];
        let is_usable = all.into_iter().flatten().all(|token| can_be_sent(token.reveal()));
        is_usable.then_some(Self { access, refresh, scopes: None, expires, account: None })
    }

    fn read(body: &Value, clock: &dyn Clock) -> Option<Self> {
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        let access = text("access_token").filter(|token| can_be_sent(token))?;
        if !text("token_type").unwrap_or("bearer").eq_ignore_ascii_case("bearer") {
            return None;
        }
        let scopes = text("scope").map(|scopes| {
            let separated = scopes.split([' ', ',']).filter(|scope| !scope.is_empty());
            separated.map(ToOwned::to_owned).collect()
        });
        // Some servers write the number as text.
        let lasts = body.get("expires_in").and_then(|lasts| {
            lasts.as_i64().or_else(|| whole_seconds(&lasts.to_string().replace('"', "")))
        });
        let now = clock.now().as_second();
        // A token that has never been valid would only be asked for again and again.
        let lasts = lasts.filter(|lasts| *lasts > 0);
        Some(Self {
            access: Secret::new(access.to_owned()),
            refresh: text("refresh_token")
                .filter(|token| can_be_sent(token))
                .map(|token| Secret::new(token.to_owned())),
            scopes,
            expires: lasts.map(|lasts| now.saturating_add(lasts.min(LONGEST))),
            account: text("id_token").and_then(account),
        })
    }
}

/// True if a token can be part of a request.
fn can_be_sent(token: &str) -> bool {
    !token.is_empty() && token.len() <= MAX_TOKEN && token.chars().all(|c| c.is_ascii_graphic())
}

/// The person that an ID token names. It is shown only, so its signature is not checked.
fn account(token: &str) -> Option<String> {
    use base64::Engine as _;
    let claims = token.split('.').nth(1)?;
    let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let name = ["email", "preferred_username", "name", "sub"]
        .iter()
        .find_map(|key| claims.get(key)?.as_str());
    name.map(crate::web::words)
}

/// The whole seconds of a number such as `3600.0`.
fn whole_seconds(text: &str) -> Option<i64> {
    text.trim().split('.').next()?.parse().ok()
}
