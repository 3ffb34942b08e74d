//! Debounces changes of lists.
//!
//! A change is recorded at once and compared after a moment. Slow lists do not delay others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use capstan_hub::ports::Listing;
use capstan_model::ServerName;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::client::View;
use crate::gateway::Gateway;

/// Quiet time before a change is processed.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Maximum delay of a change by further changes.
const MAX_DEBOUNCE: Duration = Duration::from_secs(1);

/// Lists that may have changed. A set with one entry per list and server bounds it.
#[derive(Default)]
pub(crate) struct Changes {
    noted: Mutex<HashSet<(ServerName, Listing)>>,
    news: Notify,
    /// Lists that are being compared now.
    looking: Mutex<HashMap<(View, Listing), Comparison>>,
    closed: AtomicBool,
}

/// The state of a comparison that is in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Once,
    Again,
}

// === impl Changes ===

impl Changes {
    /// Records that a list of a server may have changed.
    pub(crate) fn note(&self, server: &ServerName, listing: Listing) {
        lock(&self.noted).insert((server.clone(), listing));
        self.news.notify_one();
    }

    /// Ends the task that sends changes.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// Begins a comparison; if one is in progress, makes it run again and returns false.
    fn begin(&self, key: &(View, Listing)) -> bool {
        match lock(&self.looking).entry(key.clone()) {
            Entry::Occupied(mut look) => {
                look.insert(Comparison::Again);
                false
            }
            Entry::Vacant(place) => {
                place.insert(Comparison::Once);
                true
            }
        }
    }

    /// True if the comparison need not run again.
    fn is_done(&self, key: &(View, Listing)) -> bool {
        let mut looking = lock(&self.looking);
        let done = looking.remove(key) != Some(Comparison::Again);
        if !done {
            looking.insert(key.clone(), Comparison::Once);
        }
        done
    }

    /// Waits for changed lists, after the debounce; `None` after close.
    async fn next(&self) -> Option<HashSet<(ServerName, Listing)>> {
        self.news.notified().await;
        let last = Instant::now() + MAX_DEBOUNCE;
        while !self.closed.load(Ordering::Acquire) {
            let quiet = (Instant::now() + DEBOUNCE).min(last);
            tokio::select! {
                biased;
                () = sleep_until(quiet) => return Some(std::mem::take(&mut *lock(&self.noted))),
                () = self.news.notified() => {}
            }
        }
        None
    }
}

impl Gateway {
    /// Processes changes as long as the gateway exists.
    pub(crate) async fn tell_changes(gateway: Weak<Self>, changes: Arc<Changes>) {
        while let Some(changed) = changes.next().await {
            let Some(gateway) = gateway.upgrade() else { return };
            for (view, listing) in gateway.lists.known() {
                let concerns = |(server, other): &(ServerName, Listing)| {
                    let shown = match &view {
                        View::All => true,
                        View::One(one) => one == server,
                    };
                    shown && *other == listing
                };
                if changed.iter().any(concerns) {
                    gateway.look(view, listing);
                }
            }
        }
    }

    /// Compares a list in the background. Clients that saw another version are notified.
    pub(crate) fn look(self: &Arc<Self>, view: View, listing: Listing) {
        let key = (view, listing);
        if !self.changes.begin(&key) {
            return;
        }
        let gateway = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                if let Err(fault) = gateway.compare(&key.0, listing).await {
                    tracing::debug!(?fault, "a list that may have changed cannot be read");
                }
                if gateway.changes.is_done(&key) {
                    return;
                }
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
