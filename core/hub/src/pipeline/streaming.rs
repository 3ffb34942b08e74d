//! A streamed answer: screened piece by piece and recorded at its end.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use capstan_model::{CallError, ItemId, ServerName};
use capstan_safety::scan::{Severity, Surface, scan};
use capstan_wire::Json;
use tracing::warn;

use super::record::OpenEntry;
use super::screen::{Origin, Screened, Shape, check_size};
use crate::catalog::StreamedUris;
use crate::life::Lease;
use crate::trace::Ending;
use crate::{Flow, Outcome};

/// An answer as a front delivers it.
pub enum Delivery {
    /// A complete answer.
    Whole(Screened),
    /// A large answer that is still arriving.
    Streaming(Box<Streaming>),
}

/// An answer that is delivered while it arrives.
///
/// If the answer breaks off or exceeds the size limit after a part was delivered, it ends with an
/// error, and the front must abort its response. The call is recorded when the answer ends, or as
/// abandoned if this value is dropped earlier.
pub struct Streaming {
    stream: Stream,
    /// The open audit entry; `None` after it was recorded.
    entry: Option<OpenEntry>,
}

/// An answer that is screened while it arrives.
pub(super) struct Stream {
    pub(super) origin: Origin,
    pub(super) flow: Box<Flow>,
    pub(super) limit: usize,
    /// Shows the URIs of the answer where all servers are seen as one.
    pub(super) uris: Option<StreamedUris>,
    /// Looks for suspicious text.
    pub(super) flagger: Option<Flagger>,
    /// Held until the answer is complete.
    pub(super) _lease: Lease,
}

/// Looks for suspicious text in an answer that passes, and logs the first find. Holds at most
/// [`WINDOW`] bytes.
#[derive(Debug, Default)]
pub(super) struct Flagger {
    held: Vec<u8>,
    is_done: bool,
}

/// Bytes of an answer that are scanned together.
const WINDOW: usize = 64 * 1024;

/// Bytes of a window that are scanned again with the next one.
const OVERLAP: usize = 1024;

// === impl Delivery ===

impl Delivery {
    /// The server that answers.
    pub fn server(&self) -> &ServerName {
        match self {
            Self::Whole(screened) => screened.server(),
            Self::Streaming(streaming) => streaming.server(),
        }
    }

    /// Waits for the complete answer.
    ///
    /// # Errors
    /// When it breaks off, or is too large.
    pub async fn whole(self) -> Result<Screened, CallError> {
        match self {
            Self::Whole(screened) => Ok(screened),
            Self::Streaming(streaming) => streaming.whole().await,
        }
    }
}

// === impl Streaming ===

impl Streaming {
    pub(super) fn new(stream: Stream, entry: OpenEntry) -> Self {
        Self { stream, entry: Some(entry) }
    }

    /// The server that answers.
    pub fn server(&self) -> &ServerName {
        &self.stream.origin.id().server
    }

    /// The properties of the result, as far as it has arrived.
    pub fn shape(&self) -> Shape {
        self.stream.flow.shape()
    }

    /// True if the answer may turn out to be too large: its length is, or is not known. Then the
    /// front must wait for [all of it](Delivery::whole), to be able to send an error.
    pub fn may_be_too_large(&self) -> bool {
        self.stream.flow.may_exceed(self.stream.limit)
    }

    /// Adds a function that is called with the ending of the answer.
    pub fn watched(&mut self, watcher: impl FnOnce(Ending) + Send + 'static) {
        self.stream.flow.watched(watcher);
    }

    /// Returns the next piece of the result, without its closing brace. `None` means that the
    /// result is complete and may be closed.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, CallError>> {
        let Some(entry) = &mut self.entry else { return Poll::Ready(Ok(None)) };
        let next = ready!(self.stream.poll_next(cx));
        let ending = match &next {
            Ok(Some(piece)) => {
                entry.add(piece.len());
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
            // The closing brace.
            entry.add(1);
        }
        if let Some(entry) = self.entry.take() {
            entry.end(outcome);
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
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, CallError>> {
        loop {
            let next = ready!(self.flow.poll_next(cx))?;
            check_size(self.limit, || self.origin.id().to_string(), self.flow.size())?;
            if let Some(flagger) = &mut self.flagger {
                flagger.push(self.origin.id(), next.as_deref());
            }
            let next = match (next, &mut self.uris) {
                (Some(piece), Some(uris)) => Some(uris.push(piece)),
                (next, _) => next,
            };
            // All of a piece may be held back.
            if next.as_ref().is_none_or(|piece| !piece.is_empty()) {
                return Poll::Ready(Ok(next));
            }
        }
    }
}

// === impl Flagger ===

impl Flagger {
    /// Takes the next piece; `None` is the end.
    fn push(&mut self, id: &ItemId, piece: Option<&[u8]>) {
        if self.is_done {
            return;
        }
        match piece {
            Some(piece) => {
                for part in piece.chunks(WINDOW) {
                    if self.held.len() + part.len() > WINDOW {
                        self.look(id);
                    }
                    self.held.extend_from_slice(part);
                }
            }
            None => self.look(id),
        }
    }

    /// Scans the bytes that are held, and keeps the last of them.
    fn look(&mut self, id: &ItemId) {
        // Escapes are undone as far as a scan needs it.
        let text = String::from_utf8_lossy(&self.held).replace("\\n", "\n").replace("\\\"", "\"");
        let findings = scan(&text, Surface::Answer);
        if let Some(found) = findings.iter().find(|one| one.severity >= Severity::Medium) {
            let (server, item, class) = (&id.server, &id.item, found.class.as_str());
            warn!(%server, ?item, mode = "flag", class, "an answer is suspicious: {}", found.excerpt);
            self.is_done = true;
        }
        let kept = self.held.len().saturating_sub(OVERLAP);
        self.held.drain(..kept);
    }
}
