//! An answer that is still coming: the bytes of a reply as they arrive, and the walk over them.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use capstan_model::{CallError, ServerName};
use capstan_wire::{NoReply, Walk};

use crate::pipeline::Shape;
use crate::trace::Ending;

/// How much of a reply may stand around its result, in bytes.
const MAX_AROUND: usize = 256 * 1024;

/// Where the rest of a reply comes from. Dropping it tells the server that nobody waits any more.
pub trait Source: Send {
    /// The next piece of the reply; `None` when no more comes.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>>;
}

/// A reply whose beginning has come, and of which it is known whom it is for and that it is a result.
///
/// It gives out the result, byte for byte and without the brace that closes it: whoever delivers it
/// closes it, when all of the reply has come and was found good.
pub struct Flow {
    server: ServerName,
    walk: Walk,
    /// What has been walked over and not been given out.
    walked: VecDeque<Bytes>,
    /// Bytes of the reply that have been given out, or were none of the result.
    passed: usize,
    rest: Box<dyn Source>,
    /// Who is to know how it ends.
    watchers: Vec<Watcher>,
}

/// The beginning of a reply of which it is known whom it is for and that it is a result.
pub struct Begun {
    walk: Walk,
    came: Vec<Bytes>,
}

/// Is told how something ends; dropped when nobody waits for the end.
pub(crate) type Watcher = Box<dyn FnOnce(Ending) + Send>;

// === impl Begun ===

impl Begun {
    /// The reply to the request with that id, of which these pieces have come.
    ///
    /// # Errors
    /// When it is not known to be one, or says that it asks for something or is a task. Then it can
    /// only be looked at as a whole.
    pub fn look(id: u64, came: Vec<Bytes>) -> Result<Self, Vec<Bytes>> {
        let mut walk = Walk::new(&Shape::KEYS);
        let walked = came.iter().try_for_each(|piece| walk.push(piece));
        if walked.is_ok() && walk.answers(id) && walk.has_members() && is_complete(&walk) {
            Ok(Self { walk, came })
        } else {
            Err(came)
        }
    }

    /// The same, with its rest.
    pub fn flow(self, server: ServerName, rest: impl Source + 'static) -> Box<Flow> {
        let Self { walk, came } = self;
        let (walked, rest, watchers) = (came.into(), Box::new(rest), Vec::new());
        Box::new(Flow { server, walk, walked, passed: 0, rest, watchers })
    }
}

// === impl Flow ===

impl Flow {
    /// Has somebody told how it ends.
    pub fn watched(&mut self, watcher: impl FnOnce(Ending) + Send + 'static) {
        self.watchers.push(Box::new(watcher));
    }

    pub(crate) fn take_watchers(&mut self) -> Vec<Watcher> {
        std::mem::take(&mut self.watchers)
    }

    /// The next piece of the result; `None` when all of the reply has come and is good.
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

    /// The next piece of the reply, walked over.
    fn poll_walked(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, CallError>> {
        let next = ready!(self.rest.poll_next(cx)).transpose()?;
        let walked = match &next {
            Some(piece) => self.walk.push(piece),
            None => self.walk.finish(),
        };
        walked.map_err(|why| self.broken(why))?;
        if self.walk.around() > MAX_AROUND {
            let problem = "too much stands around the result of an answer".to_owned();
            return Poll::Ready(Err(CallError::Protocol { server: self.server.clone(), problem }));
        }
        if is_complete(&self.walk) { Poll::Ready(Ok(next)) } else { Poll::Ready(Err(self.late())) }
    }

    /// The size of the result, as far as it has come.
    pub(crate) fn size(&self) -> usize {
        self.walk.inside().len() + 1
    }

    /// What the result is, as far as it has come.
    pub(crate) fn shape(&self) -> Shape {
        Shape::walked(&self.walk)
    }

    /// The part of the next piece that belongs to the result.
    fn cut(&mut self, piece: Bytes) -> Bytes {
        let (start, length) = (self.passed, piece.len());
        self.passed += length;
        let inside = self.walk.inside();
        let from = inside.start.saturating_sub(start).min(length);
        let to = inside.end.saturating_sub(start).clamp(from, length);
        if (from, to) == (0, length) { piece } else { piece.slice(from..to) }
    }

    fn broken(&self, why: NoReply) -> CallError {
        let problem = format!("an answer broke while it came: {why}");
        CallError::Protocol { server: self.server.clone(), problem }
    }

    fn late(&self) -> CallError {
        let problem = "it says behind a large answer that this is none".to_owned();
        CallError::Protocol { server: self.server.clone(), problem }
    }
}

/// Whether a result is what it looks like, as far as is known: a question or a task is known by its
/// type, and is never sent on as it comes.
fn is_complete(walk: &Walk) -> bool {
    walk.noted("resultType").is_none_or(|noted| {
        noted.value.as_ref().is_some_and(|value| value.as_bytes() == b"\"complete\"")
    })
}
