//! Response bodies: whole answers in few pieces, or a stream of events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use bytes::Bytes;
use capstan_model::rpc_code::INTERNAL;
use capstan_wire::RequestId;
use hyper::Response;
use hyper::body::{Frame, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::http::StatusCode;

use crate::protocol::fault::SHUTTING_DOWN;
use crate::transport::http::connection::connection_state::Busy;
use crate::transport::http::response::events::Events;
use crate::transport::http::sessions::SessionGuard;
use crate::{Answer, Cut, Partly, StreamedAnswer};

/// Answers up to this size are copied into one buffer, which is cheaper than three writes.
const SMALL: usize = 16 * 1024;

/// Disables response buffering in proxies.
static UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response body.
pub struct Body {
    kind: Kind,
    /// Keeps the connection busy until the body is dropped.
    busy: Option<Busy>,
}

enum Kind {
    Empty,
    One(Bytes),
    /// One answer, too large to be copied.
    Partly(Partly, u64),
    /// The answers of a batch.
    Batch(vec::IntoIter<Bytes>, u64),
    Events(Box<Events>),
    /// A streamed answer, and the session that it belongs to.
    Streamed(Box<(StreamedAnswer, Option<SessionGuard>)>),
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self { kind: Kind::One(bytes), busy: None }
    }
}

/// A response without a body.
pub(crate) fn bare(status: StatusCode) -> Response<Body> {
    response(status, Kind::Empty)
}

/// A refusal with a text.
pub(crate) fn refusal(status: StatusCode, words: impl std::fmt::Display) -> Response<Body> {
    text(status, format!("{words}\n"))
}

/// Refuses a new request while the gateway shuts down.
pub(crate) fn stopping(id: Option<&RequestId>) -> Response<Body> {
    let answer = Answer::error(id, INTERNAL, SHUTTING_DOWN);
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, answer);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A response for a method that is not allowed.
pub(crate) fn wrong_method(allowed: &'static str) -> Response<Body> {
    let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// A response with plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = response(status, Kind::One(text.into()));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A response with a JSON answer.
pub(crate) fn json(status: StatusCode, answer: Answer) -> Response<Body> {
    let kind = if answer.len() <= SMALL {
        let mut whole = Vec::with_capacity(answer.len());
        answer.write_into(&mut whole);
        Kind::One(whole.into())
    } else {
        let length = length(answer.len());
        Kind::Partly(answer.parts(), length)
    };
    as_json(response(status, kind))
}

/// A response with a streamed answer.
pub(crate) fn streamed(answer: StreamedAnswer, session: Option<SessionGuard>) -> Response<Body> {
    as_json(response(StatusCode::OK, Kind::Streamed(Box::new((answer, session)))))
}

/// A response with the answers of a batch.
pub(crate) fn batch(answers: Vec<Answer>) -> Response<Body> {
    let mut pieces = Vec::with_capacity(answers.len() * 4 + 1);
    for answer in answers {
        let separator: &[u8] = if pieces.is_empty() { b"[" } else { b"," };
        pieces.push(Bytes::from_static(separator));
        pieces.extend(answer.pieces());
    }
    pieces.push(Bytes::from_static(b"]"));
    pieces.retain(|piece| !piece.is_empty());
    let size = length(pieces.iter().map(Bytes::len).sum());
    as_json(response(StatusCode::OK, Kind::Batch(pieces.into_iter(), size)))
}

/// A JSON response that starts with white space while its answer is pending.
pub(crate) fn late(answer: Events) -> Response<Body> {
    as_json(response(StatusCode::OK, Kind::Events(Box::new(answer))))
}

/// A response with a stream of events.
pub(crate) fn events(events: Events) -> Response<Body> {
    let mut response = response(StatusCode::OK, Kind::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(&UNBUFFERED, HeaderValue::from_static("no"));
    response
}

fn as_json(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn response(status: StatusCode, kind: Kind) -> Response<Body> {
    let mut response = Response::new(Body { kind, busy: None });
    *response.status_mut() = status;
    response
}

fn length(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

// === impl Body ===

impl Body {
    /// Keeps the connection busy until the body is dropped.
    pub(crate) fn with(self, busy: Busy) -> Self {
        if matches!(self.kind, Kind::Streamed(_)) {
            busy.set_streaming();
        }
        Self { busy: Some(busy), ..self }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Self { kind, busy } = &mut *self;
        let piece = match kind {
            Kind::Empty => None,
            Kind::One(whole) => {
                let whole = std::mem::take(whole);
                self.kind = Kind::Empty;
                Some(whole)
            }
            Kind::Partly(parts, left) => take(parts, left),
            Kind::Batch(pieces, left) => take(pieces, left),
            Kind::Events(events) => match events.poll_next(cx) {
                Poll::Ready(piece) => piece,
                Poll::Pending if busy.as_ref().is_some_and(Busy::take_probe) => Some(events.beat()),
                Poll::Pending => return Poll::Pending,
            },
            Kind::Streamed(streamed) => match ready!(streamed.0.poll_next(cx)).transpose() {
                Ok(piece) => piece,
                // The server broke off. Only a cut connection shows the client that the answer is
                // incomplete.
                Err(cut) => return Poll::Ready(Some(Err(cut))),
            },
        };
        if piece.is_none() {
            // The resources of a stream are released at its end, not with its connection.
            self.kind = Kind::Empty;
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::One(_) | Kind::Events(_) | Kind::Streamed(_) => false,
            Kind::Partly(_, left) | Kind::Batch(_, left) => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::One(whole) => SizeHint::with_exact(length(whole.len())),
            Kind::Partly(_, left) | Kind::Batch(_, left) => SizeHint::with_exact(*left),
            Kind::Events(_) | Kind::Streamed(_) => SizeHint::default(),
        }
    }
}

fn take(pieces: &mut impl Iterator<Item = Bytes>, left: &mut u64) -> Option<Bytes> {
    let piece = pieces.find(|piece| !piece.is_empty())?;
    *left = left.saturating_sub(length(piece.len()));
    Some(piece)
}
