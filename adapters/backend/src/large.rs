//! Bodies that are too large to wait for.

use bytes::Bytes;

use crate::reach::Incoming;
use crate::web::{Body, Web, WebError};

/// How much of a body is waited for before it counts as large, in bytes.
pub(crate) const LARGE: usize = 64 * 1024;

impl Web {
    /// All of a body, or the beginning of a large one.
    pub(crate) async fn begin(&self, mut from: Incoming) -> Result<Body, WebError> {
        let Some(first) = from.chunk().await.map_err(|error| self.lost(error))? else {
            return Ok(Body::Nothing);
        };
        if from.has_ended().await {
            return Ok(Body::Json(first));
        }
        let (mut size, mut came) = (first.len(), vec![first]);
        while size <= LARGE {
            let Some(piece) = from.chunk().await.map_err(|error| self.lost(error))? else {
                return Ok(Body::Json(came.concat().into()));
            };
            size += piece.len();
            came.push(piece);
        }
        Ok(Body::Large(came, from))
    }

    /// All of a body whose beginning has come.
    pub(crate) async fn finish(
        &self,
        came: Vec<Bytes>,
        mut rest: Incoming,
    ) -> Result<Bytes, WebError> {
        let mut body = came.concat();
        drop(came);
        while let Some(piece) = rest.chunk().await.map_err(|error| self.lost(error))? {
            if body.len() + piece.len() > self.max_message {
                return Err(WebError::TooLong(self.max_message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }

    fn lost(&self, error: crate::reach::ReachError) -> WebError {
        WebError::Lost(self.reason(error))
    }
}
