//! Answers that are sent while they come.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use capstan_hub::trace::{Ending, Span};
use capstan_hub::{Delivery, Flowing, Screened, Shape};
use capstan_model::{CallError, Kind};

use crate::exchange::Payload;
use crate::metrics::Counted;

/// A result that is sent while it comes, in the client's revision.
pub struct Delivering {
    /// What stands before the result; `None` when it is out.
    head: Option<Bytes>,
    flowing: Box<Flowing>,
    kind: Kind,
    words: Words,
    is_closed: bool,
}

/// What is sent in the place of a result.
pub(crate) enum Done {
    Payload(Payload),
    Coming(Box<Delivering>),
}

/// Whose words a result is told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    Legacy,
    Modern,
}

/// In which form a client takes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// A large one may come in parts.
    Coming,
}

/// Why an answer that was begun is not ended: its connection has to be cut.
#[derive(Debug, thiserror::Error)]
#[error("an answer broke while it was sent")]
pub struct Cut(#[source] CallError);

/// Gives out an answer that is still coming, where its client can have it as it comes; waits for all
/// of it where not. Whoever counts and watches the call is told its end.
pub(crate) async fn begin(
    delivered: Result<Delivery, CallError>,
    (kind, words): (Kind, Words),
    counted: Counted,
    span: Option<Box<dyn Span>>,
) -> Result<Delivering, Result<Screened, CallError>> {
    let told = move |ending: Ending| {
        counted.end(ending);
        if let Some(span) = span {
            span.end(ending);
        }
    };
    let result = match delivered {
        // What is to be left out is looked for in all of it.
        Ok(Delivery::Flowing(mut flowing))
            if words == Words::Modern || !flowing.shape().odd_structure =>
        {
            flowing.watched(told);
            return Ok(Delivering { head: None, flowing, kind, words, is_closed: false });
        }
        Ok(delivery) => delivery.whole().await,
        Err(error) => Err(error),
    };
    told(match &result {
        Ok(screened) if screened.is_error() => Ending::ToolError,
        Ok(_) => Ending::Answered,
        Err(error) => Ending::failed(error),
    });
    Err(result)
}

/// What modern clients expect of every result and this one does not have, as members.
pub(crate) fn missing(shape: &Shape, kind: Kind) -> String {
    let mut members = String::new();
    if shape.result_type.is_none() {
        members.push_str(r#""resultType":"complete""#);
    }
    if kind == Kind::Resource && !shape.has_ttl {
        let comma = if members.is_empty() { "" } else { "," };
        members.push_str(comma);
        members.push_str(r#""ttlMs":0,"cacheScope":"private""#);
    }
    members
}

// === impl Delivering ===

impl Delivering {
    /// The same, with what stands before the result.
    pub(crate) fn after(mut self, head: Bytes) -> Self {
        self.head = Some(head);
        self
    }

    /// The next piece; `None` behind the last.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(head)));
        }
        if self.is_closed {
            return Poll::Ready(None);
        }
        let next = ready!(self.flowing.poll_next(cx));
        Poll::Ready(Some(match next {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => {
                self.is_closed = true;
                Ok(self.tail())
            }
            Err(error) => {
                tracing::debug!(%error, "an answer is cut");
                Err(Cut(error))
            }
        }))
    }

    /// All of it in one piece.
    pub(crate) async fn whole(mut self) -> Result<Bytes, CallError> {
        let mut text = BytesMut::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await {
            text.extend_from_slice(&piece.map_err(|Cut(error)| error)?);
        }
        Ok(text.freeze())
    }

    /// What closes the result and the message. It is large, so that members stand before it.
    fn tail(&self) -> Bytes {
        let members = match self.words {
            Words::Legacy => String::new(),
            Words::Modern => missing(&self.flowing.shape(), self.kind),
        };
        let comma = if members.is_empty() { "" } else { "," };
        format!("{comma}{members}}}}}").into()
    }
}

// === impl Done ===

impl From<Payload> for Done {
    fn from(payload: Payload) -> Self {
        Self::Payload(payload)
    }
}
