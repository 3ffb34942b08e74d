//! The desk: questions that lie open for whoever can answer them from elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use capstan_model::Binding as Bound;
use futures::channel::oneshot;
use sha2::{Digest as _, Sha256};

use super::{Answer, Memory};
use crate::ports::{Binding, Question};

/// Questions that lie open at once. One more takes the place of one that nobody waits for.
pub const MAX_OPEN: usize = 64;

/// Those of one caller among several: nobody can fill the desk for all others. One more takes the
/// place of their own.
pub const MAX_OWN: usize = MAX_OPEN / 4;

/// Those who wait for the list to change; one more is answered at once.
const MAX_WATCHERS: usize = 64;

/// The letters of ids; none looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The open questions.
pub(super) struct Desk {
    seed: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    made: u64,
    revision: u64,
    open: Vec<Open>,
    watchers: Vec<oneshot::Sender<()>>,
}

/// A question that lies open.
pub(super) struct Open {
    pub(super) id: String,
    pub(super) question: Question,
    pub(super) binding: Binding,
    /// What the conversation remembers, for as long as there is one.
    pub(super) memory: Weak<Memory>,
    /// When it was asked, by the clock that never jumps.
    pub(super) asked: Duration,
    /// Where the answer goes while the call waits for it.
    pub(super) waiting: Option<oneshot::Sender<Answer>>,
}

/// A question as its call holds it. Dropping it leaves the question open and nobody waiting.
pub(super) struct Waiting<'a> {
    desk: &'a Desk,
    pub(super) id: String,
    pub(super) answer: oneshot::Receiver<Answer>,
}

// === impl Desk ===

impl Desk {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, state: Mutex::default() }
    }

    /// Lays a question open; `None` when there is no place for it.
    ///
    /// The same call that was refused before takes its question up again.
    pub(super) fn open(
        &self,
        question: &Question,
        binding: Binding,
        memory: &Arc<Memory>,
        asked: Duration,
    ) -> Option<Waiting<'_>> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state();
        let idle = |open: &Open| open.waiting.is_none();
        let same = state.open.iter().position(|open| idle(open) && open.binding == binding);
        let id = match same {
            Some(place) => state.open.remove(place).id,
            None => self.new_id(&mut state),
        };
        let subject = &question.caller.subject;
        let own = |open: &Open| open.question.caller.subject == *subject;
        // Behind standard input there is one caller, whose desk it is.
        let is_shared = question.caller.binding == Bound::Access;
        if is_shared && state.open.iter().filter(|open| own(open)).count() >= MAX_OWN {
            let oldest = state.open.iter().position(|open| own(open) && idle(open))?;
            state.open.remove(oldest);
        }
        if state.open.len() >= MAX_OPEN {
            let oldest = state.open.iter().position(idle)?;
            state.open.remove(oldest);
        }
        let (waiting, memory) = (Some(sender), Arc::downgrade(memory));
        let question = question.clone();
        state.open.push(Open { id: id.clone(), question, binding, memory, asked, waiting });
        state.changed();
        drop(state);
        Some(Waiting { desk: self, id, answer })
    }

    /// Looks at every open question, oldest first, and at the number of the list's state.
    pub(super) fn look<T>(&self, mut seen: impl FnMut(&Open) -> T) -> (u64, Vec<T>) {
        let state = self.state();
        (state.revision, state.open.iter().map(&mut seen).collect())
    }

    /// Takes a question off the desk.
    pub(super) fn take(&self, id: &str) -> Option<Open> {
        let mut state = self.state();
        let place = state.open.iter().position(|open| open.id == id)?;
        let open = state.open.remove(place);
        state.changed();
        drop(state);
        Some(open)
    }

    /// Takes a question off the desk and refuses the call that waits for it, in one step: whoever
    /// finds the question gone finds the no.
    pub(super) fn refuse(&self, id: &str) -> bool {
        let mut state = self.state();
        let Some(place) = state.open.iter().position(|open| open.id == id) else { return false };
        let waiting = state.open.remove(place).waiting;
        // A call that has gone away does not run either.
        let _ = waiting.map(|waiting| waiting.send(Answer::No));
        state.changed();
        true
    }

    /// Puts a question back whose answer could not be kept.
    pub(super) fn put_back(&self, open: Open) {
        let mut state = self.state();
        state.open.push(open);
        state.changed();
    }

    /// Takes away what was asked before `since`. A call that still waits keeps its question.
    pub(super) fn sweep(&self, since: Duration) {
        let mut state = self.state();
        let before = state.open.len();
        state.open.retain(|open| open.waiting.is_some() || open.asked >= since);
        if state.open.len() != before {
            state.changed();
        }
    }

    /// Tells when the list is no longer the one of that number; `None` when it is another already.
    pub(super) fn watch(&self, revision: u64) -> Option<oneshot::Receiver<()>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.watchers.retain(|watcher| !watcher.is_canceled());
        if state.revision != revision || state.watchers.len() >= MAX_WATCHERS {
            return None;
        }
        state.watchers.push(sender);
        drop(state);
        Some(receiver)
    }

    /// A short name that no open question has.
    fn new_id(&self, state: &mut State) -> String {
        loop {
            state.made += 1;
            let mut hash = Sha256::new();
            hash.update(self.seed.to_le_bytes());
            hash.update(state.made.to_le_bytes());
            let bytes = hash.finalize();
            // The first is never a digit, so that no id looks like a number.
            let letter = |(place, byte): (usize, &u8)| {
                let letters = if place == 0 { 24 } else { LETTERS.len() };
                char::from(*LETTERS.get(usize::from(*byte) % letters).unwrap_or(&b'x'))
            };
            let id: String = bytes.iter().take(4).enumerate().map(letter).collect();
            if state.open.iter().all(|open| open.id != id) {
                return id;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn changed(&mut self) {
        self.revision += 1;
        for watcher in self.watchers.drain(..) {
            // Whoever watched may have gone away.
            let _ = watcher.send(());
        }
    }
}

// === impl Waiting ===

impl Waiting<'_> {
    /// The question is answered at the front; whether somebody has said no to it elsewhere.
    pub(super) fn withdraw(&mut self) -> bool {
        drop(self.desk.take(&self.id));
        matches!(self.answer.try_recv(), Ok(Some(Answer::No)))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        // Under the same id another call may wait by now, which is not ours to send away.
        self.answer.close();
        let given_up = |open: &&mut Open| {
            open.id == self.id && open.waiting.as_ref().is_some_and(oneshot::Sender::is_canceled)
        };
        if let Some(open) = state.open.iter_mut().find(given_up) {
            open.waiting = None;
            state.changed();
        }
    }
}
