//! A stream of server-sent events, fed by a request, a client's inbox, or a client of HTTP+SSE.
//!
//! Nothing is buffered: the next event is polled when the connection has room for it. A client that
//! does not read is disconnected by a timeout. Everything that the stream holds ends with it,
//! unless it can be resumed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use capstan_wire::line::{flatten, one_line};
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::transport::http::legacy_sse::LegacyEvents;
use crate::transport::http::response::resume::Reader;
use crate::transport::http::sessions::SessionGuard;
use crate::{Exchange, Out};

const START: &str = "event: message\ndata: ";
const END: &[u8] = b"\n\n";
const BEAT: &[u8] = b":\n\n";

/// Answers up to this size are copied into one buffer.
const SMALL: usize = 16 * 1024;

/// A stream of events.
pub(crate) struct Events {
    /// Bytes to send next.
    ready: VecDeque<Bytes>,
    source: Source,
    form: Form,
    beat: Interval,
    /// The session, which is not idle while the stream is open.
    session: Option<SessionGuard>,
}

/// The format of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Events,
    /// Only the answer, for a client that accepts no events. White space may precede it.
    Json,
    /// The answers of a batch as one array, for a client that accepts no events.
    JsonArray {
        /// True after the first answer.
        has_some: bool,
    },
}

/// The source of events.
pub(crate) enum Source {
    /// One request, or several.
    Request(BoxStream<'static, Out>),
    /// Messages that belong to no request.
    Inbox(mpsc::Receiver<Bytes>),
    /// All messages to a client of HTTP+SSE.
    LegacyStream(LegacyEvents),
    /// A stream that another connection can resume.
    Resumable(Reader),
}

/// The output of a request as a stream.
pub(crate) fn outs(exchange: Exchange) -> BoxStream<'static, Out> {
    let next = |mut exchange: Exchange| async move {
        let out = exchange.next().await?;
        Some((out, exchange))
    };
    // Boxed, so that a pending `next` continues at the next poll instead of starting anew.
    stream::unfold(exchange, next).boxed()
}

// === impl Events ===

impl Events {
    pub(crate) fn new(source: Source, keep_alive: Duration) -> Self {
        let mut beat = interval_at(Instant::now() + keep_alive, keep_alive);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (ready, form) = (VecDeque::new(), Form::Events);
        Self { ready, source, form, beat, session: None }
    }

    /// Keeps a session from being idle while the stream is open.
    pub(crate) fn of(self, session: Option<SessionGuard>) -> Self {
        Self { session, ..self }
    }

    /// Sets the format; must be called before the first write.
    pub(crate) fn written_as(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Sends a probe at once, to find out if the client is still connected.
    pub(crate) fn probing(mut self) -> Self {
        self.ready.push_back(self.beat());
        self
    }

    /// Keep-alive bytes without content.
    pub(crate) fn beat(&self) -> Bytes {
        self.form.beat()
    }

    /// Queues bytes before the first event.
    pub(crate) fn begin(&mut self, first: Bytes) {
        self.ready.push_back(first);
    }

    /// Queues an event of another type before the first message.
    pub(crate) fn push_event(&mut self, event: &str, data: &str) {
        self.ready.push_back(format!("event: {event}\ndata: {data}\n\n").into());
    }

    /// Polls the next piece; `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            while let Some(piece) = self.ready.pop_front() {
                if !piece.is_empty() {
                    return Poll::Ready(Some(piece));
                }
            }
            let next = match &mut self.source {
                Source::Resumable(reader) => reader.poll_next(cx),
                source @ (Source::Request(_) | Source::Inbox(_) | Source::LegacyStream(_)) => {
                    source
                        .poll_next(cx)
                        .map(|out| out.map(|out| self.form.pieces(out, self.session.as_ref())))
                }
            };
            match next {
                Poll::Ready(Some(event)) => self.ready.extend(event),
                Poll::Ready(None) => return Poll::Ready(self.form.end()),
                Poll::Pending => {
                    let beat = self.beat.poll_tick(cx);
                    return beat.map(|_| Some(self.beat()));
                }
            }
        }
    }
}

// === impl Form ===

impl Form {
    fn beat(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Events => BEAT,
            Self::Json | Self::JsonArray { .. } => b" ",
        })
    }

    /// The last bytes of a stream; `None` if they are written, or if there are none.
    fn end(&mut self) -> Option<Bytes> {
        let Self::JsonArray { has_some } = *self else { return None };
        *self = Self::Json;
        Some(Bytes::from_static(if has_some { b"]" } else { b"[]" }))
    }

    fn pieces(&mut self, out: Out, session: Option<&SessionGuard>) -> Vec<Bytes> {
        match (self, out) {
            (Self::Events, out) => pieces(out, None),
            (Self::Json, Out::Answer(answer)) => answer.pieces().into(),
            (Self::JsonArray { has_some }, Out::Answer(answer)) => {
                let separator = if std::mem::replace(has_some, true) { "," } else { "[" };
                [Bytes::from_static(separator.as_bytes())]
                    .into_iter()
                    .chain(answer.pieces())
                    .collect()
            }
            (Self::Json | Self::JsonArray { .. }, Out::Message(message)) => {
                if let Some(session) = session {
                    session.client().unheard(&message);
                }
                Vec::new()
            }
        }
    }
}

// === impl Source ===

impl Source {
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Out>> {
        match self {
            Self::Request(outs) => outs.poll_next_unpin(cx),
            Self::Inbox(inbox) => inbox.poll_recv(cx).map(|message| message.map(Out::Message)),
            Self::LegacyStream(line) => line.poll_next(cx),
            // Its reader composes complete events.
            Self::Resumable(_) => Poll::Ready(None),
        }
    }
}

/// Composes one event, in pieces so that a large answer is not copied.
pub(crate) fn pieces(out: Out, id: Option<&str>) -> Vec<Bytes> {
    let start = match id {
        Some(id) => Cow::Owned(format!("event: message\nid: {id}\ndata: ")),
        None => Cow::Borrowed(START),
    };
    let whole = match out {
        Out::Message(message) => message,
        Out::Answer(answer) if answer.len() <= SMALL => {
            let mut whole = Vec::with_capacity(answer.len());
            answer.write_into(&mut whole);
            whole.into()
        }
        Out::Answer(answer) => {
            let mut all = vec![Bytes::from(start.into_owned())];
            all.extend(answer.pieces().map(one_line));
            all.push(Bytes::from_static(END));
            return all;
        }
    };
    let mut event = BytesMut::with_capacity(start.len() + whole.len() + END.len());
    event.put_slice(start.as_bytes());
    event.put_slice(&whole);
    if let Some(text) = event.get_mut(start.len()..) {
        flatten(text);
    }
    event.put_slice(END);
    vec![event.freeze()]
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use capstan_wire::RequestId;

    use super::*;
    use crate::Answer;

    fn drain(mut events: Events) -> String {
        let mut cx = Context::from_waker(Waker::noop());
        let mut text = Vec::new();
        while let Poll::Ready(Some(piece)) = events.poll_next(&mut cx) {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).unwrap()
    }

    fn request(outs: Vec<Out>) -> Events {
        let source = Source::Request(stream::iter(outs).boxed());
        Events::new(source, Duration::from_secs(15))
    }

    #[tokio::test]
    async fn each_message_is_one_event_on_one_line() {
        let outs = vec![
            Out::Message(Bytes::from_static(b"{\"a\":\r\n1}")),
            Out::Answer(Answer::error(Some(&RequestId::Number(7)), -32603, "no")),
        ];
        let expected = concat!(
            "event: message\ndata: {\"a\":  1}\n\n",
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,",
            "\"error\":{\"code\":-32603,\"message\":\"no\"}}\n\n",
        );
        assert_eq!(drain(request(outs)), expected);
    }

    #[tokio::test]
    async fn a_large_answer_is_one_event_too() {
        let words = "x".repeat(3 * SMALL);
        let answer = Answer::error(None, 1, &words);
        let text = drain(request(vec![Out::Answer(answer)]));
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("event: message\ndata: {") && text.ends_with("}\n\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_on_which_nothing_happens_shows_that_it_is_alive() {
        let source = Source::Request(stream::pending().boxed());
        let mut events = Events::new(source, Duration::from_secs(15));
        for _ in 0..3 {
            let piece = std::future::poll_fn(|cx| events.poll_next(cx)).await;
            assert_eq!(piece.as_deref(), Some(BEAT));
        }
    }
}
