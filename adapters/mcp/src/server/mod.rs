//! One server over its whole life.
//! It is connected on first use, shared by all callers, and connected again after its connection is
//! lost. A server that speaks both eras over HTTP has a second connection for legacy clients.

pub(crate) mod tracker;
pub(crate) mod backoff;
mod connection;
pub(crate) mod echo;
mod lifecycle;
pub(crate) mod per_caller;
pub(crate) mod slot;
pub(crate) mod sticky;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::{
    About, Backend, BoxFuture, Changes, Connected, Connection, Era, Footprint, Lane, Listener,
};
use capstan_hub::{System, SystemMessage};
use capstan_model::{CallError, ServerName, ServerState};
use capstan_process::footprint;
use capstan_process::stderr::Ring;
use futures::FutureExt;
use futures::future::join;
use tokio::time::{Instant, timeout};
use tracing::{Span, error_span, info};

use crate::connect::{Connector, ServerContext};
use crate::server::connection::DormantConnection;
pub(crate) use crate::server::connection::SessionOwner;
use crate::server::lifecycle::Lifecycle;
use crate::server::slot::{ConnectionSlot, Role};
use crate::server::sticky::{StickyRequest, StickyRequests};
use crate::server::tracker::ConnectionTracker;
use crate::session::Session;
use crate::settings::Settings;

/// How long a call waits for the second connection before it uses the first one.
const LANE_WAIT: Duration = Duration::from_secs(5);

/// How long the second connection is not tried again after it could not be opened.
const LANE_RETRY: Duration = Duration::from_mins(5);

/// An MCP server, over any transport.
pub struct Server {
    name: ServerName,
    connector: Arc<Connector>,
    home: ConnectionSlot,
    legacy: ConnectionSlot,
    /// The time until which the second connection is not tried.
    no_lane_until: Mutex<Option<Instant>>,
    sticky: Arc<StickyRequests>,
}

// === impl Server ===

impl Server {
    /// Creates a server that is not connected yet. Must be called within a tokio runtime.
    pub fn new(settings: impl Into<Settings>) -> Self {
        Self::heard_by(settings, Arc::new(Changes::default()))
    }

    /// Creates a server with a listener for notifications that belong to no call.
    pub fn heard_by(settings: impl Into<Settings>, listener: Arc<dyn Listener>) -> Self {
        let settings = settings.into();
        let sticky = Arc::<StickyRequests>::default();
        let context = ServerContext {
            ring: Ring::default(),
            masker: Arc::new(settings.masker()),
            tracker: Arc::new(ConnectionTracker::new()),
            listener,
            all_lists: Arc::default(),
            reports: Arc::default(),
            sticky: Arc::clone(&sticky),
        };
        // Error level, although nothing failed: no filter hides this level, so every event inside
        // the span carries the server's name.
        let name = settings.common().name;
        let span = error_span!("server", %name);
        let connector = Arc::new(Connector::new(settings));
        let slot = |role| ConnectionSlot {
            role,
            connector: Arc::clone(&connector),
            context: ServerContext {
                tracker: Arc::new(ConnectionTracker::new()),
                ..context.clone()
            },
            span: span.clone(),
            lifecycle: Arc::new(Mutex::new(Lifecycle::new())),
            sticky: Arc::clone(&sticky),
        };
        let (home, legacy) = (slot(Role::Home), slot(Role::Legacy));
        Self { name, connector, home, legacy, no_lane_until: Mutex::default(), sticky }
    }

    /// True if calls of the lane use a connection of their own beside this one, if the server
    /// accepts it.
    fn has_own(&self, lane: Lane, home: &Session) -> bool {
        lane.era == Some(Era::Legacy) && home.era.is_modern() && self.connector.may_have_lanes()
    }

    /// Connects as far as the lane needs it.
    async fn open(self: Arc<Self>, lane: Lane) -> Result<Connected, CallError> {
        if lock(&self.home.lifecycle).dormant {
            return Ok(Connected::one(Arc::new(DormantConnection(self))));
        }
        let home = self.home.session(lane).await?;
        home.claim(lane);
        let own = if self.has_own(lane, &home) { self.open_own(lane).await } else { None };
        Ok(Connected { home, own: own.map(|own| own as Arc<dyn Connection>) })
    }

    /// Opens the second connection. If that fails, calls use the first one for a while.
    async fn open_own(&self, lane: Lane) -> Option<Arc<Session>> {
        if let Some(own) = self.legacy.current() {
            return Some(own);
        }
        if self.avoids_lane() {
            return None;
        }
        let reason = match timeout(LANE_WAIT, self.legacy.session(lane)).await {
            // Without items it would be disconnected again after its first list.
            Ok(Ok(own)) if own.offers_nothing() => "it offers nothing there".to_owned(),
            Ok(Ok(own)) => return Some(own),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {LANE_WAIT:?}"),
        };
        self.home.span.in_scope(|| {
            info!(reason, "no second connection; requests of legacy clients are translated");
        });
        *lock(&self.no_lane_until) = Some(Instant::now() + LANE_RETRY);
        None
    }

    fn avoids_lane(&self) -> bool {
        lock(&self.no_lane_until).is_some_and(|until| Instant::now() < until)
    }

    fn slots(&self) -> [&ConnectionSlot; 2] {
        [&self.home, &self.legacy]
    }
}

impl Backend for Server {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        lock(&self.home.lifecycle).state()
    }

    fn about(&self) -> Option<Arc<About>> {
        lock(&self.home.lifecycle).about.clone()
    }

    fn connected(self: Arc<Self>, lane: Lane) -> Option<Connected> {
        let home = self.home.current()?;
        if !home.suits(lane) {
            return None;
        }
        home.claim(lane);
        let mut own = None;
        if self.has_own(lane, &home) {
            own = self.legacy.current();
            if own.is_none() && !self.avoids_lane() {
                return None;
            }
        }
        Some(Connected { home, own: own.map(|own| own as Arc<dyn Connection>) })
    }

    fn connect(self: Arc<Self>, lane: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        self.open(lane).boxed()
    }

    fn may_have_lanes(&self) -> bool {
        self.connector.may_have_lanes()
    }

    fn disconnect(&self) {
        for slot in self.slots() {
            slot.disconnect();
        }
    }

    fn disconnect_lanes(&self) -> bool {
        self.legacy.disconnect()
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let request = match system.message() {
                SystemMessage::Ping => {
                    let (home, own) = join(self.home.ping(), self.legacy.ping()).await;
                    return home.and(own);
                }
                SystemMessage::RootsChanged => {
                    for session in self.slots().into_iter().filter_map(ConnectionSlot::current) {
                        session.roots_changed().await;
                    }
                    return Ok(());
                }
                SystemMessage::Level(level) => StickyRequest::Level(level.clone()),
                SystemMessage::Unsubscribe(uri) => StickyRequest::Unsubscribe(uri.clone()),
            };
            let roles = self.sticky.roles(&request);
            // Kept even if sending fails: later connections get it too.
            self.sticky.record(&request, Role::Home);
            let mut result = Ok(());
            for slot in self.slots().into_iter().filter(|slot| roles.contains(&slot.role)) {
                if let Some(session) = slot.current() {
                    result = result.and(session.apply(&request).await.map(drop));
                }
            }
            result
        }
        .boxed()
    }

    fn footprint(&self) -> Option<Footprint> {
        footprint::of(self.home.current()?.connection.process()?)
    }

    fn stderr(&self) -> Vec<String> {
        self.home.context.ring.lines()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            let [home, own] = self.slots().map(|slot| &slot.context.tracker);
            home.stop();
            own.stop();
            join(home.none_left(), own.none_left()).await;
        }
        .boxed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A list that is being read keeps the session alive, and would keep the process alive.
        for slot in self.slots() {
            slot.context.tracker.stop();
        }
    }
}

/// Records the loss of a connection, once, no matter how many calls were in flight.
fn note_loss(span: &Span, lifecycle: &mut Lifecycle, session: &Session) {
    if let Some(fault) = session.connection.requests().gone()
        && session.connection.requests().take_gone_notice()
    {
        span.in_scope(|| info!(reason = %fault, "gone"));
        lifecycle.died(fault);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
