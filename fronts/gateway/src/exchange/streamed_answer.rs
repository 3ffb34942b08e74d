//! Answers that are sent to the client while the server still sends them.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use capstan_hub::trace::{Ending, Span};
use capstan_hub::{Delivery, Hub, Screened, Shape, Streaming};
use capstan_model::rpc_code::INTERNAL;
use capstan_model::{CallError, Kind};
use capstan_wire::RequestId;
use futures::FutureExt as _;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::exchange::answer::Payload;
use crate::metrics::CallTimer;
use crate::protocol::era::Era;
use crate::protocol::fault::{Fault, tool_error};

/// A result that is sent while the server still sends it, in the client's era.
pub struct StreamedAnswer {
    /// The text before the result, until it is sent.
    head: Option<Bytes>,
    streaming: Box<Streaming>,
    kind: Kind,
    era: Era,
    is_closed: bool,
    delivered: Option<InFlight>,
}

/// The request that a streamed answer belongs to. It counts as running and can be cancelled.
pub(crate) struct InFlight {
    client: Arc<Client>,
    id: RequestId,
    /// Ends when the request is cancelled.
    until: JoinHandle<()>,
}

/// The outcome of a task.
pub(crate) enum Done {
    Payload(Payload),
    Streamed(Box<StreamedAnswer>),
}

/// The form of answer that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// A large answer may be streamed.
    Streamed,
}

/// The error of an answer that was cut off. Its connection must be closed.
#[derive(Debug, thiserror::Error)]
#[error("an answer was interrupted while it was sent")]
pub struct Cut(#[source] Option<CallError>);

/// The beginning of an answer.
pub(crate) enum Begun {
    /// An answer that is sent while it arrives.
    Streamed(StreamedAnswer),
    /// A complete answer.
    Whole(Screened),
    /// No answer.
    Failed(CallError),
}

/// Streams an answer if its client accepts that; otherwise waits for the complete answer.
///
/// Metrics and the span of the call record its end.
pub(crate) async fn begin(
    delivered: Result<Delivery, CallError>,
    kind: Kind,
    era: Era,
    counted: CallTimer,
    span: Option<Box<dyn Span>>,
    hub: &Arc<Hub>,
) -> Begun {
    let told = move |ending: Ending| {
        counted.end(ending);
        if let Some(span) = span {
            span.end(ending);
        }
    };
    let result = match delivered {
        Ok(Delivery::Whole(screened)) => Ok(screened),
        // Members can only be removed from a complete answer, and an answer that may become too
        // large must not begin.
        Ok(Delivery::Streaming(mut streaming))
            if (era.allows_any_structure() || !streaming.shape().odd_structure)
                && !streaming.may_be_too_large() =>
        {
            // The hub keeps the server open while the answer streams.
            let hub = Arc::clone(hub);
            streaming.watched(move |ending| {
                told(ending);
                drop(hub);
            });
            let (head, delivered) = (None, None);
            let is_closed = false;
            let streamed = StreamedAnswer { head, streaming, kind, era, is_closed, delivered };
            return Begun::Streamed(streamed);
        }
        Ok(delivery) => Box::pin(delivery.whole()).await,
        Err(error) => Err(error),
    };
    told(match &result {
        Ok(screened) if screened.is_error() => Ending::ToolError,
        Ok(_) => Ending::Answered,
        Err(error) => Ending::failed(error),
    });
    result.map_or_else(Begun::Failed, Begun::Whole)
}

// === impl StreamedAnswer ===

impl StreamedAnswer {
    /// Sets the text before the result, and the request that it answers.
    pub(crate) fn begins(&mut self, head: Bytes, delivered: Option<InFlight>) {
        (self.head, self.delivered) = (Some(head), delivered);
    }

    /// Polls the next piece; `None` after the last one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(head)));
        }
        if self.is_closed {
            return Poll::Ready(None);
        }
        let is_taken_back = |one: &mut InFlight| one.until.poll_unpin(cx).is_ready();
        if self.delivered.as_mut().is_some_and(is_taken_back) {
            self.is_closed = true;
            return Poll::Ready(Some(Err(Cut(None))));
        }
        let next = ready!(self.streaming.poll_next(cx));
        Poll::Ready(Some(match next {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => {
                self.is_closed = true;
                Ok(self.tail())
            }
            Err(error) => {
                tracing::debug!(%error, "an answer is cut");
                self.is_closed = true;
                Err(Cut(Some(error)))
            }
        }))
    }

    /// Collects the complete answer; an error holds the replacement answer.
    pub(crate) async fn whole(mut self) -> Result<Bytes, Result<Payload, Fault>> {
        let mut text = BytesMut::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await {
            text.extend_from_slice(&piece.map_err(|cut| self.instead(&cut))?);
        }
        Ok(text.freeze())
    }

    /// The replacement for a result that failed before any of it was sent.
    fn instead(&self, cut: &Cut) -> Result<Payload, Fault> {
        let result = cut.0.as_ref().filter(|_| self.kind == Kind::Tool).and_then(tool_error);
        if let Some(result) = result {
            return Ok(self.era.result(&result, &Shape::default(), self.kind));
        }
        let why = cut.0.as_ref().map_or_else(|| cut.to_string(), ToString::to_string);
        Err(Fault::new(INTERNAL, why))
    }

    /// The end of the result and of the message. A streamed result is never empty.
    fn tail(&self) -> Bytes {
        let members = self.era.missing_members(&self.streaming.shape(), self.kind);
        let comma = if members.is_empty() { "" } else { "," };
        format!("{comma}{members}}}}}").into()
    }
}

// === impl InFlight ===

impl InFlight {
    pub(crate) fn new(client: Arc<Client>, id: &RequestId) -> Self {
        let until = tokio::spawn(pending());
        client.continues(id, until.abort_handle());
        Self { client, id: id.clone(), until }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.until.abort();
        self.client.finished(&self.id);
    }
}

// === impl Done ===

impl From<Payload> for Done {
    fn from(payload: Payload) -> Self {
        Self::Payload(payload)
    }
}
