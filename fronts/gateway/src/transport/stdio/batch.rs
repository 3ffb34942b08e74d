//! Collects the answers of a batch, which are sent as one message.

use std::collections::HashMap;

use crate::Answer;

/// Identifies a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchId(u64);

/// Batches with pending requests.
#[derive(Default)]
pub(crate) struct Batches {
    open: HashMap<BatchId, Batch>,
    next: u64,
}

#[derive(Default)]
struct Batch {
    /// Number of pending requests, plus one while the batch is being parsed.
    left: usize,
    answers: Vec<Answer>,
}

// === impl Batches ===

impl Batches {
    /// Opens a batch. A final [`Self::settle`] closes it when all of its messages are handled.
    pub(crate) fn open(&mut self) -> BatchId {
        let id = BatchId(self.next);
        self.next += 1;
        self.open.insert(id, Batch { left: 1, answers: Vec::new() });
        id
    }

    /// Adds a pending request to the batch.
    pub(crate) fn expect(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.left += 1;
        }
    }

    /// Completes one pending request, with or without an answer.
    ///
    /// Returns all answers after the last one.
    pub(crate) fn settle(&mut self, id: BatchId, answer: Option<Answer>) -> Option<Vec<Answer>> {
        let batch = self.open.get_mut(&id)?;
        batch.answers.extend(answer);
        batch.left = batch.left.saturating_sub(1);
        if batch.left > 0 {
            return None;
        }
        let done = self.open.remove(&id)?;
        // A batch of notifications gets no answer.
        (!done.answers.is_empty()).then_some(done.answers)
    }

    /// Adds an answer to a message that was refused.
    pub(crate) fn refuse(&mut self, id: BatchId, answer: Answer) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.answers.push(answer);
        }
    }
}
