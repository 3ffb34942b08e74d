//! Connections that no new call uses; they are closed when their last call has ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::{Hub, Retired as Connections};
use futures::future::join_all;
use tokio::time::Instant;

/// Time limit for a call on a connection that is to be closed.
const LAST_CALL: Duration = Duration::from_mins(10);

/// Interval at which it is checked whether the last call has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Connections that are to be closed.
#[derive(Default)]
pub(crate) struct Retired(Mutex<Vec<Arc<Connections>>>);

// === impl Retired ===

impl Retired {
    /// Closes the connections of a hub that its successor does not use, once no call uses that hub.
    pub(crate) fn take(self: &Arc<Self>, before: Arc<Hub>, now: &Hub) {
        let gone = Arc::new(before.retired(now));
        if gone.is_empty() {
            return;
        }
        self.all().push(Arc::clone(&gone));
        let (retired, used) = (Arc::clone(self), Arc::downgrade(&before));
        drop(before);
        tokio::spawn(async move {
            let last = Instant::now() + LAST_CALL;
            while used.strong_count() > 0 && Instant::now() < last {
                tokio::time::sleep(LOOK).await;
            }
            gone.close().await;
            retired.all().retain(|one| !Arc::ptr_eq(one, &gone));
        });
    }

    /// Closes all remaining connections at once.
    pub(crate) async fn close(&self) {
        let left = std::mem::take(&mut *self.all());
        join_all(left.iter().map(|connections| connections.close())).await;
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Connections>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
