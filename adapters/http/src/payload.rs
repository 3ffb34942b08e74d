//! The body of a request, in pieces so that large parts of it are not copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// A body of up to three pieces that are sent one after the other.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    pieces: [Bytes; 3],
}

// === impl Payload ===

impl Payload {
    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Returns the body in one piece.
    pub fn whole(&self) -> Bytes {
        match &self.pieces {
            [whole, b, c] if b.is_empty() && c.is_empty() => whole.clone(),
            pieces => pieces.concat().into(),
        }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(whole: Vec<u8>) -> Self {
        Self { pieces: [whole.into(), Bytes::new(), Bytes::new()] }
    }
}

impl From<[Bytes; 3]> for Payload {
    fn from(pieces: [Bytes; 3]) -> Self {
        Self { pieces }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.pieces.iter_mut().find(|piece| !piece.is_empty());
        Poll::Ready(next.map(|piece| Ok(Frame::data(std::mem::take(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.len()).unwrap_or(u64::MAX))
    }
}
