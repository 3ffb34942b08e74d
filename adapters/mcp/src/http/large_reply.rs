//! Large replies: streamed to a caller that takes them so, otherwise read to the end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use capstan_http::HttpBody;
use capstan_hub::{Begun, Flow, Source};
use capstan_model::CallError;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::{Instant, Sleep, sleep};

use super::Http;
use crate::channel::RequestError;
use crate::http::web::{Body, Web, WebError};
use crate::session::{MayRun, failed};

/// The size above which a body counts as large, in bytes.
const LARGE: usize = 64 * 1024;

/// A large body of which the beginning has arrived.
pub(crate) struct LargeBody {
    beginning: Vec<Bytes>,
    rest: HttpBody,
    /// The length of all of it, if the server has said it.
    length: Option<u64>,
}

/// The rest of a large reply. Dropping it before its end cancels the request at the server.
struct ReplyStream {
    http: Arc<Http>,
    id: u64,
    may_run: MayRun,
    pieces: BoxStream<'static, Result<Bytes, String>>,
    /// How long the server may keep us waiting in total. The time that our own reader takes does
    /// not count.
    limit: Duration,
    waited: Duration,
    waits: Option<(Instant, Pin<Box<Sleep>>)>,
    has_ended: bool,
}

// === impl Web ===

impl Web {
    /// Reads all of a body, or the beginning of a large one.
    pub(crate) async fn begin(&self, mut from: HttpBody) -> Result<Body, WebError> {
        let length = from.length();
        let Some(first) = self.client.chunk(&mut from).await? else {
            return Ok(Body::Nothing);
        };
        if from.has_ended().await {
            return Ok(Body::Json(first));
        }
        let (mut size, mut beginning) = (first.len(), vec![first]);
        while size <= LARGE {
            let Some(piece) = self.client.chunk(&mut from).await? else {
                return Ok(Body::Json(beginning.concat().into()));
            };
            size += piece.len();
            beginning.push(piece);
        }
        Ok(Body::Large(LargeBody { beginning, rest: from, length }))
    }

    /// Reads the rest of a body and returns all of it.
    async fn finish(&self, large: LargeBody) -> Result<Bytes, WebError> {
        let LargeBody { beginning, mut rest, length } = large;
        if length.is_some_and(|length| length > self.max_message.try_into().unwrap_or(u64::MAX)) {
            return Err(WebError::TooLong(self.max_message));
        }
        let mut body = beginning.concat();
        drop(beginning);
        while let Some(piece) = self.client.chunk(&mut rest).await? {
            if body.len() + piece.len() > self.max_message {
                return Err(WebError::TooLong(self.max_message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }
}

// === impl Http ===

impl Http {
    /// Streams a large reply if possible; otherwise waits for all of it and delivers it.
    pub(super) async fn stream_reply(
        self: &Arc<Self>,
        id: u64,
        may_run: MayRun,
        limit: Duration,
        large: LargeBody,
    ) -> Result<Option<Box<Flow>>, RequestError> {
        let LargeBody { beginning, rest, length } = large;
        match Begun::look(id, beginning) {
            Ok(begun) => {
                let rest = ReplyStream {
                    http: Arc::clone(self),
                    id,
                    may_run,
                    pieces: self.base.web.client.stream(rest),
                    limit,
                    waited: Duration::ZERO,
                    waits: None,
                    has_ended: false,
                };
                Ok(Some(begun.flow(self.base.inbound.server.clone(), length, rest)))
            }
            Err(beginning) => {
                let large = LargeBody { beginning, rest, length };
                self.take_large_reply(id, large).await.map(|()| None)
            }
        }
    }

    /// Waits for all of a large reply and delivers it.
    pub(super) async fn take_large_reply(
        &self,
        id: u64,
        large: LargeBody,
    ) -> Result<(), RequestError> {
        let body = self.base.web.finish(large).await;
        self.take_reply(id, &body.map_err(|error| self.base.failed(error))?).await
    }
}

// === impl ReplyStream ===

impl ReplyStream {
    fn failed(&self, error: RequestError) -> CallError {
        failed(&self.http.base.inbound.server, error, self.may_run)
    }

    /// Ready if the server has kept us waiting for too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.limit.saturating_sub(self.waited);
        let (_, alarm) = self.waits.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        alarm.as_mut().poll(cx)
    }
}

impl Source for ReplyStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        let Poll::Ready(next) = self.pieces.poll_next_unpin(cx) else {
            let late = self.poll_late(cx);
            return late.map(|()| Some(Err(self.failed(RequestError::TimedOut(self.limit)))));
        };
        if let Some((since, _)) = self.waits.take() {
            self.waited += since.elapsed();
        }
        Poll::Ready(match next {
            Some(Ok(piece)) => Some(Ok(piece)),
            Some(Err(reason)) => {
                self.has_ended = true;
                Some(Err(self.failed(RequestError::Gone(reason))))
            }
            None => {
                self.has_ended = true;
                None
            }
        })
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        if !self.has_ended {
            self.http.base.requests.cancel(self.id);
        }
    }
}
