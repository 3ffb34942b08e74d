//! The chain of providers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use capstan_http::header::{AUTHORIZATION, HeaderMap};
use capstan_hub::ports::Clock;
use capstan_model::Caller;
use futures::future::BoxFuture;

use crate::attempts::{Attempts, network};
use crate::bearer::{Bearer, StaticToken};
use crate::keyed_hash::KeyedHash;
use crate::provider::{Outcome, Provider, Refusal, Request, Token};

/// The longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// Asks providers in order. The first that accepts a request decides who the caller is; if none
/// does, the refusal is that of the first.
pub struct Chain {
    providers: Vec<Box<dyn Provider>>,
    hash: KeyedHash,
    attempts: Attempts,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
}

/// Is told who was accepted and refused.
pub trait Observer: Send + Sync {
    /// A provider accepted the credentials of this caller for the first time, or again after a
    /// while.
    fn accepted(&self, caller: &Arc<Caller>, provider: &'static str, from: IpAddr);

    /// No provider accepted the credentials of a request.
    fn refused(&self, refused: Refused, from: IpAddr);
}

/// The outcome of an authentication, now or later.
pub enum Authenticating<'a> {
    /// The outcome is known. No future is allocated.
    Ready(Result<Arc<Caller>, Refused>),
    /// The outcome needs I/O.
    Wait(BoxFuture<'a, Result<Arc<Caller>, Refused>>),
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No provider accepts it; the refusal is that of the first.
    Credentials(Refusal),
    /// Its network has presented too many wrong tokens, and must wait this long.
    TooManyAttempts(Duration),
}

/// Accepts every request.
struct Open;

// === impl Chain ===

impl Chain {
    /// Creates an empty chain, which refuses every request.
    pub fn new(clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Self {
        let (hash, attempts) = (KeyedHash::default(), Attempts::default());
        Self { providers: Vec::new(), hash, attempts, clock, observer }
    }

    /// Adds a provider at the end.
    #[must_use]
    pub fn with(mut self, provider: impl Provider + 'static) -> Self {
        self.providers.push(Box::new(provider));
        self
    }

    /// Adds the provider `bearer` for these tokens.
    ///
    /// # Errors
    /// The subject of a token that cannot be used.
    pub fn with_bearer(
        self,
        tokens: impl IntoIterator<Item = StaticToken>,
    ) -> Result<Self, String> {
        let bearer = Bearer::new(tokens, &self.hash)?;
        Ok(self.with(bearer))
    }

    /// Adds the provider `none`, which accepts every request as the caller without a name.
    #[must_use]
    pub fn with_none(self) -> Self {
        self.with(Open)
    }

    /// Authenticates a request with these headers. `anonymous` is its caller for `none`.
    pub fn authenticate<'a>(
        &'a self,
        headers: &'a HeaderMap,
        from: IpAddr,
        anonymous: &'a Arc<Caller>,
    ) -> Authenticating<'a> {
        let token = bearer_token(headers);
        let token = token.map(|text| Token { text, hash: self.hash.token(text) });
        let request = Request { headers, from, anonymous, token };
        if let Some(token) = token
            && let Some(wait) = self.attempts.wait(network(from), self.clock.monotonic())
            && !self.attempts.was_accepted(token.hash.at(network(from)))
        {
            return Authenticating::Ready(Err(Refused::TooManyAttempts(wait)));
        }
        let mut first = None;
        for (at, provider) in self.providers.iter().enumerate() {
            match provider.authenticate(&request) {
                Outcome::Ready(Ok(caller)) => {
                    return Authenticating::Ready(Ok(self.accept(caller, &**provider, &request)));
                }
                Outcome::Ready(Err(refusal)) => {
                    first.get_or_insert(refusal);
                }
                Outcome::Wait(answer) => {
                    let rest = self.providers.get(at..).unwrap_or_default();
                    return Authenticating::Wait(Box::pin(self.ask(rest, answer, request, first)));
                }
            }
        }
        Authenticating::Ready(Err(self.refuse(first, &request)))
    }

    /// Waits for the answer of the first of these providers, then asks the others.
    async fn ask<'a>(
        &'a self,
        providers: &'a [Box<dyn Provider>],
        answer: BoxFuture<'a, Result<Arc<Caller>, Refusal>>,
        request: Request<'a>,
        mut first: Option<Refusal>,
    ) -> Result<Arc<Caller>, Refused> {
        let mut waiting = Some(answer);
        for provider in providers {
            let answer = match waiting.take() {
                Some(answer) => answer.await,
                None => match provider.authenticate(&request) {
                    Outcome::Ready(answer) => answer,
                    Outcome::Wait(answer) => answer.await,
                },
            };
            match answer {
                Ok(caller) => return Ok(self.accept(caller, &**provider, &request)),
                Err(refusal) => {
                    first.get_or_insert(refusal);
                }
            }
        }
        Err(self.refuse(first, &request))
    }

    fn accept(
        &self,
        caller: Arc<Caller>,
        provider: &dyn Provider,
        request: &Request<'_>,
    ) -> Arc<Caller> {
        let hash = match request.token {
            Some(token) => token.hash,
            None if Arc::ptr_eq(&caller, request.anonymous) => return caller,
            None => self.hash.token(&caller.subject),
        };
        if self.attempts.accepted(hash.at(network(request.from))) {
            self.observer.accepted(&caller, provider.name(), request.from);
        }
        caller
    }

    fn refuse(&self, first: Option<Refusal>, request: &Request<'_>) -> Refused {
        let refused = Refused::Credentials(first.unwrap_or(Refusal::Missing));
        // A request without a token guesses nothing: clients find out this way where to get one.
        if request.token.is_some() && first != Some(Refusal::Unavailable) {
            let now = self.clock.monotonic();
            self.observer.refused(refused, request.from);
            if self.attempts.failed(network(request.from), now) {
                let wait = self.attempts.wait(network(request.from), now).unwrap_or_default();
                self.observer.refused(Refused::TooManyAttempts(wait), request.from);
            }
        }
        refused
    }

    /// Forgets what is no longer needed. Called from time to time.
    pub fn sweep(&self) {
        self.attempts.sweep(self.clock.monotonic());
    }
}

/// The token of the header `Authorization`, if it has one.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let is_token = !token.is_empty() && token.len() <= MAX_TOKEN && !token.contains(' ');
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

// === impl Open ===

impl Provider for Open {
    fn name(&self) -> &'static str {
        "none"
    }

    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a> {
        Outcome::Ready(Ok(Arc::clone(request.anonymous)))
    }
}
