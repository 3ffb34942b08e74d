//! The common part of both HTTP transports.
//! It has the pending requests, the questions of the server, and the end of the connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_http::Payload;
use futures::stream;
use futures::{FutureExt, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::channel::RequestError;
use crate::channel::inbound::{Changed, Inbound, QuestionSettings};
use crate::channel::outbox::Outbox;
use crate::channel::requests::Requests;
use crate::connect::{STOPPED, ServerContext};
use crate::fault::Fault;
use crate::http::web::{Web, WebError};
use crate::server::tracker::ConnectionGuard;

/// The number of messages without a reply that are sent at the same time.
const MAX_POSTS: usize = 16;

/// How long, at the end, queued messages and the goodbye to the server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// The parts that an HTTP channel is opened with.
pub(crate) struct Opening {
    pub(crate) web: Web,
    pub(crate) questions: QuestionSettings,
    /// Called when a list has changed.
    pub(crate) changed: Changed,
    pub(crate) guard: ConnectionGuard,
    pub(crate) context: ServerContext,
    /// The timeout of a message that gets no reply.
    pub(crate) limit: Duration,
}

/// The common part of an HTTP channel.
pub(crate) struct HttpBase {
    pub(crate) web: Web,
    pub(crate) inbound: Inbound,
    pub(crate) limit: Duration,
    pub(crate) requests: Arc<Requests>,
    tasks: Mutex<JoinSet<()>>,
}

/// A new HTTP base and the tasks that serve it.
pub(crate) struct Parts {
    pub(crate) base: HttpBase,
    pub(crate) posts: Posts,
    pub(crate) shutdown: Shutdown,
    pub(crate) stop: Stop,
}

/// The queue of messages that get no reply.
pub(crate) struct Posts {
    queue: mpsc::Receiver<Vec<u8>>,
    /// Signals that nothing more will be queued.
    last: oneshot::Receiver<()>,
    /// Dropped when everything is sent.
    _sent: oneshot::Sender<()>,
}

/// Waits for the end of a connection.
pub(crate) struct Shutdown {
    guard: ConnectionGuard,
    context: ServerContext,
    stopped: oneshot::Receiver<()>,
    /// Dropped when nothing more will be posted.
    last: oneshot::Sender<()>,
    sent: oneshot::Receiver<()>,
}

/// Ends the connection when it is dropped.
pub(crate) struct Stop {
    _stop: oneshot::Sender<()>,
}

// === impl HttpBase ===

impl HttpBase {
    pub(crate) fn open(opening: Opening) -> Parts {
        let Opening { web, questions, changed, guard, context, limit } = opening;
        let (out, queue) = Outbox::new(&questions.server, &context.masker);
        let (stop, stopped) = oneshot::channel();
        let ((last, is_last), (sent, is_sent)) = (oneshot::channel(), oneshot::channel());
        let requests = Arc::new(Requests::new(out));
        let inbound = Inbound::new(questions, Arc::clone(&requests), &context, changed);
        let base = Self { web, inbound, limit, requests, tasks: Mutex::default() };
        let shutdown = Shutdown { guard, context, stopped, last, sent: is_sent };
        let posts = Posts { queue, last: is_last, _sent: sent };
        Parts { base, posts, shutdown, stop: Stop { _stop: stop } }
    }

    /// Marks the connection as lost, fails all pending requests and ends all tasks.
    pub(crate) fn lose(&self, fault: Fault) {
        self.requests.lose(fault);
        self.tasks().abort_all();
    }

    /// Runs a task for as long as the connection exists.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task.in_current_span())
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a request to the debug log.
    pub(crate) fn log_payload(&self, line: &Payload) {
        if Self::is_logged() {
            self.requests.out.log(&line.whole());
        }
    }

    /// True if messages are written to the debug log.
    pub(crate) fn is_logged() -> bool {
        tracing::enabled!(target: "capstan::wire", tracing::Level::DEBUG)
    }

    /// Converts an HTTP failure into the error of the request. Closes the connection if the server is
    /// unreachable, its address is blocked, or it requires a login.
    pub(crate) fn failed(&self, error: WebError) -> RequestError {
        match error {
            WebError::NotSent(reason) => {
                self.lose(Fault::Unreachable(reason.clone()));
                RequestError::NotSent(reason)
            }
            WebError::Blocked(reason) => {
                self.lose(Fault::Blocked(reason.clone()));
                RequestError::Refused(Fault::Blocked(reason))
            }
            WebError::Lost(reason) => RequestError::Gone(reason),
            WebError::NotMcp(problem) => RequestError::Refused(Fault::NotMcp(problem)),
            WebError::TooLong(limit) => RequestError::Refused(Fault::TooLong(limit)),
            WebError::Refused(refusal) => {
                if let Fault::Login(_) = &refusal.fault {
                    self.lose(refusal.fault.clone());
                }
                RequestError::Refused(refusal.fault)
            }
        }
    }
}

// === impl Posts ===

impl Posts {
    /// Sends the queued messages, each in its own request, until the connection ends.
    pub(crate) async fn send<F: Future<Output = ()>>(self, post: impl Fn(Vec<u8>) -> F) {
        let Self { queue, last, _sent } = self;
        let lines = stream::unfold((queue, last.fuse()), |(mut queue, mut last)| async {
            let line = tokio::select! {
                biased;
                line = queue.recv() => line,
                _ = &mut last => {
                    queue.close();
                    queue.recv().await
                }
            };
            line.map(|line| (line, (queue, last)))
        });
        lines.for_each_concurrent(MAX_POSTS, post).await;
    }
}

// === impl Shutdown ===

impl Shutdown {
    /// Waits until either side closes the connection, then ends it and says goodbye.
    pub(crate) async fn run(self, base: &HttpBase, goodbye: impl Future<Output = ()>) {
        let is_ours = tokio::select! {
            _ = base.requests.lost() => false,
            _ = self.stopped => true,
            () = self.context.tracker.closing() => true,
        };
        let until = Instant::now() + FAREWELL;
        if is_ours {
            // A caller that ends during a call has just cancelled it; the cancellation must arrive.
            drop(self.last);
            drop(timeout_at(until, self.sent).await);
        }
        base.lose(Fault::Unreachable(STOPPED.to_owned()));
        if is_ours {
            drop(timeout_at(until, goodbye).await);
        }
        drop(self.guard);
    }
}
