//! The queue to the screen: keys and news, in the order of their arrival.
//!
//! Consecutive pieces of an answer become one entry, so that a fast answer does not make a long
//! queue while the screen draws.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::event::Event;

use crate::news::News;

/// The most keys that wait; a paste is one key.
const MAX_KEYS: usize = 4096;

/// Something that reaches the screen.
pub(crate) enum Input {
    /// A key, a paste, another size.
    Terminal(Event),
    /// News of the engine.
    News(News),
    /// No more keys come: the terminal is gone.
    Lost,
}

/// The queue.
pub(crate) struct Mailbox {
    queue: Mutex<VecDeque<Input>>,
    changed: Condvar,
    columns: AtomicU16,
}

// === impl Mailbox ===

impl Mailbox {
    pub(crate) fn new() -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        Self { queue, changed, columns: AtomicU16::new(80) }
    }

    /// Adds news; never blocks.
    pub(crate) fn tell(&self, news: News) {
        let mut queue = self.queue();
        match (news, queue.back_mut()) {
            (News::Text(more), Some(Input::News(News::Text(text)))) => text.push_str(&more),
            (news, _) => queue.push_back(Input::News(news)),
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Adds a key; waits while too many wait already.
    pub(crate) fn key(&self, input: Input) {
        let full = |queue: &mut VecDeque<Input>| queue.len() >= MAX_KEYS;
        let waited = self.changed.wait_while(self.queue(), full);
        waited.unwrap_or_else(PoisonError::into_inner).push_back(input);
        self.changed.notify_all();
    }

    /// Takes all entries; waits for the first one, at most so long.
    pub(crate) fn take(&self, limit: Duration) -> VecDeque<Input> {
        let waited = self.changed.wait_timeout_while(self.queue(), limit, |q| q.is_empty());
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *queue);
        drop(queue);
        self.changed.notify_all();
        taken
    }

    /// The width of the terminal.
    pub(crate) fn columns(&self) -> usize {
        usize::from(self.columns.load(Ordering::Relaxed))
    }

    pub(crate) fn set_columns(&self, columns: u16) {
        self.columns.store(columns, Ordering::Relaxed);
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Input>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
