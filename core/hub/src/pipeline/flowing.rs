//! An answer that is delivered while it comes: screened piece by piece, and recorded at its end.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use capstan_model::{CallError, ServerName};
use capstan_wire::Json;

use super::record::Kept;
use super::screen::{Origin, Screened, Shape, check_size};
use crate::life::Lease;
use crate::trace::Ending;
use crate::{Flow, Outcome};

/// What a front delivers.
pub enum Delivery {
    /// All of an answer.
    Whole(Screened),
    /// A large one that is still coming.
    Flowing(Box<Flowing>),
}

/// An answer that is delivered while it comes.
///
/// What breaks or turns out too large ends with an error when some of it is out already; whoever
/// delivers it then has to break off too. It is written down when it has ended, and as abandoned when
/// it is dropped before.
pub struct Flowing {
    stream: Stream,
    /// `None` when it is written down.
    kept: Option<Kept>,
}

/// An answer that is screened while it comes.
pub(super) struct Stream {
    origin: Origin,
    flow: Box<Flow>,
    limit: usize,
    /// Held until the answer has come.
    _lease: Lease,
}

// === impl Delivery ===

impl Delivery {
    /// All of it.
    ///
    /// # Errors
    /// When it breaks, or is too large.
    pub async fn whole(self) -> Result<Screened, CallError> {
        match self {
            Self::Whole(screened) => Ok(screened),
            Self::Flowing(flowing) => flowing.whole().await,
        }
    }
}

// === impl Flowing ===

impl Flowing {
    pub(super) fn new(stream: Stream, kept: Kept) -> Self {
        Self { stream, kept: Some(kept) }
    }

    /// Who answers.
    pub fn server(&self) -> &ServerName {
        &self.stream.origin.id().server
    }

    /// What the result is, as far as it has come.
    pub fn shape(&self) -> Shape {
        self.stream.flow.shape()
    }

    /// Has somebody told how it ends.
    pub fn watched(&mut self, watcher: impl FnOnce(Ending) + Send + 'static) {
        self.stream.flow.watched(watcher);
    }

    /// The next piece of the result, without the brace that closes it; `None` when all of it has
    /// come and may be closed.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, CallError>> {
        let Some(kept) = &mut self.kept else { return Poll::Ready(Ok(None)) };
        let next = ready!(self.stream.poll_next(cx));
        let ending = match &next {
            Ok(Some(piece)) => {
                kept.add(piece.len());
                return Poll::Ready(next);
            }
            Ok(None) if self.stream.flow.shape().is_error => Ending::ToolError,
            Ok(None) => Ending::Answered,
            Err(error) => Ending::failed(error),
        };
        let outcome = match ending {
            Ending::Answered => Outcome::Answered,
            Ending::ToolError => Outcome::ToolError,
            Ending::Failed { code, .. } => Outcome::Failed(code),
        };
        if next.is_ok() {
            // The brace.
            kept.add(1);
        }
        if let Some(kept) = self.kept.take() {
            kept.end(outcome);
        }
        for watcher in self.stream.flow.take_watchers() {
            watcher(ending);
        }
        Poll::Ready(next)
    }

    async fn whole(mut self) -> Result<Screened, CallError> {
        let mut text = BytesMut::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await? {
            text.extend_from_slice(&piece);
        }
        text.extend_from_slice(b"}");
        match Json::parse(text) {
            Ok(result) => Ok(Screened::new(self.stream.origin, result)),
            Err(error) => {
                let (server, problem) = (self.server().clone(), error.to_string());
                Err(CallError::Protocol { server, problem })
            }
        }
    }
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(limit: usize, origin: Origin, flow: Box<Flow>, lease: Lease) -> Self {
        Self { origin, flow, limit, _lease: lease }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, CallError>> {
        let next = ready!(self.flow.poll_next(cx))?;
        check_size(self.limit, || self.origin.id().to_string(), self.flow.size())?;
        Poll::Ready(Ok(next))
    }
}
