//! What both transports over HTTP have in common: requests that wait for their replies, what the
//! server asks meanwhile, and the end of it all.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_http::Payload;
use capstan_wire::Reply;
use futures::stream;
use futures::{FutureExt, StreamExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::channel::inbound::{Asked, Changed, Inbound};
use crate::channel::pending::{NoReply, Pending};
use crate::channel::{Request, RequestError, Said};
use crate::connect::STOPPED;
use crate::fault::Fault;
use crate::http::web::{Web, WebError};
use crate::server::alive::Living;
use crate::stdio::{Outbox, Watched, cancelled};

/// Messages of ours that nobody waits for, on the way at the same time.
const MAX_POSTS: usize = 16;

/// How long it may take when we end that what is on the way arrives, and that the server is told.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a channel over HTTP is made of.
pub(crate) struct Opening {
    pub(crate) web: Web,
    pub(crate) asked: Asked,
    /// Is told of lists that have changed.
    pub(crate) changed: Changed,
    pub(crate) living: Living,
    pub(crate) watched: Watched,
    /// How long a message that nobody waits for may take.
    pub(crate) limit: Duration,
}

/// The common part of a channel over HTTP.
pub(crate) struct Link {
    pub(crate) web: Web,
    pub(crate) inbound: Inbound,
    pub(crate) limit: Duration,
    pending: Arc<Pending>,
    out: Outbox,
    next_id: AtomicU64,
    gone: watch::Sender<Option<Fault>>,
    /// Whether somebody has taken note that the server is gone.
    gone_noticed: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

/// A new link and what is needed to serve it.
pub(crate) struct Parts {
    pub(crate) link: Link,
    pub(crate) posts: Posts,
    pub(crate) minding: Minding,
    pub(crate) stop: Stop,
}

/// What is to be sent without anybody waiting for it.
pub(crate) struct Posts {
    queue: mpsc::Receiver<Vec<u8>>,
    /// Says that what is queued is the last of it.
    last: oneshot::Receiver<()>,
    /// Dropped when all of it is sent.
    _sent: oneshot::Sender<()>,
}

/// Waits for the end of a link.
pub(crate) struct Minding {
    living: Living,
    watched: Watched,
    stopped: oneshot::Receiver<()>,
    /// Dropped when nothing more is to be posted.
    last: oneshot::Sender<()>,
    sent: oneshot::Receiver<()>,
}

/// Ends the link when it is dropped.
pub(crate) struct Stop {
    _stop: oneshot::Sender<()>,
}

/// Forgets a request, and tells the server so, when nobody waits for it any more.
struct Abandon<'a> {
    link: &'a Link,
    id: u64,
    silently: bool,
}

// === impl Link ===

impl Link {
    pub(crate) fn open(opening: Opening) -> Parts {
        let Opening { web, asked, changed, living, watched, limit } = opening;
        let (out, queue) = Outbox::new(&asked.server, &watched.masker);
        let (stop, stopped) = oneshot::channel();
        let ((last, is_last), (sent, is_sent)) = (oneshot::channel(), oneshot::channel());
        let pending = Arc::new(Pending::default());
        let link = Self {
            web,
            inbound: Inbound::new(asked, out.clone(), Arc::clone(&pending), &watched, changed),
            limit,
            pending,
            out,
            next_id: AtomicU64::new(1),
            gone: watch::Sender::new(None),
            gone_noticed: AtomicBool::new(false),
            tasks: Mutex::default(),
        };
        let minding = Minding { living, watched, stopped, last, sent: is_sent };
        let posts = Posts { queue, last: is_last, _sent: sent };
        Parts { link, posts, minding, stop: Stop { _stop: stop } }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn gone(&self) -> Option<Fault> {
        self.gone.borrow().clone()
    }

    pub(crate) fn take_gone_notice(&self) -> bool {
        self.gone.borrow().is_some() && !self.gone_noticed.swap(true, Ordering::Relaxed)
    }

    /// Notes that the server is gone and wakes up all who wait for it.
    pub(crate) fn lose(&self, fault: Fault) {
        self.gone.send_if_modified(|gone| {
            let first = gone.is_none();
            gone.get_or_insert(fault);
            first
        });
        self.pending.clear();
        self.tasks().abort_all();
    }

    fn why_gone(&self) -> String {
        self.gone().map_or_else(|| STOPPED.to_owned(), |fault| fault.to_string())
    }

    pub(crate) fn waits_for(&self, id: u64) -> bool {
        self.pending.waits_for(id)
    }

    pub(crate) fn answer(&self, id: u64, reply: Reply) {
        self.pending.answer(id, reply);
    }

    /// Runs something for as long as the link is there.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task.in_current_span())
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is sent into the debug log.
    pub(crate) fn log(&self, line: &[u8]) {
        self.out.log(line);
    }

    /// The same, of something in pieces.
    pub(crate) fn log_pieces(&self, line: &Payload) {
        if Self::is_logged() {
            self.out.log(&line.whole());
        }
    }

    /// Whether messages are written into the debug log.
    pub(crate) fn is_logged() -> bool {
        tracing::enabled!(target: "capstan::wire", tracing::Level::DEBUG)
    }

    /// Waits for the reply to a request while `exchange` goes on, which sends it and ends when
    /// there is nothing more to be expected from it, or with a reply that is still coming. It stays
    /// where it is: a future that is handed over has its place in both.
    pub(crate) async fn ask<F>(
        &self,
        request: Request<'_>,
        exchange: Pin<&mut impl Future<Output = Result<Option<F>, RequestError>>>,
    ) -> Result<Said<F>, RequestError> {
        if self.gone.borrow().is_some() {
            return Err(RequestError::NotSent(self.why_gone()));
        }
        let Request { id, method, limit, operator, .. } = request;
        let waiting = self.pending.add(id, operator);
        // The protocol knows no way to take these back.
        let silently = matches!(method, "initialize" | "server/discover");
        let mut abandon = Abandon { link: self, id, silently };
        let mut waiting = pin!(waiting.wait(limit));
        let reply = tokio::select! {
            biased;
            reply = &mut waiting => reply,
            ended = exchange => match ended {
                Ok(None) => waiting.await,
                Ok(Some(flow)) => {
                    abandon.silently = true;
                    return Ok(Said::Flow(flow));
                }
                Err(error) => {
                    abandon.silently = true;
                    return Err(error);
                }
            },
        };
        drop(abandon);
        match reply {
            Ok(reply) => Ok(Said::Reply(reply)),
            Err(NoReply::Gone) => Err(RequestError::Gone(self.why_gone())),
            Err(NoReply::Late) => Err(RequestError::TimedOut(limit)),
            Err(NoReply::Garbled(problem)) => Err(RequestError::garbled(&problem)),
            Err(NoReply::TooLong(limit)) => Err(RequestError::Refused(Fault::TooLong(limit))),
            Err(NoReply::Endless(problem)) => Err(RequestError::Refused(Fault::Endless(problem))),
        }
    }

    /// Tells the server that nobody waits any more for a reply that it has begun.
    pub(crate) fn abandon(&self, id: u64) {
        self.out.try_send(cancelled(id));
    }

    /// What a request that could not be sent or read means for the request and for us.
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
    /// Sends what is queued, each message on its own, until the link ends.
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

// === impl Minding ===

impl Minding {
    /// Waits until either side is done with the link, ends it, and says goodbye.
    pub(crate) async fn mind(self, link: &Link, goodbye: impl Future<Output = ()>) {
        let mut gone = link.gone.subscribe();
        let is_ours = tokio::select! {
            _ = gone.wait_for(Option::is_some) => false,
            _ = self.stopped => true,
            () = self.watched.alive.closing() => true,
        };
        let until = Instant::now() + FAREWELL;
        if is_ours {
            // Whoever ends while a call is on the way has just taken it back; that must arrive.
            drop(self.last);
            drop(timeout_at(until, self.sent).await);
        }
        link.lose(Fault::Unreachable(STOPPED.to_owned()));
        if is_ours {
            drop(timeout_at(until, goodbye).await);
        }
        drop(self.living);
    }
}

// === impl Abandon ===

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        // A request that has its reply is forgotten already.
        if self.link.pending.forget(self.id) && !self.silently {
            self.link.out.try_send(cancelled(self.id));
        }
    }
}
