//! A server of a hub: listed from memory, started when needed, stopped when idle.
//!
//! Private to this crate. A [`Lease`] is the only way to a connection. It keeps the server from
//! being stopped, and everything that is listed or sent with it uses that one connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::protocol;
use futures::FutureExt;
use tracing::info;

use super::holds::Holds;
use super::idle::IdleRule;
use super::manifest::Manifest;
use super::memory::{Memory, News};
use super::supervisor::{Supervisor, lock};
use crate::pipeline::{Message, Outgoing, System};
use crate::ports::{
    About, Backend, BoxFuture, Connection, Footprint, Item, Listener, Listing, Pace,
};
use crate::{Answer, Freshness};

/// How long an unused server without items is kept. Some servers add their items a moment after
/// they have started.
const WITHOUT_ITEMS: Duration = Duration::from_secs(10);

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
    /// On first use.
    #[default]
    Lazy,
}

/// A server of a hub.
pub(crate) struct Server {
    pub(super) backend: Arc<dyn Backend>,
    /// Counts the server's calls.
    pub(super) supervisor: Option<Arc<Supervisor>>,
    /// Present if the supervisor starts and stops the server.
    pub(super) care: Option<Care>,
    pub(super) holds: Mutex<Holds>,
    me: Weak<Self>,
}

/// The state of full supervision.
pub(super) struct Care {
    pub(super) terms: Terms,
    memory: Mutex<Memory>,
    /// The time of the last ping.
    pub(super) checked: Mutex<Duration>,
    /// The reason why a connected server does not seem to answer.
    pub(super) silent: Mutex<Option<String>>,
    /// True if the saved lists were compared with the server's, or the comparison is in progress.
    compared: AtomicBool,
}

/// The right to use one connection of a server, which is not stopped meanwhile.
pub(crate) struct Lease {
    hold: Hold,
    connection: Arc<dyn Connection>,
}

/// Keeps a server from being stopped until it is dropped.
struct Hold(Arc<Server>);

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
        let text = terms.key.as_ref().and_then(|key| supervisor.ports.manifests.load(key));
        let manifest = text.and_then(Manifest::from_text);
        let memory = manifest.map(Memory::of).unwrap_or_default();
        // No use would start a server without items, which may have some by now.
        let is_eager = match terms.start {
            Start::Eager => true,
            Start::Lazy => memory.has_no_items(),
            Start::OnList => false,
        };
        let care = Care {
            terms,
            memory: Mutex::new(memory),
            checked: Mutex::default(),
            silent: Mutex::default(),
            compared: AtomicBool::new(false),
        };
        let server = Self::with(backend, Some(Arc::clone(supervisor)), Some(care));
        supervisor.begin_to_count(&server);
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
        let remembered = || lock(&self.care.as_ref()?.memory).about.clone();
        self.backend.about().or_else(remembered)
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        let supervisor = self.supervisor.as_ref()?;
        let calls_per_hour = supervisor.calls_per_hour(self.name());
        let stops_in = self.care.as_ref().and_then(|care| {
            let idle = lock(&self.holds).idle(supervisor.now())?;
            let timeout = care.idle_timeout(calls_per_hour)?;
            let is_connected = is_connected(&self.backend.state());
            is_connected.then(|| timeout.saturating_sub(idle))
        });
        Some(Pace { calls_per_hour, stops_in })
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

    /// Takes a lease of the open connection, if there is one.
    pub(crate) fn lease(self: &Arc<Self>) -> Option<Lease> {
        let connection = Arc::clone(&self.backend).connected()?;
        Some(Lease { hold: self.hold(), connection })
    }

    /// Takes a lease; connects if there is no connection.
    pub(crate) async fn wake(self: &Arc<Self>) -> Result<Lease, CallError> {
        let hold = self.hold();
        let connection = Arc::clone(&self.backend).connect().await?;
        Ok(Lease { hold, connection })
    }

    fn hold(self: &Arc<Self>) -> Hold {
        if let (Some(_), Some(supervisor)) = (&self.care, &self.supervisor) {
            lock(&self.holds).begin(supervisor.now());
        }
        Hold(Arc::clone(self))
    }

    /// Sends a system message. Starts nothing.
    pub(crate) async fn inform(self: &Arc<Self>, system: &System) -> Result<(), CallError> {
        let hold = self.hold();
        let informed = self.backend.inform(system).await;
        // Even if the server refuses: an ended subscription no longer holds it.
        lock(&self.holds).informed(system);
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
        lock(&self.care.as_ref()?.memory).list(listing)
    }

    /// Returns a list with the required freshness.
    pub(crate) async fn list(
        self: &Arc<Self>,
        listing: Listing,
        freshness: Freshness,
    ) -> Result<Arc<[Item]>, CallError> {
        let Some(care) = &self.care else { return self.current(listing).await };
        let is_connected = || is_connected(&self.backend.state());
        let remembered = lock(&care.memory).list(listing);
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
        let lease = match self.lease() {
            Some(lease) => lease,
            None => self.wake().await?,
        };
        lease.list(listing).await
    }

    /// Compares the running server's list with the known one. Returns the list to use, and the
    /// difference.
    fn adopt(&self, listing: Listing, items: Arc<[Item]>) -> (Arc<[Item]>, News) {
        let Some(care) = &self.care else { return (items, News::None) };
        let (items, news) = lock(&care.memory).adopt(listing, &items);
        if news != News::None {
            self.remember(care);
        }
        (items, news)
    }

    /// Saves the server's identity and lists.
    fn remember(&self, care: &Care) {
        let about = self.backend.about();
        let mut memory = lock(&care.memory);
        if about.is_some() {
            memory.about = about;
        }
        let (Some(key), Some(supervisor)) = (&care.terms.key, &self.supervisor) else { return };
        let manifest = memory.manifest();
        drop(memory);
        if let Some(text) = manifest.as_ref().and_then(Manifest::to_text) {
            supervisor.ports.manifests.save(key, &|to| text.write_to(to));
        }
    }

    /// Compares the saved lists with the server's, once, in the background.
    fn compare(&self) {
        let Some(care) = &self.care else { return };
        if care.terms.key.is_none() || care.compared.swap(true, Ordering::AcqRel) {
            return;
        }
        self.in_background(|server| async move { server.compare_all().await }.boxed());
    }

    async fn compare_all(self: &Arc<Self>) {
        let Some(care) = &self.care else { return };
        let before = lock(&care.memory).about.clone();
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
        let lease = self.wake().await?;
        let items = Arc::clone(&lease.connection).list(listing).await?;
        Ok(self.adopt(listing, items).1)
    }

    fn tell_changed(&self, listing: Listing) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.ports.changes.list_changed(self.name(), listing);
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

// === impl Care ===

impl Care {
    /// The time without use after which the server is stopped. One without items is not kept, except
    /// if the operator wants it to run.
    pub(super) fn idle_timeout(&self, calls_per_hour: f64) -> Option<Duration> {
        let timeout = self.terms.idle.timeout(calls_per_hour)?;
        let has_no_items = lock(&self.memory).has_no_items();
        Some(if has_no_items { timeout.min(WITHOUT_ITEMS) } else { timeout })
    }
}

// === impl Lease ===

impl Lease {
    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.hold.0
    }

    /// True if the server speaks the modern protocol.
    pub(crate) fn is_modern(&self) -> bool {
        self.server().about().is_some_and(|about| about.protocol == protocol::MODERN)
    }

    /// Returns a list of the running server, if no waiting is necessary.
    pub(crate) fn listed(&self, listing: Listing) -> Option<Arc<[Item]>> {
        let items = self.connection.listed(listing)?;
        match &self.server().care {
            Some(care) => lock(&care.memory).adopted(listing, &items),
            None => Some(items),
        }
    }

    /// Returns a list of the running server.
    pub(crate) async fn list(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        let items = Arc::clone(&self.connection).list(listing).await?;
        let server = self.server();
        let (items, news) = server.adopt(listing, items);
        if news == News::Changed {
            server.tell_changed(listing);
        }
        server.compare();
        Ok(items)
    }

    /// Sends a message that the pipeline admitted.
    pub(crate) async fn send(&self, outgoing: Outgoing<'_>) -> Result<Answer, CallError> {
        let server = self.server();
        if let (Message::Call(..), Some(supervisor)) = (outgoing.message(), &server.supervisor) {
            supervisor.called(server.name());
        }
        let answer = self.connection.send(outgoing).await?;
        if let Answer::Whole(answer) = &answer {
            let now = server.supervisor.as_ref().map_or(Duration::ZERO, |one| one.now());
            lock(&server.holds).answered(outgoing.message(), answer, now);
        }
        server.compare();
        Ok(answer)
    }
}

// === impl Hold ===

impl Drop for Hold {
    fn drop(&mut self) {
        if let (Some(care), Some(supervisor)) = (&self.0.care, &self.0.supervisor) {
            lock(&self.0.holds).end(supervisor.now());
            *lock(&care.silent) = None;
        }
    }
}

pub(super) fn is_connected(state: &ServerState) -> bool {
    matches!(state, ServerState::Connected | ServerState::Degraded(_))
}
