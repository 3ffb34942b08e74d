//! Sends requests: directly to servers on this machine, through `reqwest` to all others.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use capstan_safety::address::AddressRefusal;
use hyper::http::uri::PathAndQuery;
use hyper::http::{Request, Uri};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT,
};
use reqwest::{Client, Method, StatusCode, Url};

use crate::address_guard::refusal_in;
use crate::connection_pool::{ConnectionPool, Flow, LocalError, Place};
use crate::payload::Payload;
use crate::unpack::Unpacker;

/// Our `User-Agent`.
pub(crate) const AGENT: &str = concat!("capstan/", env!("CARGO_PKG_VERSION"));

const OURSELVES: HeaderValue = HeaderValue::from_static(AGENT);

/// The only encoding that is decoded here.
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// The transport of the requests to one origin.
#[derive(Clone)]
pub(crate) enum Transport {
    Local(Arc<ConnectionPool>, HeaderValue),
    Far(Client),
    /// Nothing is sent: the address is refused.
    Refused(Arc<AddressRefusal>),
}

/// A parsed address to send requests to. It is cheap to clone.
#[derive(Clone)]
pub struct Target {
    url: Arc<Url>,
    /// The path and query, or the reason why they cannot be sent.
    path: Result<Uri, String>,
}

/// A request, ready to be sent.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The destination.
    pub to: Target,
    /// Headers in addition to the configured ones; these take precedence.
    pub headers: HeaderMap,
    /// The body.
    pub body: Payload,
}

/// The status and headers of an answer, with its unread body.
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, still to be read.
    pub body: HttpBody,
}

/// The body of an answer, still arriving; read it with [`Client::chunk`](crate::Client::chunk).
pub struct HttpBody(Incoming);

enum Incoming {
    Local(Flow),
    Packed(Flow, Box<Unpacker>),
    Far(reqwest::Response),
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) enum TransportError {
    Local(LocalError),
    Far(reqwest::Error),
    /// The address is refused; no connection was attempted.
    Refused(AddressRefusal),
    /// The address has no path that can be sent.
    Path(String),
    /// The answer has an encoding that was not requested.
    Encoded(String),
    /// The answer cannot be decompressed.
    Packed(io::Error),
}

// === impl Transport ===

impl Transport {
    /// Connects directly to a server on this machine; `host` is sent as its name.
    pub(crate) fn local(place: Place, host: HeaderValue) -> Self {
        Self::Local(Arc::new(ConnectionPool::new(place)), host)
    }

    /// Sends a request and waits for the beginning of the answer.
    pub(crate) async fn send(
        &self,
        order: Box<HttpRequest>,
    ) -> Result<HttpResponse, TransportError> {
        match self {
            Self::Local(local, host) => {
                let response = local.send(request(order, host)?).await?;
                let (head, flow) = response.into_parts();
                let body = if is_packed(&head.headers)? {
                    Incoming::Packed(flow, Box::default())
                } else {
                    Incoming::Local(flow)
                };
                let body = HttpBody(body);
                Ok(HttpResponse { status: head.status, headers: head.headers, body })
            }
            // Boxed, because its size would otherwise be part of every call to this machine.
            Self::Far(client) => Ok(Box::pin(send_far(client, order)).await?),
            Self::Refused(refusal) => Err(TransportError::Refused((**refusal).clone())),
        }
    }
}

async fn send_far(
    client: &Client,
    order: Box<HttpRequest>,
) -> Result<HttpResponse, reqwest::Error> {
    let HttpRequest { method, to, headers, body } = *order;
    let request = client.request(method, to.url().clone()).headers(headers);
    let mut response = request.body(body.whole()).send().await?;
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    Ok(HttpResponse { status, headers, body: HttpBody(Incoming::Far(response)) })
}

fn request(
    order: Box<HttpRequest>,
    host: &HeaderValue,
) -> Result<Box<Request<Payload>>, TransportError> {
    let HttpRequest { method, to, mut headers, body } = *order;
    headers.entry(HOST).or_insert_with(|| host.clone());
    headers.entry(ACCEPT_ENCODING).or_insert(GZIP);
    headers.entry(USER_AGENT).or_insert(OURSELVES);
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = to.path.map_err(TransportError::Path)?;
    *request.headers_mut() = headers;
    Ok(Box::new(request))
}

/// True if a body is compressed with gzip, the only encoding that is requested.
fn is_packed(headers: &HeaderMap) -> Result<bool, TransportError> {
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(other) => Err(TransportError::Encoded(String::from_utf8_lossy(other).into_owned())),
    }
}

// === impl Target ===

impl Target {
    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl From<Url> for Target {
    fn from(url: Url) -> Self {
        let path = match url.query() {
            None => PathAndQuery::try_from(url.path()),
            Some(query) => PathAndQuery::try_from(format!("{}?{query}", url.path())),
        };
        let path = path.map(Uri::from).map_err(|error| error.to_string());
        Self { url: Arc::new(url), path }
    }
}

// === impl HttpBody ===

impl HttpBody {
    /// Reads the next piece; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        let broken = |error| TransportError::from(LocalError::Broken(error));
        match &mut self.0 {
            Incoming::Local(flow) => flow.chunk().await.map_err(broken),
            Incoming::Packed(flow, unpacker) => loop {
                if let Some(piece) = unpacker.next().map_err(TransportError::Packed)? {
                    return Ok(Some(piece));
                }
                match flow.chunk().await.map_err(broken)? {
                    Some(packed) => unpacker.push(packed),
                    None => return unpacker.end().map_err(TransportError::Packed),
                }
            },
            Incoming::Far(response) => response.chunk().await.map_err(TransportError::Far),
        }
    }

    /// True if it is already known that nothing more follows.
    pub async fn has_ended(&mut self) -> bool {
        match &mut self.0 {
            Incoming::Local(flow) => flow.has_ended().await,
            Incoming::Packed(..) | Incoming::Far(_) => false,
        }
    }

    /// The length of the body, if known.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            Incoming::Local(flow) => flow.length(),
            Incoming::Packed(..) => None,
            Incoming::Far(response) => response.content_length(),
        }
    }
}

// === impl TransportError ===

impl TransportError {
    /// True if nothing was sent.
    pub(crate) fn is_connect(&self) -> bool {
        match self {
            Self::Local(LocalError::Connect(_) | LocalError::Refused(_))
            | Self::Refused(_)
            | Self::Path(_) => true,
            Self::Far(error) => error.is_connect() || error.is_builder(),
            Self::Local(LocalError::Broken(_)) | Self::Encoded(_) | Self::Packed(_) => false,
        }
    }

    /// The message of the innermost error; the outer ones only say that something failed.
    #[expect(clippy::match_same_arms, reason = "errors of several types with one name")]
    pub(crate) fn reason(self) -> String {
        let what = if self.is_connect() { "no connection" } else { "the connection broke" };
        let bottom = match self {
            Self::Local(LocalError::Refused(refusal)) | Self::Refused(refusal) => {
                return refusal.to_string();
            }
            Self::Local(LocalError::Connect(error)) => bottom(&error),
            Self::Local(LocalError::Broken(error)) => bottom(&error),
            Self::Far(error) => bottom(&error.without_url()),
            Self::Path(reason) => reason,
            Self::Packed(error) => bottom(&error),
            Self::Encoded(encoding) => format!("it answered in the encoding `{encoding}`"),
        };
        format!("{what}: {bottom}")
    }
}

impl From<LocalError> for TransportError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Refused(refusal) => Self::Refused(refusal),
            LocalError::Connect(_) | LocalError::Broken(_) => Self::Local(error),
        }
    }
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        match refusal_in(&error) {
            Some(refusal) => Self::Refused(refusal.clone()),
            None => Self::Far(error),
        }
    }
}

fn bottom(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}
