//! The body of a request, in pieces so that large params are not copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use capstan_wire::{Json, compose};
use hyper::body::{Body, Frame, SizeHint};

/// Params up to this size are copied, which is cheaper than three pieces.
const SMALL: usize = 16 * 1024;

/// Some bytes, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    pieces: [Bytes; 3],
}

// === impl Pieces ===

impl Pieces {
    /// A request with one of our own ids.
    pub(crate) fn request(id: u64, method: &str, params: &Json) -> Self {
        if params.len() <= SMALL {
            return Self::from(compose::request(id, method, Some(params)));
        }
        let (before, after) = compose::around_params(id, method);
        Self { pieces: [before.into(), params.bytes().clone(), Bytes::from_static(after)] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// All of it in one piece.
    pub(crate) fn whole(&self) -> Bytes {
        match &self.pieces {
            [whole, b, c] if b.is_empty() && c.is_empty() => whole.clone(),
            pieces => pieces.concat().into(),
        }
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(whole: Vec<u8>) -> Self {
        Self { pieces: [whole.into(), Bytes::new(), Bytes::new()] }
    }
}

impl Body for Pieces {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_params_are_not_copied_and_the_request_is_the_same() {
        for size in [10, SMALL, SMALL + 1, 1 << 20] {
            let params = Json::parse(format!(r#"{{"x":"{}"}}"#, "y".repeat(size))).unwrap();
            let pieces = Pieces::request(7, "tools/\"call", &params);
            assert_eq!(pieces.whole(), compose::request(7, "tools/\"call", Some(&params)));
            assert_eq!(pieces.len(), pieces.whole().len());
            let is_shared = pieces.pieces.iter().any(|p| p.as_ptr() == params.as_bytes().as_ptr());
            assert_eq!(is_shared, params.len() > SMALL, "{size}");
        }
    }
}
