//! Streams the rest of a large reply.

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
use crate::session::{MayRun, failed};

/// The rest of a large reply. Dropping it before its end cancels the request at the server.
pub(super) struct Rest {
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

// === impl Http ===

impl Http {
    /// Streams a large reply if possible; otherwise waits for all of it.
    pub(super) async fn begin(
        self: &Arc<Self>,
        id: u64,
        (may_run, limit): (MayRun, Duration),
        came: Vec<Bytes>,
        rest: HttpBody,
    ) -> Result<Option<Box<Flow>>, RequestError> {
        match Begun::look(id, came) {
            Ok(begun) => {
                let rest = Rest::new(self, (id, may_run), limit, self.link.web.client.stream(rest));
                Ok(Some(begun.flow(self.link.inbound.server.clone(), rest)))
            }
            Err(came) => self.take_rest(id, came, rest).await.map(|()| None),
        }
    }

    /// Waits for all of a large reply and delivers it.
    pub(super) async fn take_rest(
        &self,
        id: u64,
        came: Vec<Bytes>,
        rest: HttpBody,
    ) -> Result<(), RequestError> {
        let body = self.link.web.finish(came, rest).await;
        self.take_reply(id, &body.map_err(|error| self.link.failed(error))?).await
    }
}

// === impl Rest ===

impl Rest {
    pub(super) fn new(
        http: &Arc<Http>,
        (id, may_run): (u64, MayRun),
        limit: Duration,
        pieces: BoxStream<'static, Result<Bytes, String>>,
    ) -> Self {
        let (http, waited) = (Arc::clone(http), Duration::ZERO);
        Self { http, id, may_run, pieces, limit, waited, waits: None, has_ended: false }
    }

    fn failed(&self, error: RequestError) -> CallError {
        failed(&self.http.link.inbound.server, error, self.may_run)
    }

    /// Ready if the server has kept us waiting for too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.limit.saturating_sub(self.waited);
        let (_, alarm) = self.waits.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        alarm.as_mut().poll(cx)
    }
}

impl Source for Rest {
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

impl Drop for Rest {
    fn drop(&mut self) {
        if !self.has_ended {
            self.http.link.requests.cancel(self.id);
        }
    }
}
