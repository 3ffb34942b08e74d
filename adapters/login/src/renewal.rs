//! The token of a login: reads it from the vault, renews it, and reacts to refusals.
//!
//! **Invariant:** a login is renewed by one process at a time and by one task in it, and the old
//! tokens stay until the new ones are stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use capstan_http::header::HeaderValue;
use capstan_http::{HttpError, Url};
use capstan_hub::ports::{BoxFuture, Clock, Vault};
use capstan_model::Secret;
use capstan_safety::mask::Masker;
use futures::FutureExt;
use futures::future::Shared;
use tracing::debug;

use crate::challenge::BearerChallenge;
use crate::client::Client;
use crate::entry::{Entry, Slot};
use crate::error::LoginError;
use crate::flow::Flow;
use crate::settings::LoginSettings;
use crate::token::TokenRequest;
use crate::web::{Form, Web};

/// The time, in seconds, after which a renewal that failed is tried again while the token is valid.
const RETRY: i64 = 10;

/// The login to one server, shared by all requests to it.
pub(crate) struct Inner {
    pub(crate) settings: LoginSettings,
    pub(crate) web: Web,
    pub(crate) slot: Slot,
    pub(crate) vault: Arc<dyn Vault>,
    pub(crate) clock: Arc<dyn Clock>,
    /// True if there is no token, so that requests are sent as they are.
    pub(crate) is_bare: AtomicBool,
    pub(crate) state: Mutex<State>,
    pub(crate) maskers: Mutex<Vec<Weak<Masker>>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) known: Known,
    /// Numbers the tokens.
    pub(crate) last_number: u64,
    /// The access token that the server refused last.
    pub(crate) refused: Option<Secret<String>>,
    /// The last challenge of the server.
    pub(crate) challenge: Option<BearerChallenge>,
    /// The renewal that runs.
    pub(crate) renewal: Option<Renewal>,
}

#[derive(Default)]
pub(crate) enum Known {
    /// The vault was not read yet.
    #[default]
    Unread,
    /// There is no token that can be used.
    Nothing,
    Token(Arc<Token>),
}

/// The reason of a renewal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The token is not known yet, or expires soon.
    Due,
    /// The server refused a request.
    Refused,
}

/// A token as it is sent.
pub(crate) struct Token {
    pub(crate) number: u64,
    pub(crate) access: Secret<String>,
    pub(crate) header: HeaderValue,
    /// The time from which it is renewed, in seconds since 1970.
    pub(crate) renew_from: Option<i64>,
}

pub(crate) type Renewal = Shared<BoxFuture<'static, Result<Option<Arc<Token>>, LoginError>>>;

// === impl Inner ===

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn set(&self, known: Known) {
        self.is_bare.store(matches!(known, Known::Nothing), Ordering::Release);
        self.state().known = known;
    }

    /// Uses the token of an entry from now on.
    pub(crate) fn adopt(&self, entry: &Entry) -> Result<Arc<Token>, LoginError> {
        for masker in lock(&self.maskers).iter().filter_map(Weak::upgrade) {
            entry.secrets().for_each(|secret| masker.learn(secret));
        }
        let access = entry.access();
        let header = HeaderValue::from_str(&format!("Bearer {}", access.reveal()));
        let mut header = header
            .map_err(|_| LoginError::Settings("the token cannot be sent in a header".to_owned()))?;
        header.set_sensitive(true);
        let mut state = self.state();
        let renew_from = entry.renew_from().filter(|_| self.can_renew(entry));
        state.last_number += 1;
        let token = Arc::new(Token { number: state.last_number, access, header, renew_from });
        state.known = Known::Token(Arc::clone(&token));
        drop(state);
        self.is_bare.store(false, Ordering::Release);
        Ok(token)
    }

    pub(crate) fn can_renew(&self, entry: &Entry) -> bool {
        entry.refresh().is_some() || self.settings.oauth.grant.is_automatic()
    }

    /// Returns the token to use now. With `refused`, one that is not the one with this number; 0 is
    /// the number of a request without a token.
    pub(crate) async fn renewed(
        self: &Arc<Self>,
        refused: Option<u64>,
    ) -> Result<Option<Arc<Token>>, LoginError> {
        loop {
            let (renewal, is_own) = {
                let mut state = self.state();
                if let (Some(refused), Known::Token(token)) = (refused, &state.known)
                    && token.number > refused
                {
                    return Ok(Some(Arc::clone(token)));
                }
                let why = if refused.is_some() { Why::Refused } else { Why::Due };
                let running = state.renewal.clone().filter(|running| running.peek().is_none());
                let is_own = running.is_none();
                let renewal = running.unwrap_or_else(|| {
                    if refused.is_some()
                        && let Known::Token(token) = &state.known
                    {
                        state.refused = Some(token.access.clone());
                    }
                    Arc::clone(self).renew(why).boxed().shared()
                });
                state.renewal = Some(renewal.clone());
                drop(state);
                (renewal, is_own)
            };
            if is_own {
                // Driven by a task of its own, so that a request that is given up does not lose a
                // token that the authorization server has already replaced.
                tokio::spawn(renewal.clone());
                return renewal.await;
            }
            let result = renewal.await;
            // A renewal that began before the refusal may have found only the refused token.
            match (&result, refused) {
                (Ok(Some(token)), Some(refused)) if token.number <= refused => {}
                _ => return result,
            }
        }
    }

    /// Reads the vault and, if the token there cannot be used, renews it.
    pub(crate) async fn renew(self: Arc<Self>, why: Why) -> Result<Option<Arc<Token>>, LoginError> {
        let vault = &*self.vault;
        if why == Why::Due
            && let Some(token) = self.read_usable().await?
        {
            return Ok(token);
        }
        let _lock = self.slot.lock(vault).await?;
        let entry = self.slot.read(vault).await?.map(|(_, entry)| entry);
        let is_automatic = self.settings.oauth.grant.is_automatic();
        let Some(entry) = entry else {
            if is_automatic && why == Why::Refused {
                return self.acquire(None).await.map(Some);
            }
            self.set(Known::Nothing);
            return Ok(None);
        };
        let (refused, now) = (self.state().refused.clone(), self.clock.now().as_second());
        let why = if refused == Some(entry.access()) { Why::Refused } else { Why::Due };
        let is_due = entry.renew_from().is_some_and(|from| now >= from) && self.can_renew(&entry);
        if why == Why::Due && !is_due {
            // Another process has renewed it, or somebody has logged in.
            return self.adopt(&entry).map(Some);
        }
        if let Some(refresh) = entry.refresh() {
            match self.refresh(&entry, &refresh).await {
                Ok(token) => return Ok(Some(token)),
                Err(error) if error.is_transient() => {
                    return self.keep(&entry, why, error);
                }
                Err(error) => self.drop_refresh(&entry, &error).await?,
            }
        }
        if is_automatic {
            return self.acquire(Some(entry)).await.map(Some);
        }
        self.set(Known::Nothing);
        Ok(None)
    }

    /// The token of the vault if it can be used as it is, or nothing if there is none; `None` if it
    /// must be renewed.
    pub(crate) async fn read_usable(&self) -> Result<Option<Option<Arc<Token>>>, LoginError> {
        let Some((_, entry)) = self.slot.read(&*self.vault).await? else {
            self.set(Known::Nothing);
            return Ok(Some(None));
        };
        let now = self.clock.now().as_second();
        let is_due = entry.renew_from().is_some_and(|from| now >= from) && self.can_renew(&entry);
        if is_due || self.state().refused.as_ref() == Some(&entry.access()) {
            return Ok(None);
        }
        self.adopt(&entry).map(|token| Some(Some(token)))
    }

    /// Keeps a token that could not be renewed, if it is still valid.
    pub(crate) fn keep(
        &self,
        entry: &Entry,
        why: Why,
        error: LoginError,
    ) -> Result<Option<Arc<Token>>, LoginError> {
        let now = self.clock.now().as_second();
        if why == Why::Refused || !entry.is_valid(now) {
            return Err(error);
        }
        debug!(%error, "the token was not renewed, and is still valid");
        let token = self.adopt(entry)?;
        let later = Token {
            number: token.number,
            access: token.access.clone(),
            header: token.header.clone(),
            renew_from: Some(now.saturating_add(RETRY)),
        };
        let later = Arc::new(later);
        self.state().known = Known::Token(Arc::clone(&later));
        Ok(Some(later))
    }

    pub(crate) async fn refresh(
        &self,
        entry: &Entry,
        refresh: &Secret<String>,
    ) -> Result<Arc<Token>, LoginError> {
        let to = self.endpoint(&entry.token_url)?;
        let request = self.request(entry, &to);
        let granted = request.refresh(entry, refresh).await?;
        let renewed = entry.renewed(granted, &*self.clock);
        self.slot.write(&*self.vault, &renewed).await?;
        debug!(server = %self.settings.server, "renewed the token");
        self.adopt(&renewed)
    }

    /// Gives up a refresh token that the authorization server rejects, and its client with it if
    /// that is the reason.
    pub(crate) async fn drop_refresh(
        &self,
        entry: &Entry,
        error: &LoginError,
    ) -> Result<(), LoginError> {
        debug!(server = %self.settings.server, %error, "the refresh token is rejected");
        if let Some(issuer) = entry.issuer.as_deref().filter(|_| error.is_client_unknown()) {
            Client::forget(&*self.vault, issuer).await?;
        }
        self.slot.write(&*self.vault, &entry.without_refresh()).await?;
        Ok(())
    }

    pub(crate) async fn acquire(&self, old: Option<Entry>) -> Result<Arc<Token>, LoginError> {
        let entry = self.flow(old).acquire().await?;
        self.slot.write(&*self.vault, &entry).await?;
        debug!(server = %self.settings.server, "received a token");
        self.adopt(&entry)
    }

    /// Reacts to a server that wants more scopes. True if there is a token with them now.
    pub(crate) async fn step_up(
        self: Arc<Self>,
        challenge: BearerChallenge,
    ) -> Result<bool, HttpError> {
        let scopes = challenge.scopes.clone().unwrap_or_default();
        let failed =
            |error: LoginError| HttpError::NotSent(format!("the login cannot be used: {error}"));
        let vault = &*self.vault;
        let _lock = self.slot.lock(vault).await.map_err(failed)?;
        let entry = self.slot.read(vault).await.map_err(failed)?.map(|(_, entry)| entry);
        let Some(wanting) = entry.and_then(|entry| entry.wanting(&scopes)) else {
            return Ok(false);
        };
        if self.settings.oauth.grant.is_automatic() {
            self.state().challenge = Some(challenge);
            self.acquire(Some(wanting)).await.map_err(failed)?;
            return Ok(true);
        }
        self.slot.write(vault, &wanting).await.map_err(failed)?;
        let named: Vec<String> =
            scopes.iter().map(|scope| format!("`{}`", crate::web::words(scope))).collect();
        Err(HttpError::NeedsLogin(format!("it needs a login with the scopes {}", named.join(", "))))
    }

    pub(crate) async fn revoke(&self, entry: &Entry) -> Result<(), LoginError> {
        let unknown =
            || LoginError::NotOffered("its authorization server cannot revoke tokens".to_owned());
        let to = self.endpoint(entry.revocation_url.as_deref().ok_or_else(unknown)?)?;
        let mut tokens = vec![("access_token", entry.access())];
        tokens.extend(entry.refresh().map(|token| ("refresh_token", token)));
        // The refresh token first: it can make further access tokens.
        for (hint, token) in tokens.into_iter().rev() {
            let mut form = Form::new("token", token.reveal());
            form.add("token_type_hint", hint);
            self.request(entry, &to).exchange(&mut form).await?;
        }
        Ok(())
    }

    /// An endpoint of a stored login, which may be on this machine if the server is.
    pub(crate) fn endpoint(&self, url: &str) -> Result<crate::web::Endpoint, LoginError> {
        let configured = &self.settings.oauth.token_url;
        if configured
            .as_deref()
            .is_some_and(|configured| Url::parse(configured).is_ok_and(|one| one.as_str() == url))
        {
            return Web::configured("the token endpoint", url);
        }
        self.web.found("the authorization server", url)
    }

    pub(crate) fn request<'a>(
        &'a self,
        entry: &'a Entry,
        to: &'a crate::web::Endpoint,
    ) -> TokenRequest<'a> {
        TokenRequest {
            web: &self.web,
            settings: &self.settings.oauth,
            clock: &*self.clock,
            to,
            client: &entry.client,
            issuer: entry.issuer.as_deref(),
        }
    }

    pub(crate) fn flow(&self, old: Option<Entry>) -> Flow<'_> {
        Flow {
            web: &self.web,
            settings: &self.settings.oauth,
            vault: &*self.vault,
            clock: &*self.clock,
            challenge: self.state().challenge.clone(),
            old,
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
