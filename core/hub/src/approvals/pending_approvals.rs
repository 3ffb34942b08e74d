//! The pending approvals: open questions that the operator can answer from other shells.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use capstan_model::Binding as Bound;
use futures::channel::oneshot;
use sha2::{Digest as _, Sha256};

use super::{Answer, Memory};
use crate::ports::{Binding, Question};

/// Most open questions. A further one replaces the oldest for which no call waits.
pub const MAX_OPEN: usize = 64;

/// Most open questions of one remote caller, so that none can use up the limit.
///
/// A further one replaces the caller's own oldest for which no call waits.
pub const MAX_OWN: usize = MAX_OPEN / 4;

/// Most concurrent waits for a change of the list; a further one returns at once.
const MAX_WATCHERS: usize = 64;

/// The characters of ids; none of them looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The open questions.
pub(super) struct PendingApprovals {
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

/// One open question.
pub(super) struct Open {
    pub(super) id: String,
    pub(super) question: Question,
    pub(super) binding: Binding,
    /// The session's remembered approvals, for as long as the session exists.
    pub(super) memory: Weak<Memory>,
    /// When it was asked, on the monotonic clock.
    pub(super) asked: Duration,
    /// Receives the answer, if a call waits for it.
    pub(super) waiting: Option<oneshot::Sender<Answer>>,
}

/// The call's handle of its question. Dropping it leaves the question open, with no call waiting.
pub(super) struct Waiting<'a> {
    pending: &'a PendingApprovals,
    pub(super) id: String,
    pub(super) answer: oneshot::Receiver<Answer>,
}

// === impl PendingApprovals ===

impl PendingApprovals {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, state: Mutex::default() }
    }

    /// Opens a question; `None` if there is no room for it.
    ///
    /// A repeated call that was refused before reuses its question's id.
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
        // A caller on standard input is the only one and may use the whole limit.
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
        Some(Waiting { pending: self, id, answer })
    }

    /// Maps every open question, oldest first. Also returns the revision of the list.
    pub(super) fn look<T>(&self, mut seen: impl FnMut(&Open) -> T) -> (u64, Vec<T>) {
        let state = self.state();
        (state.revision, state.open.iter().map(&mut seen).collect())
    }

    /// Removes a question and returns it.
    pub(super) fn take(&self, id: &str) -> Option<Open> {
        let mut state = self.state();
        let place = state.open.iter().position(|open| open.id == id)?;
        let open = state.open.remove(place);
        state.changed();
        drop(state);
        Some(open)
    }

    /// Removes a question and refuses its waiting call in one step.
    ///
    /// A thread that finds the question gone therefore finds the refusal.
    pub(super) fn refuse(&self, id: &str) -> bool {
        let mut state = self.state();
        let Some(place) = state.open.iter().position(|open| open.id == id) else { return false };
        let waiting = state.open.remove(place).waiting;
        // If the call has ended, the refusal is not needed.
        let _ = waiting.map(|waiting| waiting.send(Answer::No));
        state.changed();
        true
    }

    /// Puts a question back after its answer could not be saved.
    pub(super) fn put_back(&self, open: Open) {
        let mut state = self.state();
        state.open.push(open);
        state.changed();
    }

    /// Removes questions that were asked before `since`, except those for which a call waits.
    pub(super) fn sweep(&self, since: Duration) {
        let mut state = self.state();
        let before = state.open.len();
        state.open.retain(|open| open.waiting.is_some() || open.asked >= since);
        if state.open.len() != before {
            state.changed();
        }
    }

    /// Returns a receiver for the next change of the list.
    ///
    /// `None` if the revision already differs, or if there are too many watchers.
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

    /// Returns a short id that no open question has.
    fn new_id(&self, state: &mut State) -> String {
        loop {
            state.made += 1;
            let mut hash = Sha256::new();
            hash.update(self.seed.to_le_bytes());
            hash.update(state.made.to_le_bytes());
            let bytes = hash.finalize();
            // The first character is never a digit, so that no id looks like a number.
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
            // The watcher may have gone away.
            let _ = watcher.send(());
        }
    }
}

// === impl Waiting ===

impl Waiting<'_> {
    /// Removes the question after the front has answered it. Returns true if another shell said no.
    pub(super) fn withdraw(&mut self) -> bool {
        drop(self.pending.take(&self.id));
        matches!(self.answer.try_recv(), Ok(Some(Answer::No)))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.pending.state();
        // By now another call may wait under the same id; its entry must stay.
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
