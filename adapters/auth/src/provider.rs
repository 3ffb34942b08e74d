//! The input and the outcome of a provider.

use std::net::IpAddr;
use std::sync::Arc;

use capstan_http::header::HeaderMap;
use capstan_model::Caller;
use futures::future::BoxFuture;

use crate::keyed_hash::TokenHash;

/// The longest name of a caller, in bytes.
const MAX_SUBJECT: usize = 256;

/// The most roles of a caller, and the longest of them, in bytes.
const MAX_ROLES: usize = 256;
const MAX_ROLE: usize = 256;

/// Subjects that an authenticated caller cannot have: the audit log uses them for others.
const RESERVED: [&str; 2] = ["operator", "anonymous"];

/// Authenticates requests in one way.
pub trait Provider: Send + Sync {
    /// The word of the provider in the configuration.
    fn name(&self) -> &'static str;

    /// Authenticates a request.
    fn authenticate<'a>(&'a self, request: &Request<'a>) -> Outcome<'a>;
}

/// The parts of a request that providers read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The address of the peer.
    pub from: IpAddr,
    /// The caller if nobody authenticates it.
    pub anonymous: &'a Arc<Caller>,
    /// The token in the header `Authorization`.
    pub(crate) token: Option<Token<'a>>,
}

/// A token, with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) hash: TokenHash,
}

/// The answer of a provider, now or later.
pub enum Outcome<'a> {
    /// The answer is known. No future is allocated.
    Ready(Result<Arc<Caller>, Refusal>),
    /// The answer needs I/O.
    Wait(BoxFuture<'a, Result<Arc<Caller>, Refusal>>),
}

/// The reason why a provider does not accept a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request has no credentials of this kind.
    Missing,
    /// The credentials are not valid.
    Invalid,
    /// The credentials cannot be checked at the moment.
    Unavailable,
}

/// A caller that a provider has authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The caller's name.
    pub subject: String,
    /// The caller's roles.
    pub roles: Vec<String>,
}

// === impl Token ===

impl std::fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(capstan_model::secret::MASK)
    }
}

// === impl Identity ===

impl Identity {
    /// The caller of this identity; `None` for a name or role that cannot be used.
    ///
    /// Names are compared and written to logs, so that invisible characters in them could deceive.
    pub(crate) fn caller(self) -> Option<Arc<Caller>> {
        let is_clear = |text: &str, most: usize| {
            !text.trim().is_empty() && text.len() <= most && !text.chars().any(char::is_control)
        };
        let Self { subject, roles } = self;
        let fits = is_clear(&subject, MAX_SUBJECT)
            && !RESERVED.contains(&subject.as_str())
            && roles.len() <= MAX_ROLES
            && roles.iter().all(|role| is_clear(role, MAX_ROLE));
        fits.then(|| Arc::new(Caller::remote(subject, roles)))
    }
}
