//! Lets other tasks run while a stream without pauses is read.

use tokio::task::yield_now;

/// The number of bytes after which other tasks and timers get to run.
pub const TURN: usize = 64 * 1024;

/// Counts the bytes read from one stream and yields regularly.
///
/// Reading alone rarely suspends a task while there is more to read. A server that sends data
/// without a pause would keep a single-threaded runtime from serving others, and from detecting
/// that a call timed out.
#[derive(Debug, Default)]
pub struct Turn {
    since: usize,
}

// === impl Turn ===

impl Turn {
    /// Counts these bytes; yields after every [`TURN`] bytes.
    pub async fn read(&mut self, bytes: usize) {
        self.since = self.since.saturating_add(bytes);
        if self.since >= TURN {
            self.since = 0;
            yield_now().await;
        }
    }
}
