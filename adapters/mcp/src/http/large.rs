//! Reads large bodies in two steps: the beginning, then the rest.

use bytes::Bytes;
use capstan_http::HttpBody;

use crate::http::web::{Body, Web, WebError};

/// The size above which a body counts as large, in bytes.
pub(crate) const LARGE: usize = 64 * 1024;

impl Web {
    /// Reads all of a body, or the beginning of a large one.
    pub(crate) async fn begin(&self, mut from: HttpBody) -> Result<Body, WebError> {
        let Some(first) = self.client.chunk(&mut from).await? else {
            return Ok(Body::Nothing);
        };
        if from.has_ended().await {
            return Ok(Body::Json(first));
        }
        let (mut size, mut came) = (first.len(), vec![first]);
        while size <= LARGE {
            let Some(piece) = self.client.chunk(&mut from).await? else {
                return Ok(Body::Json(came.concat().into()));
            };
            size += piece.len();
            came.push(piece);
        }
        Ok(Body::Large(came, from))
    }

    /// Reads the rest of a body and returns all of it.
    pub(crate) async fn finish(
        &self,
        came: Vec<Bytes>,
        mut rest: HttpBody,
    ) -> Result<Bytes, WebError> {
        let mut body = came.concat();
        drop(came);
        while let Some(piece) = self.client.chunk(&mut rest).await? {
            if body.len() + piece.len() > self.max_message {
                return Err(WebError::TooLong(self.max_message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }
}
