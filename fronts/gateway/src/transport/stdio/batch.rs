//! The answers to several messages at once, which are one message too.

use std::collections::HashMap;

use crate::Answer;

/// Which batch a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchId(u64);

/// Batches whose requests are not all answered yet.
#[derive(Default)]
pub(crate) struct Batches {
    open: HashMap<BatchId, Batch>,
    next: u64,
}

#[derive(Default)]
struct Batch {
    /// Requests that are not answered yet, and one for as long as messages are taken out of it.
    left: usize,
    answers: Vec<Answer>,
}

// === impl Batches ===

impl Batches {
    /// Opens a batch. It is closed by [`Self::settle`] when all of it has been looked at.
    pub(crate) fn open(&mut self) -> BatchId {
        let id = BatchId(self.next);
        self.next += 1;
        self.open.insert(id, Batch { left: 1, answers: Vec::new() });
        id
    }

    /// One more request of the batch is worked on.
    pub(crate) fn expect(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.left += 1;
        }
    }

    /// Something of the batch is done, with or without an answer. All answers, when it was the
    /// last.
    pub(crate) fn settle(&mut self, id: BatchId, answer: Option<Answer>) -> Option<Vec<Answer>> {
        let batch = self.open.get_mut(&id)?;
        batch.answers.extend(answer);
        batch.left = batch.left.saturating_sub(1);
        if batch.left > 0 {
            return None;
        }
        let done = self.open.remove(&id)?;
        // Notifications alone are not answered at all.
        (!done.answers.is_empty()).then_some(done.answers)
    }

    /// Adds an answer to something that was never worked on.
    pub(crate) fn refuse(&mut self, id: BatchId, answer: Answer) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.answers.push(answer);
        }
    }
}
