//! Requests that wait for their replies.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::Operator;
use capstan_wire::{Json, Reply};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::signs::{Ends, Signs};
use crate::started::Started;

/// How far progress can put a deadline off, as a multiple of the limit.
const MAX_EXTENSIONS: u32 = 10;

/// Requests that wait for their replies, by id.
#[derive(Default)]
pub(crate) struct Pending {
    waiters: Mutex<Waiters>,
    /// Those that were answered and have become tasks.
    started: Started,
}

/// The ids are our own, so that nobody can choose them to collide.
type Waiters = HashMap<u64, Waiter, BuildHasherDefault<Spread>>;

/// Spreads numbers that follow each other.
#[derive(Default)]
struct Spread(u64);

/// The waiting side of one request.
#[derive(Debug)]
pub(crate) struct Waiting {
    reply: oneshot::Receiver<Reply>,
    signs: Arc<Signs>,
}

/// A question of the server that is open. As long as it is, the call that it belongs to is not
/// late: its server waits for a person.
pub(crate) struct Asking {
    pub(crate) operator: Arc<dyn Operator>,
    signs: Arc<Signs>,
}

/// Why waiting ended without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// There will be none.
    Gone,
    /// It did not come in time.
    Late,
}

struct Waiter {
    reply: oneshot::Sender<Reply>,
    operator: Option<Arc<dyn Operator>>,
    signs: Arc<Signs>,
    /// Dropped when nobody waits any more, for whatever reason.
    _ends: Ends,
}

// === impl Pending ===

impl Pending {
    pub(crate) fn add(&self, id: u64, operator: Option<Arc<dyn Operator>>) -> Waiting {
        let (tx, rx) = oneshot::channel();
        let signs = Arc::new(Signs::default());
        let ends = Ends::of(&signs);
        let waiter = Waiter { reply: tx, operator, signs: Arc::clone(&signs), _ends: ends };
        self.map().insert(id, waiter);
        Waiting { reply: rx, signs }
    }

    /// Delivers a reply; one that nobody waits for is dropped.
    pub(crate) fn answer(&self, id: u64, reply: Reply) {
        let waiter = self.map().remove(&id);
        if let Some(waiter) = waiter {
            if let Some(operator) = waiter.operator.filter(|operator| operator.hears_on()) {
                self.started.note(id, operator, &reply);
            }
            // The waiter may have gone away between the two lines.
            drop(waiter.reply.send(reply));
        }
    }

    /// The operator behind request `id`, whose deadline is put off by this sign of life.
    pub(crate) fn progressed(&self, id: u64) -> Option<Arc<dyn Operator>> {
        let operator = self.map().get(&id).map(|waiter| {
            waiter.signs.progress();
            waiter.operator.clone()
        });
        operator.unwrap_or_else(|| self.started.of(id))
    }

    /// Whom a log message is for that came on the stream of request `of`.
    pub(crate) fn hearer(&self, of: Option<u64>, params: &Json) -> Option<Arc<dyn Operator>> {
        let task = if of.is_none() { self.started.about(params) } else { None };
        task.or_else(|| self.operator(of))
    }

    /// The operator of request `of`; without one, that of the youngest call in flight.
    ///
    /// Over stdio a server does not say which call its question belongs to. When calls of several
    /// parties are in flight it belongs to nobody: none may see what is meant for another.
    pub(crate) fn operator(&self, of: Option<u64>) -> Option<Arc<dyn Operator>> {
        self.meant(of).map(|(operator, _)| operator)
    }

    /// Opens a question to that operator; one that belongs to a task, to whoever has that.
    pub(crate) fn ask(&self, of: Option<u64>, params: &Json) -> Option<Asking> {
        if of.is_none()
            && let Some(operator) = self.started.about(params)
        {
            // Best where somebody waits for an answer anyway, as for the result of the task.
            let waiting = self.ask_party(operator.party());
            return waiting.or_else(|| Some(Asking::open(operator, Arc::default())));
        }
        let (operator, signs) = self.meant(of)?;
        Some(Asking::open(operator, signs))
    }

    /// Opens a question to whoever else of that party has a call in flight.
    pub(crate) fn ask_party(&self, party: u64) -> Option<Asking> {
        let map = self.map();
        let is_of = |waiter: &&Waiter| {
            waiter.operator.as_ref().is_some_and(|operator| operator.party() == party)
        };
        let waiter = map.values().find(is_of)?;
        let (operator, signs) = (waiter.operator.clone()?, Arc::clone(&waiter.signs));
        drop(map);
        Some(Asking::open(operator, signs))
    }

    fn meant(&self, of: Option<u64>) -> Option<(Arc<dyn Operator>, Arc<Signs>)> {
        let both = |waiter: &Waiter| Some((waiter.operator.clone()?, Arc::clone(&waiter.signs)));
        if let Some(id) = of {
            return self.map().get(&id).and_then(both);
        }
        let map = self.map();
        let mut parties = map.values().filter_map(|waiter| Some(waiter.operator.as_ref()?.party()));
        let party = parties.next()?;
        if parties.any(|other| other != party) {
            return None;
        }
        map.iter()
            .filter(|(_, waiter)| waiter.operator.is_some())
            .max_by_key(|(id, _)| **id)
            .and_then(|(_, waiter)| both(waiter))
    }

    /// Whether somebody waits for this reply.
    pub(crate) fn waits_for(&self, id: u64) -> bool {
        self.map().contains_key(&id)
    }

    /// Stops waiting; whether anybody did.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.map().remove(&id).is_some()
    }

    /// Wakes everybody up without a reply: there will be none.
    pub(crate) fn clear(&self) {
        self.map().clear();
    }

    fn map(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Spread ===

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number with no pattern in its bits: the golden ratio.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

// === impl Waiting ===

impl Waiting {
    /// Waits for the reply, for `limit` since the last sign of progress. The time that questions
    /// of the server are open does not count.
    pub(crate) async fn wait(mut self, limit: Duration) -> Result<Reply, NoReply> {
        let begun = Instant::now();
        let mut last = begun + limit.saturating_mul(MAX_EXTENSIONS);
        let mut deadline = begun + limit;
        // Since when a question is open.
        let mut paused: Option<Instant> = None;
        loop {
            let late = tokio::time::sleep_until(deadline);
            tokio::select! {
                biased;
                reply = &mut self.reply => return reply.map_err(|_| NoReply::Gone),
                () = poll_fn(|cx| self.signs.poll_changed(cx)) => {}
                () = late, if paused.is_none() => return Err(NoReply::Late),
            }
            let now = Instant::now();
            if let Some(since) = paused.take() {
                let open = now.saturating_duration_since(since);
                (deadline, last) = (deadline + open, last + open);
            }
            if self.signs.is_asking() {
                paused = Some(now);
            }
            if self.signs.take_progress() {
                // Looked at here as well: progress without end would always come first.
                if now >= last {
                    return Err(NoReply::Late);
                }
                deadline = (now + limit).min(last);
            }
        }
    }
}

// === impl Asking ===

impl Asking {
    fn open(operator: Arc<dyn Operator>, signs: Arc<Signs>) -> Self {
        signs.ask();
        Self { operator, signs }
    }

    /// Waits until the call that the question belongs to is over: then nobody needs an answer.
    pub(crate) async fn over(&self) {
        self.signs.over().await;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.signs.answer();
    }
}

#[cfg(test)]
mod tests {
    use capstan_hub::ports::Reply as Given;
    use capstan_hub::ports::{Approval, BoxFuture, Elicitation, Notice, Question};

    use super::*;

    /// Is never asked anything.
    struct Nobody;

    impl Operator for Nobody {
        fn approve<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Approval> {
            unreachable!()
        }

        fn elicit(&self, _: Elicitation) -> BoxFuture<'_, Given> {
            unreachable!()
        }

        fn notice(&self, _: Notice) {}
    }

    fn nobody() -> Arc<dyn Operator> {
        Arc::new(Nobody)
    }

    const LIMIT: Duration = Duration::from_secs(1);

    /// Waits for request 1 while the server reports progress at every `step`; how long it took.
    async fn wait_with_progress(step: Duration) -> (Result<Reply, NoReply>, Duration) {
        let (pending, begun) = (Pending::default(), Instant::now());
        let waiting = pending.add(1, None).wait(LIMIT);
        let progress = async {
            loop {
                tokio::time::sleep(step).await;
                pending.progressed(1);
            }
        };
        tokio::select! {
            result = waiting => (result, begun.elapsed()),
            () = progress => unreachable!(),
        }
    }

    #[track_caller]
    fn check(waited: &(Result<Reply, NoReply>, Duration), expected: Duration) {
        assert!(matches!(waited.0, Err(NoReply::Late)), "{waited:?}");
        // The clock of the runtime ticks in milliseconds.
        assert!(waited.1 >= expected && waited.1 < expected + LIMIT / 100, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn progress_puts_the_deadline_off_but_not_for_ever() {
        check(&wait_with_progress(LIMIT * 2).await, LIMIT);
        check(&wait_with_progress(LIMIT / 2).await, LIMIT * MAX_EXTENSIONS);
        check(&wait_with_progress(Duration::from_millis(1)).await, LIMIT * MAX_EXTENSIONS);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_of_another_request_puts_nothing_off() {
        let (pending, begun) = (Pending::default(), Instant::now());
        let (one, two) = (pending.add(1, None), pending.add(2, None));
        tokio::join!(
            async { check(&(one.wait(LIMIT).await, begun.elapsed()), LIMIT) },
            async {
                tokio::time::sleep(LIMIT / 2).await;
                pending.progressed(2);
            },
            async { check(&(two.wait(LIMIT).await, begun.elapsed()), LIMIT + LIMIT / 2) },
        );
    }

    fn ask(pending: &Pending) -> Option<Asking> {
        pending.ask(None, &Json::empty_object())
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_question_is_open_does_not_count_for_its_call() {
        let (pending, begun) = (Pending::default(), Instant::now());
        let (older, younger) = (pending.add(1, Some(nobody())), pending.add(2, Some(nobody())));
        tokio::join!(
            async { check(&(older.wait(LIMIT).await, begun.elapsed()), LIMIT) },
            async { check(&(younger.wait(LIMIT).await, begun.elapsed()), LIMIT * 31) },
            async {
                tokio::time::sleep(LIMIT / 2).await;
                let (one, two) = (ask(&pending).unwrap(), ask(&pending).unwrap());
                tokio::time::sleep(LIMIT * 20).await;
                drop(one);
                tokio::time::sleep(LIMIT * 10).await;
                drop(two);
            },
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_puts_off_no_end_but_the_deadline() {
        let pending = Pending::default();
        let waiting = pending.add(1, Some(nobody()));
        let question = ask(&pending).unwrap();
        tokio::join!(
            async { assert!(matches!(waiting.wait(LIMIT).await, Err(NoReply::Gone))) },
            async { pending.clear() },
        );
        drop(question);
        assert!(ask(&pending).is_none());
        pending.add(2, None);
        assert!(ask(&pending).is_none(), "nobody is behind it");
    }
}
