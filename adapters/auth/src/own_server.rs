//! The provider `oauth_as`: tokens of the gateway's own authorization server.
//!
//! The server is not part of this crate; it verifies its tokens through [`TokenVerifier`].

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::Clock;
use capstan_model::Caller;
use futures::future::BoxFuture;

use crate::provider::{Identity, Outcome, Provider, Refusal, Request, Token};
use crate::verified::Verified;

/// The longest time for which a token is not verified again: a revocation takes effect after it.
const RECHECK: Duration = Duration::from_secs(5);

/// Verifies the tokens of an authorization server.
pub trait TokenVerifier: Send + Sync {
    /// Verifies a token: its signature, its times, its audience, and that it is not revoked.
    fn verify<'a>(&'a self, token: &'a str) -> Verification<'a>;
}

/// The outcome of a verification, now or later.
pub enum Verification<'a> {
    /// The outcome is known.
    Ready(Result<Identity, Refusal>),
    /// The outcome needs I/O.
    Wait(BoxFuture<'a, Result<Identity, Refusal>>),
}

/// Accepts the tokens of the gateway's own authorization server.
pub struct OwnServer {
    verifier: Arc<dyn TokenVerifier>,
    clock: Arc<dyn Clock>,
    verified: Verified,
}

// === impl OwnServer ===

impl OwnServer {
    /// Creates the provider for the tokens of this server.
    pub fn new(verifier: Arc<dyn TokenVerifier>, clock: Arc<dyn Clock>) -> Self {
        Self { verifier, clock, verified: Verified::default() }
    }

    fn accept(
        &self,
        token: Token<'_>,
        identity: Result<Identity, Refusal>,
    ) -> Result<Arc<Caller>, Refusal> {
        let caller = identity?.caller().ok_or(Refusal::Invalid)?;
        self.verified.put(token, &caller, self.clock.monotonic(), RECHECK);
        Ok(caller)
    }
}

impl Provider for OwnServer {
    fn name(&self) -> &'static str {
        "oauth_as"
    }

    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a> {
        let Some(token) = request.token else { return Outcome::Ready(Err(Refusal::Missing)) };
        if let Some(caller) = self.verified.get(token, self.clock.monotonic()) {
            return Outcome::Ready(Ok(caller));
        }
        match self.verifier.verify(token.text) {
            Verification::Ready(identity) => Outcome::Ready(self.accept(token, identity)),
            Verification::Wait(identity) => {
                Outcome::Wait(Box::pin(async move { self.accept(token, identity.await) }))
            }
        }
    }
}
