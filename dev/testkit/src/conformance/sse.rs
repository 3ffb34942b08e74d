//! A stream of messages as the body of an answer.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use super::stream::{Event, Reader};

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Milliseconds after which a client may come back for a stream that broke off.
const RETRY_MS: u32 = 50;

/// How messages are marked in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Not at all.
    None,
    /// With an id, by which the stream can be taken up again.
    Ids,
    /// With the name that HTTP with SSE has for messages.
    Names,
}

/// A stream that is sent as it comes.
pub(super) struct Sse {
    pub(super) reader: Reader,
    pub(super) marks: Marks,
    /// What goes before the first message.
    pub(super) head: String,
    /// Is dropped when the stream ends, or when the client goes away.
    pub(super) guard: Option<Box<dyn Send>>,
}

// === impl Sse ===

impl Sse {
    pub(super) fn new(reader: Reader, marks: Marks) -> Self {
        Self { reader, marks, head: String::new(), guard: None }
    }

    /// Lets the client know from which place on to take up the stream, before anything is sent.
    pub(super) fn primed(mut self, place: usize) -> Self {
        let number = self.reader.stream().number;
        self.head = format!("id: {number}-{place}\nretry: {RETRY_MS}\ndata: \n\n");
        self
    }

    pub(super) fn response(self) -> Response<Body> {
        let frames = stream::unfold(self, async |mut sse| {
            let text = if sse.head.is_empty() {
                let event = sse.reader.next().await?;
                sse.encode(&event)
            } else {
                std::mem::take(&mut sse.head)
            };
            Some((Ok(Frame::data(Bytes::from(text))), sse))
        });
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

    fn encode(&self, event: &Event) -> String {
        let Event { place, line } = event;
        match self.marks {
            Marks::None => format!("data: {line}\n\n"),
            Marks::Ids => {
                let number = self.reader.stream().number;
                format!("id: {number}-{place}\nevent: message\ndata: {line}\n\n")
            }
            Marks::Names => format!("event: message\ndata: {line}\n\n"),
        }
    }
}

/// The stream and the place in it that an id of ours stands for.
pub(super) fn place(id: &str) -> Option<(u64, usize)> {
    let (number, place) = id.split_once('-')?;
    Some((number.parse().ok()?, place.parse().ok()?))
}

/// A body that is known whole.
pub(super) fn whole(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}
