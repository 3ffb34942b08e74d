//! Logs in: finds the authorization server, chooses the client and the scopes, asks the person, and
//! exchanges the code.

use std::sync::Arc;
use std::time::Duration;

use capstan_http::Url;
use capstan_hub::ports::{Clock, LoginPerson, LoginStep, Vault};
use capstan_model::Secret;
use tokio::time::timeout;
use tracing::debug;

use crate::callback::{Brought, Callback, Outcome};
use crate::challenge::BearerChallenge;
use crate::client::{Choice, Client};
use crate::discovery::{Discovered, discover};
use crate::enterprise::{self, add_scopes};
use crate::entry::Entry;
use crate::error::LoginError;
use crate::login::ForeignTokens;
use crate::routes::CallbackRoutes;
use crate::settings::{Grant, OAuthSettings};
use crate::token::{self, Granted, TokenRequest};
use crate::web::{Web, is_code, words};
use crate::{device, document, random};

/// The scope that asks for a refresh token.
const OFFLINE: &str = "offline_access";

/// The largest number of attempts: a second one with a new client.
const ATTEMPTS: usize = 2;

/// The wishes of the person.
#[derive(Clone, Debug)]
pub struct LoginRequest {
    /// The scopes to request, instead of those that the server asks for.
    pub scopes: Option<Vec<String>>,
    /// True if a browser on this machine can be used; a code for another device is preferred if not.
    pub browser: bool,
    /// The port of the callback, instead of the configured one.
    pub port: Option<u16>,
    /// How long to wait for the person.
    pub wait: Duration,
    /// The callback at a route; `None` for a listener on this machine.
    pub routes: Option<Arc<CallbackRoutes>>,
}

/// Everything that a login needs.
pub(crate) struct Flow<'a> {
    pub(crate) web: &'a Web,
    pub(crate) settings: &'a OAuthSettings,
    pub(crate) vault: &'a dyn Vault,
    pub(crate) clock: &'a dyn Clock,
    /// The last refusal of the server.
    pub(crate) challenge: Option<BearerChallenge>,
    /// The login that is replaced.
    pub(crate) old: Option<Entry>,
}

/// A client, and where it comes from.
struct Chosen {
    client: Client,
    origin: Origin,
}

/// The origin of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Configured,
    /// Our metadata document.
    Document,
    /// Registered for an earlier login.
    Reused,
    Registered,
}

// === impl Flow ===

impl Flow<'_> {
    /// Requests tokens without a person.
    pub(crate) async fn acquire(&self) -> Result<Entry, LoginError> {
        let discovered = discover(self.web, self.settings, self.challenge.as_ref()).await?;
        let scopes = self.scopes(&discovered, None);
        let client = match Choice::of(&discovered, self.settings)? {
            Choice::Known(client) => client,
            Choice::Register(_) => {
                return Err(LoginError::NoClient("`oauth_config` has no `client_id`".to_owned()));
            }
        };
        let request = self.request(&discovered, &client);
        let granted = match self.settings.grant {
            Grant::Enterprise => enterprise::request(&request, &discovered, &scopes).await?,
            Grant::ClientCredentials | Grant::Code | Grant::Device => {
                let mut form = token::form("client_credentials", &discovered, self.settings);
                add_scopes(&mut form, &scopes);
                request.send(form).await?
            }
        };
        Ok(self.entry(&discovered, client, &scopes, granted))
    }

    /// Makes an entry of the tokens of another program, which go only where the server and its
    /// authorization server say now.
    pub(crate) async fn take_over(&self, tokens: ForeignTokens) -> Result<Entry, LoginError> {
        let now = self.clock.now().as_second();
        let ForeignTokens { client, client_secret, access, refresh, expires } = tokens;
        // Without its client, a refresh token is worth nothing.
        let refresh = refresh.filter(|_| client.is_some());
        if refresh.is_none() && expires.is_some_and(|expires| expires <= now) {
            return Err(LoginError::Settings("the imported login has expired".to_owned()));
        }
        let granted = Granted::imported(access, refresh, expires)
            .ok_or_else(|| LoginError::Settings("the imported token cannot be sent".to_owned()))?;
        let discovered = discover(self.web, self.settings, self.challenge.as_ref()).await?;
        let client = Client::imported(&client.unwrap_or_default(), client_secret, &discovered);
        Ok(self.entry(&discovered, client, &[], granted))
    }

    /// Logs a person in.
    pub(crate) async fn log_in(
        &self,
        wish: &LoginRequest,
        person: &dyn LoginPerson,
    ) -> Result<Entry, LoginError> {
        if self.settings.grant.is_automatic() {
            return self.acquire().await;
        }
        let discovered = discover(self.web, self.settings, self.challenge.as_ref()).await?;
        let scopes = self.scopes(&discovered, wish.scopes.as_deref());
        let prefers_device = self.settings.grant == Grant::Device || !wish.browser;
        match (&discovered.device, &discovered.authorization) {
            (Some(_), _) if prefers_device => self.with_device(&discovered, &scopes, person).await,
            (_, Some(_)) if self.settings.grant == Grant::Code => {
                self.with_browser(&discovered, &scopes, wish, person).await
            }
            (_, _) => Err(LoginError::NotOffered(
                "its authorization server does not offer the configured grant".to_owned(),
            )),
        }
    }

    async fn with_device(
        &self,
        discovered: &Discovered,
        scopes: &[String],
        person: &dyn LoginPerson,
    ) -> Result<Entry, LoginError> {
        let Some(at) = &discovered.device else {
            return Err(LoginError::NotOffered("it has no codes for devices".to_owned()));
        };
        for attempt in 1..=ATTEMPTS {
            let chosen = self.client(discovered, None, attempt).await?;
            let request = self.request(discovered, &chosen.client);
            match device::log_in(&request, at, discovered, scopes, person).await {
                Ok(granted) => return Ok(self.entry(discovered, chosen.client, scopes, granted)),
                Err(error) => self.try_again(discovered, &chosen, error, attempt).await?,
            }
        }
        Err(LoginError::NoClient("the authorization server rejects our client".to_owned()))
    }

    async fn with_browser(
        &self,
        discovered: &Discovered,
        scopes: &[String],
        wish: &LoginRequest,
        person: &dyn LoginPerson,
    ) -> Result<Entry, LoginError> {
        for attempt in 1..=ATTEMPTS {
            let callback = self.listen(discovered, wish).await?;
            let chosen = self.client(discovered, Some(&callback.redirect_uri), attempt).await?;
            let asked = self.ask(discovered, scopes, &chosen.client, &callback, person);
            let result = match timeout(wish.wait, asked).await {
                Ok(result) => result,
                Err(_) => Err(LoginError::TimedOut(wish.wait)),
            };
            match result {
                Ok(granted) => return Ok(self.entry(discovered, chosen.client, scopes, granted)),
                Err(error) => self.try_again(discovered, &chosen, error, attempt).await?,
            }
        }
        Err(LoginError::NoClient("the authorization server rejects our client".to_owned()))
    }

    /// Forgets a client that may be the reason of a failure.
    ///
    /// # Errors
    /// The failure, unless another attempt with a new client makes sense.
    async fn try_again(
        &self,
        discovered: &Discovered,
        chosen: &Chosen,
        error: LoginError,
        attempt: usize,
    ) -> Result<(), LoginError> {
        // A page that rejects the client tells only the person, who then does not come back.
        let is_suspect = error.is_client_unknown() || matches!(error, LoginError::TimedOut(_));
        let can_change = match chosen.origin {
            Origin::Configured | Origin::Registered => false,
            Origin::Document => discovered.registration.is_some(),
            Origin::Reused => {
                if let (true, Some(issuer)) = (is_suspect, &discovered.issuer) {
                    Client::forget(self.vault, issuer).await?;
                }
                discovered.issuer.is_some()
            }
        };
        if can_change && error.is_client_unknown() && attempt < ATTEMPTS {
            debug!("the client was rejected; another one is registered");
            return Ok(());
        }
        Err(error)
    }

    /// Listens for the browser: on the configured port, else on that of the registered client, else
    /// on a free one.
    async fn listen(
        &self,
        discovered: &Discovered,
        wish: &LoginRequest,
    ) -> Result<Callback, LoginError> {
        if let Some(routes) = &wish.routes {
            return Ok(Callback::routed(routes));
        }
        let uri = self.settings.redirect_uri.as_deref().and_then(|uri| Url::parse(uri).ok());
        let configured = uri.as_ref().and_then(Url::port);
        if let Some(port) = configured.or(wish.port).or(self.settings.callback_port) {
            return Callback::bind(port, uri.as_ref()).await;
        }
        if let Some(client) = self.stored_client(discovered).await?
            && let Some(registered) = client.redirect_uri.and_then(|uri| Url::parse(&uri).ok())
            && let Ok(callback) = Callback::bind(registered.port().unwrap_or(0), None).await
        {
            return Ok(callback);
        }
        Callback::bind(0, None).await
    }

    /// The client to use; a registered one is used again only with the callback it was registered
    /// for. Another attempt does not use our metadata document again.
    async fn client(
        &self,
        discovered: &Discovered,
        redirect_uri: Option<&str>,
        attempt: usize,
    ) -> Result<Chosen, LoginError> {
        if attempt == 1
            && let Some(client) = self.own_document(discovered, redirect_uri).await
        {
            return Ok(Chosen { client, origin: Origin::Document });
        }
        let at = match Choice::of(discovered, self.settings)? {
            Choice::Known(client) => return Ok(Chosen { client, origin: Origin::Configured }),
            Choice::Register(at) => at,
        };
        let stored = self.stored_client(discovered).await?;
        if let Some(client) = stored.filter(|client| client.redirect_uri.as_deref() == redirect_uri)
        {
            return Ok(Chosen { client, origin: Origin::Reused });
        }
        let client = Client::register(self.web, &at, discovered, redirect_uri).await?;
        if let Some(issuer) = &discovered.issuer {
            client.store(self.vault, issuer).await?;
        }
        Ok(Chosen { client, origin: Origin::Registered })
    }

    /// Our metadata document as a client, if both sides can use it.
    async fn own_document(
        &self,
        discovered: &Discovered,
        redirect_uri: Option<&str>,
    ) -> Option<Client> {
        let settings = self.settings;
        // Who names a client or an endpoint for registration wants that one.
        let is_free = settings.client_id.is_none() && settings.registration_url.is_none();
        // The document is for logins with a browser.
        let (address, callback) = (settings.document.as_deref()?, redirect_uri?);
        let is_usable = is_free && discovered.reads_documents;
        (is_usable && document::serves(self.web, address, callback).await)
            .then(|| Client::public(address))
    }

    async fn stored_client(&self, discovered: &Discovered) -> Result<Option<Client>, LoginError> {
        match &discovered.issuer {
            Some(issuer) => Client::stored(self.vault, self.clock, issuer).await,
            None => Ok(None),
        }
    }

    /// Sends the person to the page, and exchanges the code that comes back.
    async fn ask(
        &self,
        discovered: &Discovered,
        scopes: &[String],
        client: &Client,
        callback: &Callback,
        person: &dyn LoginPerson,
    ) -> Result<Granted, LoginError> {
        let (state, verifier) = (random::text()?, random::text()?);
        let page = self.page(discovered, scopes, client, callback, (&state, &verifier))?;
        let issuer = discovered.issuer.as_deref();
        person.show(LoginStep::Visit { url: page.as_str(), issuer, scopes });
        person.open(page.as_str()).await;
        let (brought, browser) = self.wait(discovered, &state, callback, person).await;
        let result = async {
            let code = check(discovered, brought)?;
            let mut form = token::form("authorization_code", discovered, self.settings);
            form.add("code", code.reveal());
            form.add("redirect_uri", &callback.redirect_uri);
            form.add("code_verifier", verifier.reveal());
            self.request(discovered, client).send(form).await
        };
        let result = result.await;
        if let Some(browser) = browser {
            let outcome = if result.is_ok() { Outcome::LoggedIn } else { Outcome::Failed };
            // The browser may be gone; the login counts all the same.
            let _ = browser.send(outcome);
        }
        result
    }

    /// Waits for the browser or for a pasted line, whichever comes first.
    async fn wait(
        &self,
        discovered: &Discovered,
        state: &Secret<String>,
        callback: &Callback,
        person: &dyn LoginPerson,
    ) -> (Brought, Option<tokio::sync::oneshot::Sender<Outcome>>) {
        let arrival = callback.arrival(state);
        tokio::pin!(arrival);
        loop {
            let line = tokio::select! {
                arrival = &mut arrival => return (arrival.brought, Some(arrival.browser)),
                line = person.paste() => line,
            };
            let reason = match Brought::pasted(&line, state) {
                Ok(Brought::Code { issuer: None, .. })
                    if discovered.names_issuer && !line.contains("state=") =>
                {
                    "paste the whole address that the browser was sent to"
                }
                Ok(brought) => return (brought, None),
                Err(reason) => reason,
            };
            person.show(LoginStep::Unusable { reason });
        }
    }

    /// The address of the page, with the request for a code.
    fn page(
        &self,
        discovered: &Discovered,
        scopes: &[String],
        client: &Client,
        callback: &Callback,
        (state, verifier): (&Secret<String>, &Secret<String>),
    ) -> Result<Url, LoginError> {
        let endpoint = discovered.authorization.as_ref();
        let mut page = endpoint.map(|endpoint| endpoint.url().clone()).ok_or_else(|| {
            LoginError::NotOffered("its authorization server has no page for logins".to_owned())
        })?;
        let mut query = page.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &callback.redirect_uri)
            .append_pair("state", state.reveal())
            .append_pair("code_challenge", &random::challenge(verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &discovered.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
        if scopes.iter().any(|scope| scope == OFFLINE) {
            // OpenID Connect grants it only with consent.
            query.append_pair("prompt", "consent");
        }
        for audience in &self.settings.audience {
            query.append_pair("audience", audience);
        }
        drop(query);
        Ok(page)
    }

    /// Chooses the scopes: typed, configured, of the challenge, of the server's metadata, or none;
    /// with those that the server wanted in addition, and that for a refresh token.
    fn scopes(&self, discovered: &Discovered, typed: Option<&[String]>) -> Vec<String> {
        if let Some(typed) = typed {
            return typed.to_vec();
        }
        let challenge = self.challenge.as_ref().and_then(|challenge| challenge.scopes.as_ref());
        let configured = self.settings.scopes.as_ref();
        let chosen = configured.or(challenge).or(discovered.resource_scopes.as_ref());
        let mut scopes = chosen.cloned().unwrap_or_default();
        let mut add = |scope: &String| {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        };
        if let Some(old) = self.old.as_ref().filter(|old| !old.wanted.is_empty()) {
            old.scopes.iter().chain(&old.wanted).for_each(&mut add);
        }
        let has_refresh = !self.settings.grant.is_automatic();
        let offers = discovered.scopes.iter().any(|scope| scope == OFFLINE);
        if has_refresh && offers && configured.is_none() {
            add(&OFFLINE.to_owned());
        }
        scopes
    }

    fn request<'b>(&'b self, discovered: &'b Discovered, client: &'b Client) -> TokenRequest<'b> {
        TokenRequest {
            web: self.web,
            settings: self.settings,
            clock: self.clock,
            to: &discovered.token,
            client,
            issuer: discovered.issuer.as_deref(),
        }
    }

    fn entry(
        &self,
        discovered: &Discovered,
        client: Client,
        scopes: &[String],
        granted: Granted,
    ) -> Entry {
        let mut entry = Entry::new(discovered, client, scopes, granted, self.clock);
        if let Some(old) = &self.old
            && old.wanted.iter().any(|wanted| !entry.scopes.contains(wanted))
        {
            entry.step_ups = old.step_ups.saturating_add(1);
        }
        entry
    }
}

/// Checks the issuer of an answer (RFC 9207), then whether it has a code.
fn check(discovered: &Discovered, brought: Brought) -> Result<Secret<String>, LoginError> {
    let (Brought::Code { issuer, .. } | Brought::Error { issuer, .. }) = &brought;
    let is_expected = match (issuer, &discovered.issuer) {
        (Some(given), Some(expected)) => given == expected,
        // The configured endpoints have no issuer to compare with.
        (Some(_), None) => true,
        (None, _) => !discovered.names_issuer,
    };
    if !is_expected {
        return Err(LoginError::Untrusted(
            "the answer does not come from the authorization server that was asked, so it is not used"
                .to_owned(),
        ));
    }
    match brought {
        Brought::Code { code, .. } => Ok(code),
        Brought::Error { code, description, .. } => Err(LoginError::Refused {
            code: if is_code(&code) { code } else { "an error without a code".to_owned() },
            description: words(&description),
        }),
    }
}
