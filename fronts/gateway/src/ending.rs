//! The end: no new requests, some time for those under way, and an answer for those that are left.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::gateway::Gateway;

/// How often it is looked whether calls are still under way.
const STEP: Duration = Duration::from_millis(20);

/// How long clients may take to read the last of what there is to say.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

impl Gateway {
    /// Takes no new requests; ends when those under way are done, or were given up for not being so
    /// in time. Whoever waits for changes is told that there will be none.
    pub async fn drain(&self, time: Duration) {
        self.stop.send_replace(true);
        // Nobody can come back for these any more.
        self.park.close();
        let done = async {
            while self.in_flight() > 0 {
                sleep(STEP).await;
            }
        };
        if timeout(time, done).await.is_err() {
            self.give_up();
        }
    }

    /// Ends the calls under way. Their clients are told that nobody knows what became of them, and
    /// their servers that nobody waits any more.
    pub fn give_up(&self) {
        let calls = self.in_flight();
        if calls > 0 {
            tracing::warn!(calls, "calls that have not ended are given up");
        }
        self.over.notify_waiters();
    }

    /// Calls under way.
    pub fn in_flight(&self) -> usize {
        self.metrics.in_flight()
    }
}
