//! Connections that no new call uses: closed when the last call on them has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_hub::Hub;
use capstan_hub::ports::Backend;
use futures::future::join_all;
use tokio::time::Instant;

/// How long a call may still take on a connection that is to be closed.
const LAST_CALL: Duration = Duration::from_mins(10);

/// How often it is looked whether the last call has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Connections that are to be closed.
#[derive(Default)]
pub(crate) struct Retired(Mutex<Vec<Arc<dyn Backend>>>);

// === impl Retired ===

impl Retired {
    /// Closes what a hub had and the next one has not, once nobody uses that hub any more.
    pub(crate) fn take(self: &Arc<Self>, before: Arc<Hub>, now: &Hub) {
        let stays = |backend: &Arc<dyn Backend>| {
            now.backends.get(backend.name()).is_some_and(|now| Arc::ptr_eq(now, backend))
        };
        let gone: Vec<Arc<dyn Backend>> =
            before.backends.values().filter(|backend| !stays(backend)).map(Arc::clone).collect();
        if gone.is_empty() {
            return;
        }
        self.all().extend(gone.iter().map(Arc::clone));
        let (retired, used) = (Arc::clone(self), Arc::downgrade(&before));
        drop(before);
        tokio::spawn(async move {
            let last = Instant::now() + LAST_CALL;
            while used.strong_count() > 0 && Instant::now() < last {
                tokio::time::sleep(LOOK).await;
            }
            join_all(gone.iter().map(|backend| backend.close())).await;
            let is_closed = |one: &Arc<dyn Backend>| gone.iter().any(|gone| Arc::ptr_eq(gone, one));
            retired.all().retain(|one| !is_closed(one));
        });
    }

    /// Closes everything that is left, at once.
    pub(crate) async fn close(&self) {
        let left = std::mem::take(&mut *self.all());
        join_all(left.iter().map(|backend| backend.close())).await;
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn Backend>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
