//! A server of a hub: listed from memory, started when needed, stopped when idle.
//!
//! Private to this crate. A [`Lease`] is the only way to a connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::protocol;
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use tracing::info;

use super::holds::Holds;
use super::idle::IdleRule;
use super::lane_agreement::LaneAgreement;
use super::lease::{Hold, Lease};
use super::manifest::Manifest;
use super::memory::{Memory, News};
use super::supervisor::{Supervisor, lock};
use crate::Freshness;
use crate::pipeline::System;
use crate::ports::{
    About, Backend, BoxFuture, Era, Footprint, Item, Lane, Listener, Listing, Pace, SavedText,
};

/// How long an unused server without items is kept. Some servers add their items a moment after
/// they have started.
const WITHOUT_ITEMS: Duration = Duration::from_secs(10);
/// The time after which a list that has not changed is confirmed again in the store.
const CONFIRMED_FOR: SignedDuration = SignedDuration::from_secs(60);

/// The supervision settings of a server.
#[derive(Clone, Debug)]
pub struct Terms {
    /// When it is started.
    pub start: Start,
    /// When it is stopped.
    pub idle: IdleRule,
    /// The key of its manifest, different for each program that the server could be. `None` if
    /// nothing is saved.
    pub key: Option<String>,
}

/// The time at which a server with saved lists is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the gateway.
    Eager,
    /// When a client requests a list.
    OnList,
    /// On first use. A server that had no items is started once, because no use would start it.
    #[default]
    Lazy,
    /// On first use, and for no other reason.
    OnDemand,
}

/// A server of a hub.
pub(crate) struct Server {
    pub(super) backend: Arc<dyn Backend>,
    /// Counts the server's calls.
    pub(super) supervisor: Option<Arc<Supervisor>>,
    /// Present if the supervisor starts and stops the server.
    pub(super) care: Option<Care>,
    pub(super) holds: Mutex<Holds>,
    /// Holds of the connections of lanes. Each holds the whole server as well.
    pub(super) lane_holds: Mutex<Holds>,
    /// The items that the connections of lanes define in the same way.
    pub(super) agreement: LaneAgreement,
    /// The server's identity on the connection of the legacy lane, if it has had one.
    legacy_about: Mutex<Option<Arc<About>>>,
    me: Weak<Self>,
}

/// The state of full supervision.
pub(super) struct Care {
    pub(super) terms: Terms,
    /// Read from the store on first use.
    memory: OnceLock<Mutex<Memory>>,
    /// The time of the last ping.
    pub(super) checked: Mutex<Duration>,
    /// The reason why a connected server does not seem to answer.
    pub(super) silent: Mutex<Option<String>>,
    /// True if the saved lists were compared with the server's, or the comparison is in progress.
    compared: AtomicBool,
}

// === impl Server ===

impl Server {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Arc<Self> {
        Self::with(backend, None, None)
    }

    pub(crate) fn counted(backend: Arc<dyn Backend>, supervisor: &Arc<Supervisor>) -> Arc<Self> {
        let server = Self::with(backend, Some(Arc::clone(supervisor)), None);
        supervisor.begin_to_count(&server);
        server
    }

    pub(crate) fn supervised(
        backend: Arc<dyn Backend>,
        supervisor: &Arc<Supervisor>,
        terms: Terms,
    ) -> Arc<Self> {
        let start = terms.start;
        let care = Care {
            terms,
            memory: OnceLock::new(),
            checked: Mutex::default(),
            silent: Mutex::default(),
            compared: AtomicBool::new(false),
        };
        let server = Self::with(backend, Some(Arc::clone(supervisor)), Some(care));
        supervisor.begin_to_count(&server);
        let is_eager = match start {
            Start::Eager => true,
            // No use would start a server without items, which may have some by now.
            Start::Lazy => server.has_no_items(),
            Start::OnList | Start::OnDemand => false,
        };
        if is_eager {
            server.compare();
        }
        server
    }

    fn with(
        backend: Arc<dyn Backend>,
        supervisor: Option<Arc<Supervisor>>,
        care: Option<Care>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            backend,
            supervisor,
            care,
            holds: Mutex::default(),
            lane_holds: Mutex::default(),
            agreement: LaneAgreement::default(),
            legacy_about: Mutex::default(),
            me: Weak::clone(me),
        })
    }

    pub(crate) fn name(&self) -> &ServerName {
        self.backend.name()
    }

    pub(crate) fn state(&self) -> ServerState {
        let Some(care) = &self.care else { return self.backend.state() };
        match self.backend.state() {
            ServerState::Idle if self.backend.about().is_none() && self.about().is_some() => {
                ServerState::Cached
            }
            ServerState::Connected => {
                let silent = lock(&care.silent).clone();
                silent.map_or(ServerState::Connected, ServerState::Degraded)
            }
            state @ (ServerState::Disabled
            | ServerState::AwaitingApproval
            | ServerState::Cached
            | ServerState::Connecting
            | ServerState::Degraded(_)
            | ServerState::NeedsLogin
            | ServerState::Idle
            | ServerState::Failed(_)) => state,
        }
    }

    /// The server's identity, if it is known. Starts nothing.
    pub(crate) fn about(&self) -> Option<Arc<About>> {
        let remembered = || self.memory(self.care.as_ref()?).about.clone();
        self.backend.about().or_else(remembered)
    }

    /// The server's identity as callers of the lane see it; `None` if that is not known. Starts
    /// nothing.
    pub(crate) fn about_in(&self, lane: Lane) -> Option<Arc<About>> {
        let home = self.about()?;
        let is_legacy = self.separate(lane).era == Some(Era::Legacy);
        let has_own = is_legacy && home.protocol == protocol::MODERN;
        if has_own { lock(&self.legacy_about).clone() } else { Some(home) }
    }

    /// The lane, if it may have a connection of its own. Others are served by the home connection,
    /// and what only describes the server must not choose that connection's era.
    pub(crate) fn separate(&self, lane: Lane) -> Lane {
        if self.backend.may_have_lanes() { lane } else { Lane { era: None, ..lane } }
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        let supervisor = self.supervisor.as_ref()?;
        let calls_per_hour = supervisor.calls_per_hour(self.name());
        let stops_in = self.care.as_ref().and_then(|care| {
            let idle = lock(&self.holds).idle(supervisor.now())?;
            let timeout = self.idle_timeout(care, calls_per_hour)?;
            let is_connected = is_connected(&self.backend.state());
            is_connected.then(|| timeout.saturating_sub(idle))
        });
        Some(Pace { calls_per_hour, stops_in })
    }

    /// True if the server was seen, and had no items.
    fn has_no_items(&self) -> bool {
        self.care.as_ref().is_some_and(|care| self.memory(care).has_no_items())
    }

    /// The time without use after which the server is stopped. One without items is not kept, except
    /// if the operator wants it to run.
    pub(super) fn idle_timeout(&self, care: &Care, calls_per_hour: f64) -> Option<Duration> {
        let timeout = care.terms.idle.timeout(calls_per_hour)?;
        let has_no_items = self.memory(care).has_no_items();
        Some(if has_no_items { timeout.min(WITHOUT_ITEMS) } else { timeout })
    }

    pub(crate) fn footprint(&self) -> Option<Footprint> {
        self.backend.footprint()
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.backend.stderr()
    }

    pub(crate) fn close(&self) -> BoxFuture<'_, ()> {
        self.backend.close()
    }

    /// Takes a lease of the open connections of a lane, if none is missing.
    pub(crate) fn lease(self: &Arc<Self>, lane: Lane) -> Option<Lease> {
        let connected = Arc::clone(&self.backend).connected(lane)?;
        Some(Lease::new(Hold::new(self), lane, connected))
    }

    /// Takes a lease; opens the connections of the lane that are missing.
    pub(crate) async fn wake(self: &Arc<Self>, lane: Lane) -> Result<Lease, CallError> {
        let hold = Hold::new(self);
        let connected = Arc::clone(&self.backend).connect(lane).await?;
        if let Some(own) = &connected.own
            && let Some(about) = own.identity()
        {
            *lock(&self.legacy_about) = Some(about);
        }
        Ok(Lease::new(hold, lane, connected))
    }

    /// Sends a system message. Starts nothing.
    pub(crate) async fn inform(self: &Arc<Self>, system: &System) -> Result<(), CallError> {
        let hold = Hold::new(self);
        let informed = self.backend.inform(system).await;
        // Even if the server refuses: an ended subscription no longer holds it.
        lock(&self.holds).informed(system);
        lock(&self.lane_holds).informed(system);
        drop(hold);
        informed
    }

    /// True if a subscription to this resource was admitted and not ended.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        lock(&self.holds).is_subscribed(uri)
    }

    /// True if there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        is_connected(&self.backend.state())
    }

    /// The saved list, or that of the last connection. Starts nothing.
    pub(crate) fn remembered(&self, listing: Listing) -> Option<Arc<[Item]>> {
        self.memory(self.care.as_ref()?).list(listing)
    }

    /// Returns a list with the required freshness.
    pub(crate) async fn list(
        self: &Arc<Self>,
        listing: Listing,
        freshness: Freshness,
    ) -> Result<Arc<[Item]>, CallError> {
        let Some(care) = &self.care else { return self.current(listing).await };
        let is_connected = || is_connected(&self.backend.state());
        let remembered = self.memory(care).list(listing);
        let starts_on_list = care.terms.start == Start::OnList;
        match freshness {
            Freshness::Current => return self.current(listing).await,
            Freshness::Remembered
                if starts_on_list && !care.compared.load(Ordering::Acquire) && !is_connected() =>
            {
                return remembered.ok_or_else(|| CallError::Unreachable {
                    server: self.name().clone(),
                    reason: "it starts when a client asks for a list".to_owned(),
                });
            }
            Freshness::Remembered | Freshness::Known => {}
        }
        if starts_on_list {
            self.compare();
        }
        match remembered {
            Some(items) if !is_connected() => Ok(items),
            // Falls back to the saved list: the server may be back when it is needed.
            Some(items) => self.current(listing).await.or(Ok(items)),
            None => self.current(listing).await,
        }
    }

    async fn current(self: &Arc<Self>, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        let lease = match self.lease(Lane::ANY) {
            Some(lease) => lease,
            None => self.wake(Lane::ANY).await?,
        };
        lease.list(listing).await
    }

    /// Compares the running server's list with the known one. Returns the list to use, and the
    /// difference.
    pub(super) fn adopt(&self, listing: Listing, items: Arc<[Item]>) -> (Arc<[Item]>, News) {
        let Some(care) = &self.care else { return (items, News::None) };
        let (items, news) = self.memory(care).adopt(listing, &items);
        if news == News::None {
            self.confirm(care);
        } else {
            self.remember(care);
        }
        (items, news)
    }

    /// Saves the server's identity and lists.
    fn remember(&self, care: &Care) {
        let about = self.backend.about();
        let mut memory = self.memory(care);
        if about.is_some() {
            memory.about = about;
        }
        let (Some(key), Some(supervisor)) = (&care.terms.key, &self.supervisor) else { return };
        memory.seen = Some(supervisor.ports.clock.now());
        let manifest = memory.manifest();
        drop(memory);
        if let Some(text) = manifest.as_ref().and_then(Manifest::to_text) {
            supervisor.ports.manifests.save(key, &|to| text.write_to(to));
        }
    }

    /// Records that the saved lists are what the server has now.
    fn confirm(&self, care: &Care) {
        let (Some(key), Some(supervisor)) = (&care.terms.key, &self.supervisor) else { return };
        let now = supervisor.ports.clock.now();
        let mut memory = self.memory(care);
        let is_recent = |seen: Timestamp| now.duration_since(seen) < CONFIRMED_FOR;
        if memory.seen.is_some_and(is_recent) {
            return;
        }
        memory.seen = Some(now);
        drop(memory);
        supervisor.ports.manifests.confirm(key);
    }

    /// The known lists, which are read from the store on first use.
    pub(super) fn memory<'a>(&self, care: &'a Care) -> MutexGuard<'a, Memory> {
        let load = || {
            let (key, supervisor) = (care.terms.key.as_ref()?, self.supervisor.as_ref()?);
            let SavedText { text, confirmed } = supervisor.ports.manifests.load(key)?;
            Some(Memory::of(Manifest::from_text(text)?, confirmed))
        };
        lock(care.memory.get_or_init(|| Mutex::new(load().unwrap_or_default())))
    }

    /// The time at which a saved list was last confirmed. `None` if there is none, or the server is
    /// connected. Starts nothing.
    pub(crate) fn saved_at(&self, listing: Listing) -> Option<Timestamp> {
        let care = self.care.as_ref().filter(|_| !is_connected(&self.backend.state()))?;
        let memory = self.memory(care);
        memory.list(listing)?;
        memory.seen
    }

    /// Reads and saves all lists of a connected server. Starts nothing.
    pub(crate) async fn save_lists(self: &Arc<Self>) {
        if self.care.is_some() && is_connected(&self.backend.state()) {
            self.compare_all().await;
        }
    }

    /// Compares the saved lists with the server's, once, in the background.
    pub(super) fn compare(&self) {
        let Some(care) = &self.care else { return };
        if care.terms.key.is_none() || care.compared.swap(true, Ordering::AcqRel) {
            return;
        }
        self.in_background(|server| async move { server.compare_all().await }.boxed());
    }

    async fn compare_all(self: &Arc<Self>) {
        let Some(care) = &self.care else { return };
        let before = self.memory(care).about.clone();
        for listing in Listing::ALL {
            match self.read(listing).await {
                Ok(News::Changed) => self.tell_changed(listing),
                Ok(News::None | News::First) => {}
                // The next use compares again.
                Err(_) if !is_connected(&self.backend.state()) => {
                    care.compared.store(false, Ordering::Release);
                    return;
                }
                Err(error) => info!(server = %self.name(), %error, "a list cannot be read"),
            }
        }
        if self.backend.about().is_some_and(|about| before.as_ref() != Some(&about)) {
            self.remember(care);
        }
    }

    async fn read(self: &Arc<Self>, listing: Listing) -> Result<News, CallError> {
        let lease = self.wake(Lane::ANY).await?;
        let items = lease.read(listing).await?;
        Ok(self.adopt(listing, items).1)
    }

    pub(super) fn tell_changed(&self, listing: Listing) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.ports.changes.list_may_differ(self.name(), listing);
        }
    }

    pub(super) fn in_background(&self, work: impl FnOnce(Arc<Self>) -> BoxFuture<'static, ()>) {
        let Some(supervisor) = self.supervisor.as_ref().filter(|one| !one.is_closed()) else {
            return;
        };
        if let Some(me) = self.me.upgrade() {
            (supervisor.ports.spawn)(work(me));
        }
    }
}

pub(super) fn is_connected(state: &ServerState) -> bool {
    matches!(state, ServerState::Connected | ServerState::Degraded(_))
}
