//! Lets other tasks run while a stream is read that never pauses.

use tokio::task::yield_now;

/// Other tasks and timers get a turn each time this many bytes have been read.
pub const TURN: usize = 64 * 1024;

/// Counts what is read of one stream.
///
/// Reading alone rarely suspends a task while there is more to read. A server that sends noise
/// without a pause would keep a single-threaded runtime from serving others, and from noticing that
/// a call timed out.
#[derive(Debug, Default)]
pub struct Turn {
    since: usize,
}

// === impl Turn ===

impl Turn {
    /// Counts these bytes; suspends the task when its turn is over.
    pub async fn read(&mut self, bytes: usize) {
        self.since = self.since.saturating_add(bytes);
        if self.since >= TURN {
            self.since = 0;
            yield_now().await;
        }
    }
}
