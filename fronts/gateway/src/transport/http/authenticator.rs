//! The port that authenticates requests.

use std::net::IpAddr;
use std::sync::Arc;

use capstan_model::Caller;
use futures::future::BoxFuture;
use hyper::Response;
use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
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

/// The refusal of a request without valid credentials: status 401 with a challenge.
#[derive(Clone, Debug)]
pub struct Unauthenticated {
    /// The value of `WWW-Authenticate`.
    pub challenge: HeaderValue,
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
        let mut response = body::refusal(StatusCode::UNAUTHORIZED, "authentication is required");
        response.headers_mut().insert(WWW_AUTHENTICATE, self.challenge);
        response
    }
}

// === impl Anonymous ===

impl Authenticator for Anonymous {
    fn authenticate<'a>(&'a self, _: &'a Parts, from: &'a RemotePeer) -> Authentication<'a> {
        Authentication::Ready(Ok(Arc::clone(&from.anonymous)))
    }
}
