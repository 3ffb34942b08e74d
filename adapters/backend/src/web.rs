//! Sends requests over HTTP and makes sense of what comes back.
//!
//! **Invariant:** nothing that was meant for the server's origin ever reaches another one: a
//! redirect is followed only within the origin.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use capstan_model::Secret;
use capstan_policy::address::AddressClass;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};

use crate::events::Events;
use crate::fault::Fault;
use crate::mask::Masker;
use crate::reach::{Incoming, Order, Reach, ReachError, Response, Target};
use crate::refusal::{Refusal, message, retry_after};
use crate::settings::max_message;

/// How often a redirect is followed.
const MAX_HOPS: usize = 5;

/// How much of a refusal is read.
const MAX_REFUSAL: usize = 64 * 1024;

/// Longest piece of a refusal that is shown.
const MAX_WORDS: usize = 200;

/// The way to one address.
#[derive(Clone)]
pub(crate) struct Web {
    reach: Reach,
    pub(crate) target: Target,
    headers: HeaderMap,
    masker: Arc<Masker>,
    /// The longest message that is taken, in bytes.
    pub(crate) max_message: usize,
}

/// In which form an answer is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Whole,
    /// A large one may still be coming.
    Coming,
}

/// Why nothing that could be read came back.
#[derive(Clone, Debug)]
pub(crate) enum WebError {
    /// The request did not leave.
    NotSent(String),
    /// The request did not leave, because its address is refused.
    Blocked(String),
    /// The request left; what became of it is not known.
    Lost(String),
    /// The answer is not one.
    NotMcp(String),
    /// The answer has more bytes than this.
    TooLong(usize),
    /// The answer is no.
    Refused(Refusal),
}

/// What came back, with its headers.
pub(crate) struct Came {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The body of an answer.
pub(crate) enum Body {
    Json(Bytes),
    /// The beginning of a large one, and its rest.
    Large(Vec<Bytes>, Incoming),
    Events(Events),
    Nothing,
}

// === impl Web ===

impl Web {
    pub(crate) fn new(
        reach: Reach,
        url: Url,
        given: &[(String, Secret<String>)],
        masker: Arc<Masker>,
    ) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let bad = || format!("its header `{name}` cannot be sent");
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.append(key, value);
        }
        // How a message is put on the wire is not the configuration's business.
        for name in ["content-length", "transfer-encoding", "connection"] {
            headers.remove(name);
        }
        Ok(Self { reach, target: Target::from(url), headers, masker, max_message: max_message(0) })
    }

    /// The address of the server.
    pub(crate) fn url(&self) -> &Url {
        self.target.url()
    }

    #[cfg(test)]
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    pub(crate) fn same_origin(&self, url: &Url) -> bool {
        url.origin() == self.url().origin()
    }

    /// Sends and reads what comes back; of a stream of events, only its beginning.
    pub(crate) async fn send(&self, order: Order) -> Result<Came, WebError> {
        self.receive(&|| order.clone(), Takes::Whole).await
    }

    /// The same, in the form that is taken. The order is written anew for each redirect, so that
    /// nothing is copied for one that does not come.
    pub(crate) async fn receive(
        &self,
        write: &(dyn Fn() -> Order + Sync),
        takes: Takes,
    ) -> Result<Came, WebError> {
        let Response { status, headers, body } = self.follow(write).await?;
        if !status.is_success() {
            return Err(WebError::Refused(self.refusal(status, &headers, body).await));
        }
        let body = self.body(status, &headers, (body, takes)).await?;
        Ok(Came { headers, body })
    }

    /// Sends, and sends again where the server says so.
    pub(crate) async fn follow(
        &self,
        write: &(dyn Fn() -> Order + Sync),
    ) -> Result<Response, WebError> {
        let mut moved = None;
        for _ in 0..=MAX_HOPS {
            let mut order = Box::new(write());
            if let Some(next) = moved {
                order.to = next;
            }
            let (method, from) = (order.method.clone(), order.to.clone());
            let response = self.once(order).await?;
            let Some(next) = self.redirect(&method, from.url(), &response)? else {
                return Ok(response);
            };
            moved = Some(Target::from(next));
        }
        Err(Refusal::redirected(308, format!("it redirects more than {MAX_HOPS} times")).into())
    }

    /// Sends, and follows no redirect.
    pub(crate) async fn once(&self, mut order: Box<Order>) -> Result<Response, WebError> {
        self.merge(&mut order.headers);
        self.reach.send(order).await.map_err(|error| self.not_sent(error))
    }

    /// Adds the configured headers to the protocol's own, which win.
    fn merge(&self, headers: &mut HeaderMap) {
        for name in self.headers.keys() {
            if headers.contains_key(name) {
                continue;
            }
            for value in self.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
    }

    /// Where the server sends us, if it does and we may go.
    fn redirect(
        &self,
        method: &Method,
        from: &Url,
        response: &Response,
    ) -> Result<Option<Url>, WebError> {
        let status = response.status.as_u16();
        let keeps_body = match status {
            307 | 308 => true,
            301..=303 => false,
            _ => return Ok(None),
        };
        let location = response.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let next = location.and_then(|location| from.join(location).ok());
        let Some(next) = next else {
            return Err(Refusal::redirected(status, "it redirects to nowhere".to_owned()).into());
        };
        let origin = next.origin().ascii_serialization();
        if !self.same_origin(&next) {
            // Whatever the address is: a server does not choose where requests go.
            let mut words = format!(
                "the request was sent, and the redirect to `{origin}`, which is another server, is \
                 not followed"
            );
            if may_be_public(&next) {
                words.push_str("; if it has moved there, set its address to that");
            }
            return Err(Refusal::without_body(status, Fault::Elsewhere(words)).into());
        }
        if !keeps_body && *method != Method::GET {
            let path = self.masker.mask(next.path());
            let words = format!("it has moved to `{origin}{path}`");
            return Err(Refusal::redirected(status, words).into());
        }
        Ok(Some(next))
    }

    fn not_sent(&self, error: ReachError) -> WebError {
        let (connecting, blocked) = (error.is_connect(), matches!(error, ReachError::Refused(_)));
        let reason = self.reason(error);
        match (blocked, connecting) {
            (true, _) => WebError::Blocked(reason),
            (false, true) => WebError::NotSent(reason),
            (false, false) => WebError::Lost(reason),
        }
    }

    pub(crate) fn reason(&self, error: ReachError) -> String {
        self.masker.mask(&error.reason())
    }

    async fn body(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        (body, takes): (Incoming, Takes),
    ) -> Result<Body, WebError> {
        let kind = media_type(headers);
        match kind.as_deref() {
            Some("text/event-stream") => Ok(Body::Events(self.events(body))),
            Some(kind) if kind == "application/json" || kind.ends_with("+json") => {
                if takes == Takes::Coming {
                    return self.begin(body).await;
                }
                let (body, whole) = self.read(body, self.max_message).await?;
                if !whole {
                    return Err(WebError::TooLong(self.max_message));
                }
                Ok(if body.is_empty() { Body::Nothing } else { Body::Json(body) })
            }
            _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
                Ok(Body::Nothing)
            }
            _ if body.length() == Some(0) => Ok(Body::Nothing),
            Some(kind) => Err(WebError::NotMcp(format!("it answered with `{kind}`"))),
            None => Err(WebError::NotMcp("it answered without a content type".to_owned())),
        }
    }

    fn events(&self, body: Incoming) -> Events {
        Events::new(self.stream(body), self.max_message)
    }

    /// The pieces of a body as they come.
    pub(crate) fn stream(&self, body: Incoming) -> BoxStream<'static, Result<Bytes, String>> {
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

    /// The beginning of a body, and whether that is all of it.
    pub(crate) async fn read(
        &self,
        mut from: Incoming,
        limit: usize,
    ) -> Result<(Bytes, bool), WebError> {
        let lost = |error| WebError::Lost(self.reason(error));
        let length = from.length().and_then(|length| usize::try_from(length).ok());
        let Some(first) = from.chunk().await.map_err(lost)? else {
            return Ok((Bytes::new(), true));
        };
        if first.len() <= limit && from.has_ended().await {
            return Ok((first, true));
        }
        // Room that is not written to costs nothing.
        let room = length.map_or(first.len() * 2, |length| length.min(limit));
        let mut body = BytesMut::with_capacity(room);
        let mut next = Some(first);
        while let Some(chunk) = next {
            if body.len() + chunk.len() > limit {
                return Ok((body.freeze(), false));
            }
            body.extend_from_slice(&chunk);
            drop(chunk);
            next = from.chunk().await.map_err(lost)?;
        }
        Ok((body.freeze(), true))
    }

    async fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: Incoming) -> Refusal {
        let kind = media_type(headers);
        // A refusal is one even if its words get lost.
        let body = self.read(body, MAX_REFUSAL).await.map(|(body, _)| body);
        let body = body.unwrap_or_default();
        let words = self.words(status, kind.as_deref(), &body);
        let status = status.as_u16();
        let fault = match status {
            401 => Fault::Login(words),
            403 => Fault::Forbidden(words),
            429 => Fault::RateLimited(retry_after(headers)),
            _ => Fault::Status { status, words },
        };
        Refusal { status, fault, body }
    }

    /// What a refusal says, in one short line.
    fn words(&self, status: StatusCode, kind: Option<&str>, body: &[u8]) -> String {
        let said = match kind {
            Some(kind) if kind.ends_with("json") => message(body),
            Some("text/plain") => Some(String::from_utf8_lossy(body).into_owned()),
            Some(_) | None => None,
        };
        let line = said.as_deref().and_then(|said| said.lines().next()).map(str::trim);
        let Some(line) = line.filter(|line| !line.is_empty()) else {
            return status.canonical_reason().unwrap_or("no reason given").to_owned();
        };
        let mut words = self.masker.mask(line);
        words.retain(|c| !c.is_control());
        words.truncate(words.floor_char_boundary(MAX_WORDS));
        words
    }
}

/// Whether an address may be advised: a public literal, or a name that is not one of this machine or
/// of a local network. What a name resolves to is checked when it is connected to.
fn may_be_public(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if let Ok(address) = host.parse() {
        return AddressClass::of(address) == AddressClass::Public;
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !matches!(last, "localhost" | "localdomain" | "local" | "internal"))
}

fn media_type(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next().unwrap_or(text).trim();
    if kind.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(Cow::Owned(kind.to_ascii_lowercase()));
    }
    Some(Cow::Borrowed(kind))
}

// === impl WebError ===

impl From<Refusal> for WebError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
