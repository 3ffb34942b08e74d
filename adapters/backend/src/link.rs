//! What both transports over HTTP have in common: requests that wait for their replies, what the
//! server asks meanwhile, and the end of it all.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_wire::Reply;
use futures::StreamExt;
use futures::stream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tracing::Instrument;

use crate::alive::Living;
use crate::channel::{Request, RequestError};
use crate::connect::STOPPED;
use crate::connection::{Outbox, Watched, cancelled};
use crate::fault::Fault;
use crate::inbound::{Asked, Changed, Inbound};
use crate::pending::{NoReply, Pending};
use crate::web::{Web, WebError};

/// Messages of ours that nobody waits for, on the way at the same time.
const MAX_POSTS: usize = 16;

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
    mourned: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

/// A new link and what is needed to serve it.
pub(crate) struct Parts {
    pub(crate) link: Link,
    /// What is to be sent without anybody waiting for it.
    pub(crate) outgoing: mpsc::Receiver<Vec<u8>>,
    pub(crate) minding: Minding,
    pub(crate) stop: Stop,
}

/// Waits for the end of a link.
pub(crate) struct Minding {
    living: Living,
    watched: Watched,
    stopped: oneshot::Receiver<()>,
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
        let (out, outgoing) = Outbox::new(&asked.server, &watched.masker);
        let (stop, stopped) = oneshot::channel();
        let pending = Arc::new(Pending::default());
        let link = Self {
            web,
            inbound: Inbound::new(asked, out.clone(), Arc::clone(&pending), &watched, changed),
            limit,
            pending,
            out,
            next_id: AtomicU64::new(1),
            gone: watch::Sender::new(None),
            mourned: AtomicBool::new(false),
            tasks: Mutex::default(),
        };
        let minding = Minding { living, watched, stopped };
        Parts { link, outgoing, minding, stop: Stop { _stop: stop } }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn gone(&self) -> Option<Fault> {
        self.gone.borrow().clone()
    }

    pub(crate) fn mourn(&self) -> bool {
        self.gone.borrow().is_some() && !self.mourned.swap(true, Ordering::Relaxed)
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

    /// Waits for the reply to a request while `exchange` goes on, which sends it and ends when
    /// there is nothing more to be expected from it.
    pub(crate) async fn ask(
        &self,
        request: Request<'_>,
        exchange: impl Future<Output = Result<(), RequestError>>,
    ) -> Result<Reply, RequestError> {
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
                Ok(()) => waiting.await,
                Err(error) => {
                    abandon.silently = true;
                    return Err(error);
                }
            },
        };
        drop(abandon);
        match reply {
            Ok(reply) => Ok(reply),
            Err(NoReply::Gone) => Err(RequestError::Gone(self.why_gone())),
            Err(NoReply::Late) => Err(RequestError::TimedOut(limit)),
        }
    }

    /// What a request that could not be sent or read means for the request and for us.
    pub(crate) fn failed(&self, error: WebError) -> RequestError {
        match error {
            WebError::NotSent(reason) => {
                self.lose(Fault::Unreachable(reason.clone()));
                RequestError::NotSent(reason)
            }
            WebError::Lost(reason) => RequestError::Gone(reason),
            WebError::NotMcp(problem) => RequestError::Refused(Fault::NotMcp(problem)),
            WebError::Refused(refusal) => {
                if let Fault::Login(_) = &refusal.fault {
                    self.lose(refusal.fault.clone());
                }
                RequestError::Refused(refusal.fault)
            }
        }
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
        link.lose(Fault::Unreachable(STOPPED.to_owned()));
        if is_ours {
            goodbye.await;
        }
        drop(self.living);
    }
}

/// Sends what is queued, each message on its own, until the link ends.
pub(crate) async fn post_all<F: Future<Output = ()>>(
    outgoing: mpsc::Receiver<Vec<u8>>,
    post: impl Fn(Vec<u8>) -> F,
) {
    let lines = stream::unfold(outgoing, |mut outgoing| async {
        outgoing.recv().await.map(|line| (line, outgoing))
    });
    lines.for_each_concurrent(MAX_POSTS, post).await;
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
