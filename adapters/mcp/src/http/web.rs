//! Sends messages over HTTP and reads the answers: JSON, events, or a refusal.

use std::borrow::Cow;

use bytes::Bytes;
use capstan_http::header::{CONTENT_TYPE, HeaderMap};
use capstan_http::{Client, HttpBody, HttpError, HttpRequest, HttpResponse, StatusCode};

use crate::fault::Fault;
use crate::http::events::Events;
use crate::http::large_reply::LargeBody;
use crate::http::refusal::{Refusal, message, retry_after};

/// The part of a refusal's body that is read, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;

/// The longest excerpt of a refusal that is shown.
const MAX_WORDS: usize = 200;

/// The HTTP client of one server, and the longest message that it may send.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) client: Client,
    /// The longest message accepted, in bytes.
    pub(crate) max_message: usize,
    /// The remedy if the server does not accept our credentials.
    pub(crate) remedy: Remedy,
}

/// The remedy if a server does not accept our credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A login.
    Login,
    /// Other credentials in the configuration.
    Configuration,
}

/// How the body of an answer is returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyMode {
    Whole,
    /// A large body is returned while it is still arriving.
    Streamed,
}

/// The reason why there is no readable answer.
#[derive(Clone, Debug)]
pub(crate) enum WebError {
    /// The request was not sent.
    NotSent(String),
    /// The request was not sent, because its address is blocked.
    Blocked(String),
    /// The request was sent; its outcome is unknown.
    Lost(String),
    /// The answer is not MCP.
    NotMcp(String),
    /// The answer has more bytes than this.
    TooLong(usize),
    /// The server refused the request.
    Refused(Refusal),
}

/// An answer with its headers.
pub(crate) struct WebResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The body of an answer.
pub(crate) enum Body {
    Json(Bytes),
    Large(LargeBody),
    Events(Events),
    Nothing,
}

// === impl Web ===

impl Web {
    /// Sends a request and reads the answer; of a stream of events, only the beginning.
    pub(crate) async fn send(&self, order: HttpRequest) -> Result<WebResponse, WebError> {
        self.receive(&|| order.clone(), BodyMode::Whole).await
    }

    /// Sends a request and reads the answer in that mode. `write` composes the
    /// request again for each redirect, so that nothing is copied if there is none.
    pub(crate) async fn receive(
        &self,
        write: &(dyn Fn() -> HttpRequest + Sync),
        mode: BodyMode,
    ) -> Result<WebResponse, WebError> {
        let HttpResponse { status, headers, body } = self.client.follow(write).await?;
        if !status.is_success() {
            return Err(WebError::Refused(self.refusal(status, &headers, body).await));
        }
        let body = self.body(status, &headers, body, mode).await?;
        Ok(WebResponse { headers, body })
    }

    async fn body(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: HttpBody,
        mode: BodyMode,
    ) -> Result<Body, WebError> {
        let kind = media_type(headers);
        match kind.as_deref() {
            Some("text/event-stream") => Ok(Body::Events(self.events(body))),
            Some(kind) if kind == "application/json" || kind.ends_with("+json") => {
                if mode == BodyMode::Streamed {
                    return self.begin(body).await;
                }
                let (body, whole) = self.client.read(body, self.max_message).await?;
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

    fn events(&self, body: HttpBody) -> Events {
        Events::new(self.client.stream(body), self.max_message)
    }

    async fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: HttpBody) -> Refusal {
        let kind = media_type(headers);
        // A refusal counts even if its body cannot be read.
        let body = self.client.read(body, MAX_REFUSAL).await.map(|(body, _)| body);
        let body = body.unwrap_or_default();
        let words = self.words(status, kind.as_deref(), &body);
        let status = status.as_u16();
        let fault = match status {
            401 => match self.remedy {
                Remedy::Login => Fault::Login(words),
                Remedy::Configuration => Fault::Credentials(words),
            },
            403 => Fault::Forbidden(words),
            429 => Fault::RateLimited(retry_after(headers)),
            _ => Fault::Status { status, words },
        };
        Refusal { status, fault, body }
    }

    /// The message of a refusal, in one short line.
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
        let mut words = self.client.mask(line);
        words.retain(|c| !c.is_control());
        words.truncate(words.floor_char_boundary(MAX_WORDS));
        words
    }
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

impl From<HttpError> for WebError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Unfit(reason) => Self::NotSent(reason.to_owned()),
            HttpError::NotSent(reason) => Self::NotSent(reason),
            HttpError::Blocked(reason) => Self::Blocked(reason),
            HttpError::Lost(reason) => Self::Lost(reason),
            HttpError::Elsewhere(reason) => {
                Self::Refused(Refusal::redirected(Fault::Elsewhere(reason)))
            }
            HttpError::NeedsLogin(reason) => {
                Self::Refused(Refusal::without_scopes(Fault::Scopes(reason)))
            }
            HttpError::Redirected { status, words } => {
                Self::Refused(Refusal::redirected(Fault::Status { status, words }))
            }
        }
    }
}
