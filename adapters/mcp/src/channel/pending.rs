//! Requests that wait for their replies.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::Subscriber;
use capstan_hub::{BackChannel, CallGroup};
use capstan_wire::{EnvelopeError, Json, Reply};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::channel::deadline::{DeadlineSignals, EndSignal};
use crate::channel::tasks::StartedTasks;
use crate::session::client::RequestedBy;

/// How far progress can extend a deadline, as a multiple of the limit.
const MAX_EXTENSIONS: u32 = 10;

/// Requests that wait for their replies, by id.
#[derive(Default)]
pub(crate) struct Pending {
    waiters: Mutex<Waiters>,
    /// Calls that were answered and have become tasks.
    started: StartedTasks,
}

/// The ids are ours, so a server cannot choose them to make hashes collide.
type Waiters = FxHashMap<u64, Waiter>;

/// The waiting side of one request.
#[derive(Debug)]
pub(crate) struct Waiting {
    reply: oneshot::Receiver<Result<Reply, NoReply>>,
    signals: Arc<DeadlineSignals>,
}

/// An open question of the server. While it is open, the deadline of its call is paused, because
/// the server waits for a person.
pub(crate) struct OpenQuestion {
    pub(crate) back: BackChannel,
    signals: Arc<DeadlineSignals>,
}

/// The receiver of the messages that a server sends while it works on a request.
pub(crate) enum Recipient {
    /// The client of a call.
    Client(BackChannel),
    /// The receiver of a subscription's notifications, which takes part in no call, and the
    /// capabilities of its client.
    Subscriber { subscriber: Arc<dyn Subscriber>, capabilities: Json },
}

/// The reason why waiting ended without a reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// The connection is lost.
    Gone,
    /// The deadline passed.
    Late,
    /// The reply is malformed.
    Garbled(EnvelopeError),
    /// The reply has more bytes than this, and was dropped.
    TooLong(usize),
    /// The message has no end, and may not be a reply.
    Endless(String),
}

struct Waiter {
    reply: oneshot::Sender<Result<Reply, NoReply>>,
    recipient: Option<Recipient>,
    signals: Arc<DeadlineSignals>,
    /// Dropped when the request is over, for any reason.
    _end: EndSignal,
}

/// A call in flight whose client can get notices and questions.
struct Call<'a> {
    id: u64,
    waiter: &'a Waiter,
    back: &'a BackChannel,
}

// === impl Pending ===

impl Pending {
    pub(crate) fn add(&self, id: u64, recipient: Option<Recipient>) -> Waiting {
        let (tx, rx) = oneshot::channel();
        let signals = Arc::new(DeadlineSignals::default());
        let end = EndSignal::of(&signals);
        let waiter = Waiter { reply: tx, recipient, signals: Arc::clone(&signals), _end: end };
        self.map().insert(id, waiter);
        Waiting { reply: rx, signals }
    }

    /// Delivers a reply; a reply without a waiting request is dropped.
    pub(crate) fn answer(&self, id: u64, reply: Reply) {
        let waiter = self.map().remove(&id);
        if let Some(waiter) = waiter {
            if let Some(back) = waiter.client().filter(|back| back.outlives_answer()) {
                self.started.note(id, back, &reply);
            }
            // The receiver may have been dropped in between.
            drop(waiter.reply.send(Ok(reply)));
        }
    }

    /// Fails a request whose reply cannot be delivered.
    pub(crate) fn fail(&self, id: u64, why: NoReply) {
        let waiter = self.map().remove(&id);
        if let Some(waiter) = waiter {
            drop(waiter.reply.send(Err(why)));
        }
    }

    /// The ids of the requests that belong to no call: the handshake, lists, pings.
    pub(crate) fn without_call(&self) -> Vec<u64> {
        let map = self.map();
        map.iter().filter(|(_, waiter)| waiter.recipient.is_none()).map(|(id, _)| *id).collect()
    }

    /// The id of the pending request, if there is exactly one.
    pub(crate) fn only(&self) -> Option<u64> {
        let ids: Vec<u64> = self.map().keys().take(2).copied().collect();
        if let [only] = *ids { Some(only) } else { None }
    }

    /// The client of request `id`. Records the progress, which extends the request's deadline.
    pub(crate) fn progressed(&self, id: u64) -> Option<BackChannel> {
        let client = self.map().get(&id).map(|waiter| {
            waiter.signals.progress();
            waiter.client().cloned()
        });
        client.unwrap_or_else(|| self.started.of(id))
    }

    /// The client that gets a log message that came on the stream of request `of`.
    pub(crate) fn log_recipient(&self, of: Option<u64>, params: &Json) -> Option<BackChannel> {
        let task = if of.is_none() { self.started.about(params) } else { None };
        task.or_else(|| self.client(of))
    }

    /// The client of request `of`; without one, the client of the youngest call in flight.
    ///
    /// Over stdio a server does not say which call a message belongs to. If calls of several
    /// groups are in flight, the message is delivered to none: no client may see what is meant for
    /// another.
    pub(crate) fn client(&self, of: Option<u64>) -> Option<BackChannel> {
        let map = self.map();
        match of {
            Some(id) => map.get(&id)?.client().cloned(),
            None => youngest(Call::all(&map)).map(|call| call.back.clone()),
        }
    }

    /// The subscriber of request `id`, if that is a subscription.
    pub(crate) fn subscriber(&self, id: u64) -> Option<Arc<dyn Subscriber>> {
        match self.map().get(&id)?.recipient.as_ref()? {
            Recipient::Subscriber { subscriber, .. } => Some(Arc::clone(subscriber)),
            Recipient::Client(_) => None,
        }
    }

    /// Opens a question to that client; a question of a task goes to the client of the task.
    pub(crate) fn ask(&self, of: Option<u64>, params: &Json) -> Option<OpenQuestion> {
        if of.is_none()
            && let Some(back) = self.started.about(params)
        {
            // Preferably on a request of that group that is in flight, such as one for the task's
            // result.
            let waiting = self.ask_group(back.group());
            return waiting.or_else(|| Some(OpenQuestion::open(back, Arc::default())));
        }
        let map = self.map();
        let waiter = match of {
            Some(id) => map.get(&id)?,
            None => asker(&map)?,
        };
        let (back, signals) = (waiter.client()?.clone(), Arc::clone(&waiter.signals));
        drop(map);
        Some(OpenQuestion::open(back, signals))
    }

    /// Completes when the calls that a question can belong to have ended.
    pub(crate) async fn over(&self, open: &OpenQuestion, of: Option<u64>) {
        open.over().await;
        // Without a known call, the question may belong to any remaining call of that group.
        while of.is_none()
            && let Some(another) = self.ask_group(open.back.group())
        {
            another.over().await;
        }
    }

    /// Opens a question to the client of a call in flight of that group.
    pub(crate) fn ask_group(&self, group: CallGroup) -> Option<OpenQuestion> {
        let map = self.map();
        let is_of = |waiter: &&Waiter| waiter.client().is_some_and(|back| back.group() == group);
        let waiter = map.values().find(is_of)?;
        let (back, signals) = (waiter.client()?.clone(), Arc::clone(&waiter.signals));
        drop(map);
        Some(OpenQuestion::open(back, signals))
    }

    /// True if a call is in flight whose client could be asked.
    pub(crate) fn has_calls(&self) -> bool {
        self.map().values().any(|waiter| waiter.client().is_some())
    }

    /// True if a request waits for this reply.
    pub(crate) fn waits_for(&self, id: u64) -> bool {
        self.map().contains_key(&id)
    }

    /// Stops waiting for a reply; `true` if the request was pending.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.map().remove(&id).is_some()
    }

    /// Fails all pending requests: no more replies will come.
    pub(crate) fn clear(&self) {
        self.map().clear();
    }

    fn map(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Recipient ===

impl Recipient {
    /// The client of a call; `None` for a subscription.
    pub(crate) fn client(&self) -> Option<&BackChannel> {
        match self {
            Self::Client(back) => Some(back),
            Self::Subscriber { .. } => None,
        }
    }

    /// True if the request asks for progress notifications.
    pub(crate) fn wants_progress(&self) -> bool {
        self.client().is_none_or(|back| back.wishes().progress)
    }

    /// The requester, as a modern server is told.
    pub(crate) fn requester(&self) -> RequestedBy {
        match self {
            Self::Client(back) => RequestedBy::client(back),
            Self::Subscriber { capabilities, .. } => RequestedBy::Program(capabilities.clone()),
        }
    }
}

// === impl Waiter ===

impl Waiter {
    /// The client of the call; `None` for a subscription.
    fn client(&self) -> Option<&BackChannel> {
        self.recipient.as_ref()?.client()
    }
}

// === impl Call ===

impl<'a> Call<'a> {
    fn all(waiters: &'a Waiters) -> impl Iterator<Item = Self> + Clone {
        waiters
            .iter()
            .filter_map(|(id, waiter)| Some(Self { id: *id, waiter, back: waiter.client()? }))
    }

    /// True if the call waits for the answer to a question. Until then it is not expected to ask
    /// more.
    fn has_asked(&self) -> bool {
        self.waiter.signals.is_asking()
    }
}

/// The youngest of these calls, if all belong to one group.
fn youngest<'a>(calls: impl Iterator<Item = Call<'a>> + Clone) -> Option<Call<'a>> {
    let group = calls.clone().next()?.back.group();
    let is_one = calls.clone().all(|call| call.back.group() == group);
    if is_one { calls.max_by_key(|call| call.id) } else { None }
}

/// The call that a question without a request id belongs to.
///
/// A client that never answers its question must not block questions to other clients of the same
/// person: if several groups have calls in flight, calls with an open question are skipped.
fn asker(waiters: &Waiters) -> Option<&Waiter> {
    let calls = Call::all(waiters);
    if let Some(call) = youngest(calls.clone()) {
        return Some(call.waiter);
    }
    let asker = youngest(calls.clone().filter(|call| !call.has_asked()))?;
    let person = asker.back.person();
    let is_theirs = |call: Call<'_>| call.back.person() == person;
    calls.filter(Call::has_asked).all(is_theirs).then_some(asker.waiter)
}

// === impl Waiting ===

impl Waiting {
    /// Waits for the reply; progress restarts `limit`. The time that questions of the server are
    /// open does not count.
    pub(crate) async fn wait(mut self, limit: Duration) -> Result<Reply, NoReply> {
        let begun = Instant::now();
        let mut last = begun + limit.saturating_mul(MAX_EXTENSIONS);
        let mut deadline = begun + limit;
        // The time at which a question was opened.
        let mut paused: Option<Instant> = None;
        loop {
            let late = tokio::time::sleep_until(deadline);
            tokio::select! {
                biased;
                reply = &mut self.reply => {
                    return reply.unwrap_or(Err(NoReply::Gone));
                }
                () = poll_fn(|cx| self.signals.poll_changed(cx)) => {}
                () = late, if paused.is_none() => return Err(NoReply::Late),
            }
            let now = Instant::now();
            if let Some(since) = paused.take() {
                let open = now.saturating_duration_since(since);
                (deadline, last) = (deadline + open, last + open);
            }
            if self.signals.is_asking() {
                paused = Some(now);
            }
            if self.signals.take_progress() {
                // Checked here as well: endless progress would otherwise always win the `select!`.
                if now >= last {
                    return Err(NoReply::Late);
                }
                deadline = (now + limit).min(last);
            }
        }
    }
}

// === impl OpenQuestion ===

impl OpenQuestion {
    fn open(back: BackChannel, signals: Arc<DeadlineSignals>) -> Self {
        signals.ask();
        Self { back, signals }
    }

    /// Waits until the call of the question is over: after that no answer is needed.
    pub(crate) async fn over(&self) {
        self.signals.over().await;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.signals.answer();
    }
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
