//! Debounces changes of lists.
//!
//! A change is recorded at once and compared after a moment. Slow lists do not delay others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use capstan_hub::ports::Listing;
use capstan_model::{ServerName, ServerState};
use capstan_wire::protocol::MODERN;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, View};
use crate::gateway::Gateway;

/// Quiet time before a change is processed.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Maximum delay of a change by further changes.
const MAX_DEBOUNCE: Duration = Duration::from_secs(1);

/// Lists that may have changed. A set with one entry per list and server bounds it.
#[derive(Default)]
pub(crate) struct Changes {
    noted: Mutex<HashMap<(ServerName, Listing), News>>,
    news: Notify,
    /// Lists that are being compared now.
    looking: Mutex<HashMap<(View, Listing), Comparison>>,
    closed: AtomicBool,
}

/// The reason why a list may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    /// The server has answered for the first time, or again. That is news only to clients that have
    /// listed.
    MayDiffer,
    /// The server reports a change.
    Reported,
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
    pub(crate) fn note(&self, server: &ServerName, listing: Listing, news: News) {
        let mut noted = lock(&self.noted);
        let known = noted.entry((server.clone(), listing)).or_insert(news);
        *known = news.max(*known);
        drop(noted);
        self.news.notify_one();
    }

    /// True if a server in the view reports a change of the list that clients have not been told of
    /// yet.
    pub(crate) fn is_reported(&self, view: &View, listing: Listing) -> bool {
        let noted = lock(&self.noted);
        noted.iter().any(|((server, other), news)| {
            *other == listing && *news == News::Reported && view.has(server)
        })
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
    async fn next(&self) -> Option<HashMap<(ServerName, Listing), News>> {
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
            let reported = changed.iter().filter(|(_, news)| **news == News::Reported);
            gateway.tell_reported(&reported.map(|(list, _)| list.clone()).collect());
            for (view, listing) in gateway.lists.known() {
                let concerns =
                    |(server, other): &(ServerName, Listing)| view.has(server) && *other == listing;
                if changed.keys().any(concerns) {
                    gateway.look(view, listing);
                }
            }
        }
    }

    /// Notifies clients of reported changes: a client that is connected to the server itself is told
    /// of each, whether it makes a difference or not. Callers with access rules are told only of
    /// what they can see, if their list is known.
    fn tell_reported(&self, changed: &HashSet<(ServerName, Listing)>) {
        let known = self.lists.known();
        let listed: HashSet<(View, &str)> =
            known.iter().map(|(view, listing)| (view.clone(), listing.capability())).collect();
        for (view, listing) in known {
            if changed.iter().any(|(server, other)| *other == listing && view.has(server)) {
                self.lists.announce(view, listing);
            }
        }
        let hub = self.hub();
        // Templates and resources have the same notification.
        for listing in [Listing::Tools, Listing::Prompts, Listing::Resources] {
            let capability = listing.capability();
            let servers: HashSet<&ServerName> = changed
                .iter()
                .filter(|(_, other)| other.capability() == capability)
                .map(|(server, _)| server)
                .collect();
            if servers.is_empty() {
                continue;
            }
            let is_told = |client: &Client| {
                // Its list does not change with that of a server, unless a comparison says so.
                if self.searches(client, listing).is_some() {
                    return false;
                }
                let (view, caller) = (&client.view, &*client.caller);
                let sees = |server: &ServerName| view.has(server) && self.shows(server, caller);
                let is_compared = listed.contains(&(view.clone(), capability));
                (!is_compared || !hub.policy().binds(caller))
                    && servers.iter().any(|server| sees(server))
            };
            self.tell_those(&is_told, listing);
        }
    }

    /// Makes connected servers report changes of these lists to a client that listens. Only servers
    /// of 2026-07-28 must be asked to: the others report unasked. Starts nothing.
    pub(crate) fn follow_lists(self: &Arc<Self>, client: &Client, listings: &[Listing]) {
        let hub = self.hub();
        let must_be_asked = |server: &ServerName| {
            let state = hub.state(server);
            let is_connected =
                matches!(state, Some(ServerState::Connected | ServerState::Degraded(_)));
            is_connected && hub.about(server).is_some_and(|about| about.protocol == MODERN)
        };
        for server in self.shown(&client.view) {
            if !must_be_asked(&server) || !self.shows(&server, &client.caller) {
                continue;
            }
            // Reading a list subscribes to its changes. A list that was read is in memory.
            let lists: Vec<_> =
                listings.iter().map(|listing| hub.list_in_background(&server, *listing)).collect();
            tokio::spawn(async move {
                for list in lists {
                    if let Err(error) = list.await {
                        tracing::debug!(%server, %error, "changes of a list cannot be followed");
                    }
                }
            });
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
                // Without a difference, there is nothing that the announcement was about.
                gateway.lists.take_announced(&key);
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
