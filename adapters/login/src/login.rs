//! The login to one server: puts the token into requests, and logs in and out.
//!
//! **Invariant:** a server without a login costs a request nothing but a look at a flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use capstan_http::header::AUTHORIZATION;
use capstan_http::{
    Applied, Challenge, Challenged, Credentials, HttpError, HttpRequest, StatusCode,
};
use capstan_hub::ports::{Clock, LoginPerson, Vault, VaultPlace};
use capstan_model::Secret;
use capstan_safety::mask::Masker;
use futures::FutureExt;

use crate::challenge::BearerChallenge;
use crate::entry::{Entry, Slot};
use crate::error::LoginError;
use crate::flow::LoginRequest;
use crate::renewal::{Inner, Known, lock};
use crate::settings::LoginSettings;
use crate::web::Web;

/// The login to one server. It is cheap to clone.
#[derive(Clone)]
pub struct Login(Arc<Inner>);

/// The result of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The authorization server, if it is known.
    pub issuer: Option<String>,
    /// The person, if the authorization server names them.
    pub account: Option<String>,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The time at which the token expires, in seconds since 1970.
    pub expires: Option<i64>,
    /// True if the token is renewed without a person.
    pub renews: bool,
    /// The place of the tokens.
    pub place: VaultPlace,
}

/// Tokens that another program was granted for a server.
#[derive(Clone, Debug)]
pub struct ForeignTokens {
    /// The client that it has registered.
    pub client: Option<String>,
    /// The secret of the client.
    pub client_secret: Option<Secret<String>>,
    /// The access token.
    pub access: Secret<String>,
    /// The refresh token.
    pub refresh: Option<Secret<String>>,
    /// The time of expiry, in seconds since 1970.
    pub expires: Option<i64>,
}

/// The state of a login.
pub type LoginStatus = LoggedIn;

/// The result of a logout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedOut {
    /// False if nobody was logged in.
    pub was_logged_in: bool,
    /// The result of the revocation, if one was requested.
    pub revoked: Option<Result<(), LoginError>>,
}

// === impl Login ===

impl Login {
    /// Creates the login to a server. Nothing is read or sent yet.
    ///
    /// # Errors
    /// If the address of the server is invalid.
    pub fn new(
        settings: LoginSettings,
        vault: Arc<dyn Vault>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LoginError> {
        let web = Web::new(settings.url.reveal(), &settings.addresses)?;
        let slot = Slot::new(web.server().url(), settings.login.as_deref());
        Ok(Self(Arc::new(Inner {
            settings,
            web,
            slot,
            vault,
            clock,
            is_bare: AtomicBool::new(false),
            state: Mutex::default(),
            maskers: Mutex::default(),
        })))
    }

    /// The same server with another login.
    ///
    /// # Errors
    /// If the address of the server is invalid.
    pub fn named(&self, login: &str) -> Result<Self, LoginError> {
        let settings = LoginSettings { login: Some(login.to_owned()), ..self.0.settings.clone() };
        let other = Self::new(settings, Arc::clone(&self.0.vault), Arc::clone(&self.0.clock))?;
        let challenge = self.0.state().challenge.clone();
        other.0.state().challenge = challenge;
        Ok(other)
    }

    /// Logs in and stores the tokens.
    ///
    /// # Errors
    /// If that fails. The tokens of an earlier login stay then.
    pub async fn log_in(
        &self,
        request: &LoginRequest,
        person: &dyn LoginPerson,
    ) -> Result<LoggedIn, LoginError> {
        let inner = &self.0;
        let old = inner.slot.read(&*inner.vault).await?.map(|(_, entry)| entry);
        let entry = inner.flow(old).log_in(request, person).await?;
        let lock = inner.slot.lock(&*inner.vault).await?;
        let place = inner.slot.write(&*inner.vault, &entry).await?;
        drop(lock);
        inner.adopt(&entry)?;
        Ok(logged_in(entry, place))
    }

    /// Removes the tokens; with `Revoke::Yes`, the authorization server is told first.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub async fn log_out(&self, revoke: Revoke) -> Result<LoggedOut, LoginError> {
        let inner = &self.0;
        let lock = inner.slot.lock(&*inner.vault).await?;
        let entry = inner.slot.read(&*inner.vault).await?.map(|(_, entry)| entry);
        let revoked = match (&entry, revoke) {
            (Some(entry), Revoke::Yes) => Some(inner.revoke(entry).await),
            (Some(_), Revoke::No) | (None, _) => None,
        };
        let was_logged_in = inner.slot.remove(&*inner.vault).await?;
        drop(lock);
        inner.set(Known::Nothing);
        Ok(LoggedOut { was_logged_in, revoked })
    }

    /// Stores tokens of another program; `None` if there is a login already.
    ///
    /// # Errors
    /// If the authorization server cannot be found, or the tokens can no longer be used.
    pub async fn take_over(&self, tokens: ForeignTokens) -> Result<Option<LoggedIn>, LoginError> {
        let inner = &self.0;
        let entry = inner.flow(None).take_over(tokens).await?;
        let _lock = inner.slot.lock(&*inner.vault).await?;
        if inner.slot.read(&*inner.vault).await?.is_some() {
            return Ok(None);
        }
        let place = inner.slot.write(&*inner.vault, &entry).await?;
        inner.adopt(&entry)?;
        Ok(Some(logged_in(entry, place)))
    }

    /// The states of all logins to the server, each with its name.
    ///
    /// # Errors
    /// If the tokens cannot be read.
    pub async fn all(&self) -> Result<Vec<(Option<String>, LoginStatus)>, LoginError> {
        let (server, vault) = (self.0.web.server().url(), &*self.0.vault);
        let mut all = Vec::new();
        for name in Slot::names(server, vault).await? {
            let slot = Slot::new(server, name.as_deref());
            let Some((_, entry)) = slot.read(vault).await? else { continue };
            let place = slot.place(vault).await?;
            all.extend(place.map(|place| (name, logged_in(entry, place))));
        }
        Ok(all)
    }

    /// The state of the login; `None` if nobody is logged in.
    ///
    /// # Errors
    /// If the tokens cannot be read.
    pub async fn status(&self) -> Result<Option<LoginStatus>, LoginError> {
        let inner = &self.0;
        let Some((_, entry)) = inner.slot.read(&*inner.vault).await? else { return Ok(None) };
        let place = inner.slot.place(&*inner.vault).await?;
        Ok(place.map(|place| logged_in(entry, place)))
    }
}

/// Decides if the authorization server is told about a logout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoke {
    /// The tokens are revoked.
    Yes,
    /// The tokens are only removed from this machine.
    No,
}

fn logged_in(entry: Entry, place: VaultPlace) -> LoggedIn {
    LoggedIn {
        renews: entry.refresh().is_some(),
        issuer: entry.issuer,
        account: entry.account,
        scopes: entry.scopes,
        expires: entry.expires,
        place,
    }
}

impl Credentials for Login {
    fn apply<'a>(&'a self, request: &'a mut HttpRequest) -> Applied<'a> {
        if self.0.is_bare.load(Ordering::Acquire) {
            return Applied::Ready;
        }
        let now = self.0.clock.now().as_second();
        if let Known::Token(token) = &self.0.state().known
            && token.renew_from.is_none_or(|from| now < from)
        {
            request.headers.insert(AUTHORIZATION, token.header.clone());
            return Applied::Numbered(token.number);
        }
        let applied = async move {
            match self.0.renewed(None).await {
                Ok(Some(token)) => {
                    request.headers.insert(AUTHORIZATION, token.header.clone());
                    Ok(token.number)
                }
                Ok(None) => Ok(0),
                Err(error) => Err(not_renewed(&error)),
            }
        };
        Applied::Wait(applied.boxed())
    }

    fn challenged<'a>(&'a self, challenge: Challenge<'a>) -> Challenged<'a> {
        let Challenge { status, headers, number } = challenge;
        let bearer = BearerChallenge::read(headers);
        if status == StatusCode::UNAUTHORIZED {
            if bearer.is_some() {
                self.0.state().challenge = bearer;
            }
            let renewed = async move {
                let token = self.0.renewed(Some(number)).await;
                let token = token.map_err(|error| not_renewed(&error))?;
                Ok(token.is_some_and(|token| token.number != number))
            };
            return Challenged::Wait(renewed.boxed());
        }
        match bearer.filter(BearerChallenge::wants_more).filter(|_| number != 0) {
            Some(bearer) => Challenged::Wait(self.0.clone().step_up(bearer).boxed()),
            None => Challenged::Final,
        }
    }

    fn hide_in(&self, masker: &Arc<Masker>) {
        let mut maskers = lock(&self.0.maskers);
        maskers.retain(|masker| masker.strong_count() > 0);
        maskers.push(Arc::downgrade(masker));
    }
}

fn not_renewed(error: &LoginError) -> HttpError {
    HttpError::NotSent(format!("the login could not be renewed: {error}"))
}
