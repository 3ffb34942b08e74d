//! A streamed answer: the bytes of a reply as they arrive, and the parser that walks over them.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use capstan_model::{CallError, ServerName};
use capstan_wire::{NoReply, Walk};

use crate::pipeline::Shape;
use crate::trace::Ending;

/// The maximum size of a reply outside its result, in bytes.
const MAX_AROUND: usize = 256 * 1024;

/// The source of the rest of a reply. Dropping it informs the server that the reply is not needed.
pub trait Source: Send {
    /// Returns the next piece of the reply; `None` at its end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>>;
}

/// A streamed reply that is known to answer its request with a result.
///
/// It yields the result, byte for byte and without its closing brace. The code that delivers it
/// adds the brace after the whole reply has arrived and is valid.
pub struct Flow {
    server: ServerName,
    walk: Walk,
    /// Pieces that were parsed and not yet returned.
    walked: VecDeque<Bytes>,
    /// Bytes of the reply that were returned or are not part of the result.
    passed: usize,
    /// The length of the whole reply, if the server has said it.
    length: Option<u64>,
    rest: Box<dyn Source>,
    /// Called with the ending.
    watchers: Vec<Watcher>,
}

/// The beginning of a reply that is known to answer its request with a result.
pub struct Begun {
    walk: Walk,
    came: Vec<Bytes>,
}

/// A function that is called with the ending. It is dropped uncalled if the answer is abandoned.
pub(crate) type Watcher = Box<dyn FnOnce(Ending) + Send>;

// === impl Begun ===

impl Begun {
    /// Examines the pieces of a reply to the request `id` that have arrived.
    ///
    /// # Errors
    /// Returns the pieces if they do not show yet that the reply can be streamed, or if the result
    /// is a question or a task. Such a reply must be read as a whole.
    pub fn look(id: u64, came: Vec<Bytes>) -> Result<Self, Vec<Bytes>> {
        let mut walk = Walk::new(&Shape::KEYS);
        let walked = came.iter().try_for_each(|piece| walk.push(piece));
        if walked.is_ok() && walk.answers(id) && walk.has_members() && is_complete(&walk) {
            Ok(Self { walk, came })
        } else {
            Err(came)
        }
    }

    /// Adds the length of the whole reply, if the server has said it, and the source of the rest.
    pub fn flow(
        self,
        server: ServerName,
        length: Option<u64>,
        rest: impl Source + 'static,
    ) -> Box<Flow> {
        let Self { walk, came } = self;
        let (walked, rest, watchers) = (came.into(), Box::new(rest), Vec::new());
        Box::new(Flow { server, walk, walked, passed: 0, length, rest, watchers })
    }
}

// === impl Flow ===

impl Flow {
    /// Adds a function that is called with the ending of the answer.
    pub fn watched(&mut self, watcher: impl FnOnce(Ending) + Send + 'static) {
        self.watchers.push(Box::new(watcher));
    }

    pub(crate) fn take_watchers(&mut self) -> Vec<Watcher> {
        std::mem::take(&mut self.watchers)
    }

    /// Returns the next piece of the result; `None` when the reply is complete and valid.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, CallError>> {
        loop {
            let piece = match self.walked.pop_front() {
                Some(piece) => piece,
                None => match ready!(self.poll_walked(cx))? {
                    Some(piece) => piece,
                    None => return Poll::Ready(Ok(None)),
                },
            };
            let inside = self.cut(piece);
            if !inside.is_empty() {
                return Poll::Ready(Ok(Some(inside)));
            }
        }
    }

    /// Returns the next piece of the reply after parsing it.
    fn poll_walked(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, CallError>> {
        let next = ready!(self.rest.poll_next(cx)).transpose()?;
        let walked = match &next {
            Some(piece) => self.walk.push(piece),
            None => self.walk.finish(),
        };
        walked.map_err(|why| self.broken(why))?;
        if self.walk.around() > MAX_AROUND {
            let problem = "the parts of an answer outside its result are too large".to_owned();
            return Poll::Ready(Err(CallError::Protocol { server: self.server.clone(), problem }));
        }
        if is_complete(&self.walk) { Poll::Ready(Ok(next)) } else { Poll::Ready(Err(self.late())) }
    }

    /// True if the result may be larger than `limit`: by the length that the server has said, or
    /// because it has said none.
    pub(crate) fn may_exceed(&self, limit: usize) -> bool {
        let around = self.walk.inside().start;
        self.length
            .and_then(|length| usize::try_from(length).ok())
            .is_none_or(|length| length.saturating_sub(around) > limit)
    }

    /// The size of the result, as far as it has arrived.
    pub(crate) fn size(&self) -> usize {
        self.walk.inside().len() + 1
    }

    /// The properties of the result, as far as it has arrived.
    pub(crate) fn shape(&self) -> Shape {
        Shape::walked(&self.walk)
    }

    /// Returns the part of a piece that belongs to the result.
    fn cut(&mut self, piece: Bytes) -> Bytes {
        let (start, length) = (self.passed, piece.len());
        self.passed += length;
        let inside = self.walk.inside();
        let from = inside.start.saturating_sub(start).min(length);
        let to = inside.end.saturating_sub(start).clamp(from, length);
        if (from, to) == (0, length) { piece } else { piece.slice(from..to) }
    }

    fn broken(&self, why: NoReply) -> CallError {
        let problem = format!("an answer was interrupted: {why}");
        CallError::Protocol { server: self.server.clone(), problem }
    }

    fn late(&self) -> CallError {
        let problem = "a large answer turned out to be an error".to_owned();
        CallError::Protocol { server: self.server.clone(), problem }
    }
}

/// True if nothing so far marks the result as a question or a task. Those are recognized by their
/// type and never streamed.
fn is_complete(walk: &Walk) -> bool {
    walk.noted("resultType").is_none_or(|noted| {
        noted.value.as_ref().is_some_and(|value| value.as_bytes() == b"\"complete\"")
    })
}
