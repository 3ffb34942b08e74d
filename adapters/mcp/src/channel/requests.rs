//! The requests of one connection: sent, answered, cancelled.
//!
//! Every transport sends requests through [`Requests::ask`]. A request that its caller drops, or
//! that times out, is cancelled at the server.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::FutureExt as _;
use tokio::sync::watch;

use crate::channel::outbox::{Outbox, cancelled};
use crate::channel::pending::{NoReply, Pending};
use crate::channel::{Request, RequestError, Response};
use crate::connect::STOPPED;
use crate::fault::Fault;

/// The requests of one connection, and the reason if the connection is lost.
pub(crate) struct Requests {
    pub(crate) pending: Pending,
    pub(crate) out: Outbox,
    next_id: AtomicU64,
    gone: watch::Sender<Option<Fault>>,
    gone_noticed: AtomicBool,
}

/// The reason why the exchange of a request ended without a reply.
pub(crate) enum ExchangeError {
    /// The queue to the server is closed; nothing was sent.
    Closed,
    /// The request failed.
    Failed(RequestError),
}

/// Cancels a request when it is dropped before the reply arrives.
struct Abandon<'a> {
    requests: &'a Requests,
    id: u64,
    silently: bool,
}

// === impl Requests ===

impl Requests {
    pub(crate) fn new(out: Outbox) -> Self {
        Self {
            pending: Pending::default(),
            out,
            next_id: AtomicU64::new(1),
            gone: watch::Sender::new(None),
            gone_noticed: AtomicBool::new(false),
        }
    }

    /// Returns the id for the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The reason why the connection is lost; `None` while it is open.
    pub(crate) fn gone(&self) -> Option<Fault> {
        self.gone.borrow().clone()
    }

    /// True exactly once after the connection is lost.
    pub(crate) fn take_gone_notice(&self) -> bool {
        self.gone.borrow().is_some() && !self.gone_noticed.swap(true, Ordering::Relaxed)
    }

    /// Marks the connection as lost and fails all pending requests. The first reason stays.
    pub(crate) fn lose(&self, fault: Fault) {
        self.gone.send_if_modified(|gone| {
            let first = gone.is_none();
            gone.get_or_insert(fault);
            first
        });
        // Only after the reason is set, so that the callers that wake up find it.
        self.pending.clear();
    }

    /// Waits until the connection is lost and returns the reason.
    pub(crate) async fn lost(&self) -> String {
        let mut gone = self.gone.subscribe();
        let fault = gone.wait_for(Option::is_some).await;
        fault
            .ok()
            .and_then(|fault| fault.as_ref().map(Fault::to_string))
            .unwrap_or_else(|| STOPPED.to_owned())
    }

    /// Waits for the reply to a request while `exchange` sends it.
    ///
    /// The exchange ends when no more data is expected from it, or with a reply that is still
    /// arriving. The caller pins it, because a future that is moved takes up space in both places.
    pub(crate) async fn ask<F>(
        &self,
        request: Request<'_>,
        exchange: Pin<&mut impl Future<Output = Result<Option<F>, ExchangeError>>>,
    ) -> Result<Response<F>, RequestError> {
        if let Some(fault) = self.gone() {
            return Err(RequestError::NotSent(fault.to_string()));
        }
        let Request { id, method, limit, recipient, .. } = request;
        let waiting = self.pending.add(id, recipient);
        // The protocol has no way to cancel these.
        let silently = matches!(method, "initialize" | "server/discover");
        let mut abandon = Abandon { requests: self, id, silently };
        let mut waiting = pin!(waiting.wait(limit));
        let reply = tokio::select! {
            biased;
            // First: it is usually done at once, and then the reply is polled once less.
            ended = exchange => match ended {
                Ok(None) => waiting.await,
                Ok(Some(flow)) => {
                    abandon.silently = true;
                    return Ok(Response::Flow(flow));
                }
                // A reply that has arrived counts, even if the exchange failed after it.
                Err(error) => match waiting.now_or_never() {
                    Some(reply) if !matches!(reply, Err(NoReply::Gone)) => reply,
                    Some(_) | None => {
                        abandon.silently = true;
                        drop(abandon);
                        return Err(match error {
                            ExchangeError::Closed => RequestError::NotSent(self.lost().await),
                            ExchangeError::Failed(error) => error,
                        });
                    }
                },
            },
            reply = &mut waiting => reply,
        };
        drop(abandon);
        match reply {
            Ok(reply) => Ok(Response::Reply(reply)),
            Err(NoReply::Gone) => Err(RequestError::Gone(self.lost().await)),
            Err(NoReply::Late) => Err(RequestError::TimedOut(limit)),
            Err(NoReply::Garbled(problem)) => Err(RequestError::garbled(&problem)),
            Err(NoReply::TooLong(limit)) => Err(RequestError::Refused(Fault::TooLong(limit))),
            Err(NoReply::Endless(problem)) => Err(RequestError::Refused(Fault::Endless(problem))),
        }
    }

    /// Cancels a request whose reply has begun to arrive.
    pub(crate) fn cancel(&self, id: u64) {
        self.out.try_send(cancelled(id));
    }
}

// === impl ExchangeError ===

impl From<RequestError> for ExchangeError {
    fn from(error: RequestError) -> Self {
        Self::Failed(error)
    }
}

// === impl Abandon ===

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        // A request that has its reply is no longer pending.
        if self.requests.pending.forget(self.id) && !self.silently {
            self.requests.cancel(self.id);
        }
    }
}
