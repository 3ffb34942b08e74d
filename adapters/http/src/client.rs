//! Sends requests to one origin.
//!
//! **Invariant:** nothing that was meant for the server's origin ever reaches another one: a
//! redirect is followed only within the origin.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use capstan_lazy::AttemptError;
use capstan_model::Secret;
use capstan_safety::address::{AddressClass, AddressPolicy};
use capstan_safety::mask::Masker;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode, Url};

use crate::address::{WebAddress, is_loopback};
use crate::address_guard::AddressGuard;
use crate::connection_pool::Place;
use crate::credentials::{Applied, Challenge, Challenged, Credentials, StaticHeaders};
use crate::transport::{
    AGENT, HttpBody, HttpRequest, HttpResponse, Target, Transport, TransportError,
};

/// The largest number of redirects followed.
const MAX_HOPS: usize = 5;

/// The largest number of refusals after which a request is sent once more with other credentials.
const MAX_REFUSALS: usize = 2;

/// The timeout for establishing a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const KEEP: Duration = Duration::from_secs(30);

/// An HTTP client for one origin. It is cheap to clone, and clones share their connections.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
    target: Target,
    /// Applied in this order to every request.
    credentials: Vec<Arc<dyn Credentials>>,
    masker: Arc<Masker>,
}

/// The reason why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {0}")]
    Unfit(&'static str),
    /// The request was not sent.
    #[error("{0}")]
    NotSent(String),
    /// The request was not sent: the address policy refuses its destination.
    #[error("{0}")]
    Blocked(String),
    /// The request was sent; the answer redirects it to another server, which is not followed.
    #[error("{0}")]
    Elsewhere(String),
    /// The request was sent; its outcome is unknown.
    #[error("{0}")]
    Lost(String),
    /// The server requires a login, or one with more scopes.
    #[error("{0}")]
    NeedsLogin(String),
    /// The server redirects the request, and the redirect cannot be followed.
    #[error("it answered with HTTP status {status}: {words}")]
    Redirected {
        /// Its status.
        status: u16,
        /// Its destination, or the problem with it.
        words: String,
    },
}

// === impl Client ===

impl Client {
    /// Creates a client for the origin of an address, which sends these headers with every request.
    /// Nothing is sent yet. Secrets in errors are hidden by the masker.
    ///
    /// # Errors
    /// If a header cannot be sent or the client cannot be created.
    pub fn new(
        address: &WebAddress,
        headers: &[(String, Secret<String>)],
        masker: Arc<Masker>,
        policy: &AddressPolicy,
    ) -> Result<Self, String> {
        let transport = transport(address, headers, policy)?;
        let target = Target::from(address.url.clone());
        let credentials: Vec<Arc<dyn Credentials>> = vec![Arc::new(StaticHeaders::new(headers)?)];
        Ok(Self { transport, target, credentials, masker })
    }

    /// Returns a client that also applies these credentials. It shares the connections.
    #[must_use]
    pub fn with(&self, credentials: Arc<dyn Credentials>) -> Self {
        let mut client = self.clone();
        credentials.hide_in(&client.masker);
        client.credentials.insert(0, credentials);
        client
    }

    /// The address that the client was created for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    #[cfg(test)]
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// True if a URL has the same origin.
    pub fn same_origin(&self, url: &Url) -> bool {
        url.origin() == self.target.url().origin()
    }

    /// Sends a request with the credentials and follows redirects within the origin.
    /// If the server refuses the credentials and there are others, sends it once more with these.
    /// `write` composes the request again each time, so that nothing is copied if there is no
    /// redirect.
    ///
    /// # Errors
    /// If there is no answer. An error status is an answer.
    pub async fn follow(
        &self,
        write: &(dyn Fn() -> HttpRequest + Sync),
    ) -> Result<HttpResponse, HttpError> {
        let (mut moved, mut refusals) = (None, 0);
        for _ in 0..=MAX_HOPS {
            let mut request = Box::new(write());
            let mut number = 0;
            for credentials in &self.credentials {
                match credentials.apply(&mut request) {
                    Applied::Ready => {}
                    Applied::Numbered(applied) => number = applied,
                    Applied::Wait(applied) => number = number.max(applied.await?),
                }
            }
            if let Some(next) = moved {
                request.to = next;
            }
            let (method, from) = (request.method.clone(), request.to.clone());
            let response = self.send_once(request).await?;
            if matches!(response.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
                && refusals < MAX_REFUSALS
                && self.has_others(response.status, &response.headers, number).await?
            {
                (moved, refusals) = (None, refusals + 1);
                continue;
            }
            let Some(next) = self.redirect(&method, from.url(), &response)? else {
                return Ok(response);
            };
            moved = Some(Target::from(next));
        }
        let words = format!("it redirects more than {MAX_HOPS} times");
        Err(HttpError::Redirected { status: 308, words })
    }

    /// True if other credentials can replace those that the server did not accept.
    ///
    /// Boxed, because its size would otherwise be part of every call.
    fn has_others<'a>(
        &'a self,
        status: StatusCode,
        headers: &'a HeaderMap,
        number: u64,
    ) -> BoxFuture<'a, Result<bool, HttpError>> {
        let asked = async move {
            for credentials in &self.credentials {
                let has_others = match credentials.challenged(Challenge { status, headers, number })
                {
                    Challenged::Final => false,
                    Challenged::Retry => true,
                    Challenged::Wait(fetched) => fetched.await?,
                };
                if has_others {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        asked.boxed()
    }

    /// Sends a request without credentials and follows no redirect.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn send_once(&self, request: Box<HttpRequest>) -> Result<HttpResponse, HttpError> {
        self.transport.send(request).await.map_err(|error| self.not_sent(error))
    }

    /// The destination of a redirect; `None` for any other answer.
    fn redirect(
        &self,
        method: &Method,
        from: &Url,
        response: &HttpResponse,
    ) -> Result<Option<Url>, HttpError> {
        let status = response.status.as_u16();
        let keeps_body = match status {
            307 | 308 => true,
            301..=303 => false,
            _ => return Ok(None),
        };
        let location = response.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let next = location.and_then(|location| from.join(location).ok());
        let Some(next) = next else {
            let words = "it redirects without a target".to_owned();
            return Err(HttpError::Redirected { status, words });
        };
        let origin = next.origin().ascii_serialization();
        if !self.same_origin(&next) {
            // Independent of the address policy: a server does not choose where requests go.
            let mut words = format!(
                "the request was sent, and the redirect to `{origin}`, which is another server, is \
                 not followed"
            );
            if may_be_public(&next) {
                words.push_str("; if it has moved there, set its address to that");
            }
            return Err(HttpError::Elsewhere(words));
        }
        if !keeps_body && *method != Method::GET {
            let path = self.mask(next.path());
            let words = format!("it has moved to `{origin}{path}`");
            return Err(HttpError::Redirected { status, words });
        }
        Ok(Some(next))
    }

    fn not_sent(&self, error: TransportError) -> HttpError {
        let blocked = matches!(error, TransportError::Refused(_));
        let connecting = error.is_connect();
        let reason = self.mask(&error.reason());
        match (blocked, connecting) {
            (true, _) => HttpError::Blocked(reason),
            (false, true) => HttpError::NotSent(reason),
            (false, false) => HttpError::Lost(reason),
        }
    }

    /// Reads the next piece of a body; `None` at its end.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn chunk(&self, body: &mut HttpBody) -> Result<Option<Bytes>, HttpError> {
        body.chunk().await.map_err(|error| self.lost(error))
    }

    fn lost(&self, error: TransportError) -> HttpError {
        HttpError::Lost(self.mask(&error.reason()))
    }

    /// Masks the secrets of this origin in a text.
    pub fn mask(&self, text: &str) -> String {
        self.masker.mask(text)
    }

    /// Streams the pieces of a body. An error is the last item.
    pub fn stream(&self, body: HttpBody) -> BoxStream<'static, Result<Bytes, String>> {
        let masker = Arc::clone(&self.masker);
        let stream = stream::unfold(Some(body), move |body| {
            let masker = Arc::clone(&masker);
            async move {
                let mut body = body?;
                match body.chunk().await {
                    Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(body))),
                    Err(error) => Some((Err(masker.mask(&error.reason())), None)),
                }
            }
        });
        stream.boxed()
    }

    /// Reads at most `limit` bytes of a body; the flag is true if that is all of it.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn read(&self, mut from: HttpBody, limit: usize) -> Result<(Bytes, bool), HttpError> {
        let length = from.length().and_then(|length| usize::try_from(length).ok());
        let Some(first) = self.chunk(&mut from).await? else {
            return Ok((Bytes::new(), true));
        };
        if first.len() <= limit && from.has_ended().await {
            return Ok((first, true));
        }
        // Memory that is not written to costs nothing.
        let room = length.map_or(first.len() * 2, |length| length.min(limit));
        let mut body = BytesMut::with_capacity(room);
        let mut next = Some(first);
        while let Some(chunk) = next {
            if body.len() + chunk.len() > limit {
                return Ok((body.freeze(), false));
            }
            body.extend_from_slice(&chunk);
            drop(chunk);
            next = self.chunk(&mut from).await?;
        }
        Ok((body.freeze(), true))
    }
}

/// Chooses the transport to an address; a literal address that the policy refuses gets none.
fn transport(
    address: &WebAddress,
    headers: &[(String, Secret<String>)],
    policy: &AddressPolicy,
) -> Result<Transport, String> {
    // A caller that requests compression needs a client that decompresses.
    let is_plain = |(name, _): &(String, _)| !name.eq_ignore_ascii_case("accept-encoding");
    let guard = AddressGuard::new(address.target_host(), policy.clone(), address.loopback);
    let local = || local(address, &guard).filter(|_| headers.iter().all(is_plain));
    Ok(match (guard.check_literal(), local()) {
        (Err(refusal), _) if address.socket.is_none() => Transport::Refused(Arc::new(refusal)),
        (_, Some(local)) => local,
        (_, None) => Transport::Far(far(address, guard)?),
    })
}

/// The connection pool for a server on this machine that needs neither encryption nor a password.
fn local(address: &WebAddress, guard: &AddressGuard) -> Option<Transport> {
    let WebAddress { url, socket, .. } = address;
    if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let name = url.host_str()?;
    let place = match socket {
        Some(socket) => Place::Socket(socket.clone()),
        None if is_loopback(url) => Place::Port(guard.clone(), url.port_or_known_default()?),
        None => return None,
    };
    let host = match url.port() {
        Some(port) => HeaderValue::try_from(format!("{name}:{port}")),
        None => HeaderValue::try_from(name),
    };
    Some(Transport::local(place, host.ok()?))
}

/// The client for an address on another machine.
fn far(address: &WebAddress, guard: AddressGuard) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .user_agent(AGENT)
        .referer(false)
        // Redirects are followed by `Client`, which controls where credentials are sent.
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .pool_idle_timeout(KEEP)
        .dns_resolver(Arc::new(guard));
    if let Some(socket) = &address.socket {
        builder = builder.unix_socket(socket.as_path());
    }
    if address.socket.is_some() || is_loopback(&address.url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("the HTTP client could not be created: {error}"))
}

/// True if an address may be suggested in an error.
/// It must be a public literal, or a name that is not one of this machine or of a local network.
/// The IP addresses of a name are checked on connect.
fn may_be_public(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if let Ok(address) = host.parse() {
        return AddressClass::of(address) == AddressClass::Public;
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !matches!(last, "localhost" | "localdomain" | "local" | "internal"))
}

// === impl HttpError ===

impl From<HttpError> for AttemptError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Blocked(reason) => Self::Blocked(reason),
            HttpError::Elsewhere(reason) => Self::Elsewhere(reason),
            HttpError::Unfit(_)
            | HttpError::NotSent(_)
            | HttpError::Lost(_)
            | HttpError::NeedsLogin(_)
            | HttpError::Redirected { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<AttemptError> for HttpError {
    fn from(error: AttemptError) -> Self {
        match error {
            AttemptError::Failed(reason) => Self::NotSent(reason),
            AttemptError::Blocked(reason) => Self::Blocked(reason),
            AttemptError::Elsewhere(reason) => Self::Elsewhere(reason),
        }
    }
}
