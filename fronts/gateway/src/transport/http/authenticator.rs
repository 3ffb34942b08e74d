//! The port that authenticates requests.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::Caller;
use futures::future::BoxFuture;
use hyper::Response;
use hyper::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::StatusCode;
use hyper::http::request::Parts;

use crate::transport::http::response::body::{self, Body};

/// Authenticates each request on its own.
///
/// It runs after the checks of `Host`, `Origin` and preflight requests, only for routes that need a
/// caller, and before the body is read.
pub trait Authenticator: Send + Sync {
    /// Authenticates the request with this head, which came from this peer.
    fn authenticate<'a>(&'a self, head: &'a Parts, from: &'a RemotePeer) -> Authentication<'a>;
}

/// The peer of a connection.
#[derive(Clone, Debug)]
pub struct RemotePeer {
    /// Its IP address.
    pub address: IpAddr,
    /// Its caller without authentication, created once per connection.
    pub anonymous: Arc<Caller>,
}

/// The outcome of an authentication, now or later.
pub enum Authentication<'a> {
    /// The outcome is known. No future is allocated.
    Ready(Result<Arc<Caller>, Unauthenticated>),
    /// The outcome needs I/O.
    Wait(BoxFuture<'a, Result<Arc<Caller>, Unauthenticated>>),
}

/// The refusal of a request. Its text is the same whatever is wrong with the credentials.
#[derive(Clone, Debug)]
pub enum Unauthenticated {
    /// It has no valid credentials: status 401 with this value of `WWW-Authenticate`.
    Challenge(HeaderValue),
    /// Its network has presented too many wrong credentials: status 429.
    TooManyAttempts {
        /// The time after which it may try again.
        retry_after: Duration,
    },
    /// Its credentials cannot be checked at the moment: status 503.
    Unavailable,
}

/// Accepts every request; callers differ only by their address.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

// === impl RemotePeer ===

impl RemotePeer {
    pub(crate) fn new(address: IpAddr) -> Self {
        Self { address, anonymous: Arc::new(Caller::stranger(Some(address))) }
    }
}

// === impl Unauthenticated ===

impl Unauthenticated {
    pub(crate) fn response(self) -> Response<Body> {
        let (status, words, header, value) = match self {
            Self::Challenge(challenge) => {
                let words = "authentication is required";
                (StatusCode::UNAUTHORIZED, words, WWW_AUTHENTICATE, challenge)
            }
            Self::TooManyAttempts { retry_after } => {
                let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
                let words = "too many attempts with wrong credentials; try again later";
                (StatusCode::TOO_MANY_REQUESTS, words, RETRY_AFTER, HeaderValue::from(seconds))
            }
            Self::Unavailable => {
                let words = "credentials cannot be checked at the moment; try again later";
                let pause = HeaderValue::from_static("10");
                (StatusCode::SERVICE_UNAVAILABLE, words, RETRY_AFTER, pause)
            }
        };
        let mut response = body::refusal(status, words);
        response.headers_mut().insert(header, value);
        response
    }
}

// === impl Anonymous ===

impl Authenticator for Anonymous {
    fn authenticate<'a>(&'a self, _: &'a Parts, from: &'a RemotePeer) -> Authentication<'a> {
        Authentication::Ready(Ok(Arc::clone(&from.anonymous)))
    }
}
