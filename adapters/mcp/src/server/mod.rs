//! One server over its whole life.
//! It is connected on first use, shared by all callers, and connected again after its connection is
//! lost.

pub(crate) mod tracker;
pub(crate) mod backoff;
mod connection;
mod lifecycle;
pub(crate) mod sticky;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::{
    About, Backend, BoxFuture, Changes, Connection, Footprint, Listener, Listing,
};
use capstan_hub::{System, SystemMessage};
use capstan_model::{CallError, ServerName, ServerState};
use capstan_process::footprint;
use capstan_process::stderr::Ring;
use futures::FutureExt;
use futures::future::ready;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument, Span, error_span, info};

use crate::connect::{Connector, STOPPED, ServerContext};
use crate::fault::Fault;
use crate::server::connection::DormantConnection;
pub(crate) use crate::server::connection::SessionOwner;
use crate::server::lifecycle::{ConnectAttempt, Lifecycle, is_usable};
use crate::server::sticky::{StickyRequest, StickyRequests};
use crate::server::tracker::ConnectionTracker;
use crate::session::Session;
use crate::settings::Settings;

/// The timeout of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// An MCP server, over any transport.
pub struct Server {
    name: ServerName,
    connector: Arc<Connector>,
    context: ServerContext,
    /// The span of everything that is logged about the server.
    span: Span,
    lifecycle: Arc<Mutex<Lifecycle>>,
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
        let context = ServerContext {
            ring: Ring::default(),
            masker: Arc::new(settings.masker()),
            tracker: Arc::new(ConnectionTracker::new()),
            listener,
        };
        // Error level, although nothing failed: no filter hides this level, so every event inside
        // the span carries the server's name.
        let name = settings.common().name;
        let span = error_span!("server", %name);
        let connector = Arc::new(Connector::new(settings));
        let (lifecycle, sticky) = (Arc::new(Mutex::new(Lifecycle::new())), Arc::default());
        Self { name, connector, context, span, lifecycle, sticky }
    }

    /// The session, if there is one that can be used.
    fn current(&self) -> Option<Arc<Session>> {
        let session = lock(&self.lifecycle).attempt.as_ref()?.peek()?.as_ref().ok().cloned()?;
        session.connection.requests().gone().is_none().then_some(session)
    }

    /// Returns the session, connecting if there is none; the attempt is single-flight.
    async fn session(&self) -> Result<Arc<Session>, CallError> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let attempt = self.attempt();
        attempt.await.map_err(|fault| fault.into_error(&self.name))
    }

    async fn ping(&self) -> Result<(), CallError> {
        let Some(session) = self.current() else { return Ok(()) };
        let server = || self.name.clone();
        let late =
            |_| CallError::TimedOut { server: server(), limit: PING_TIMEOUT, may_have_run: false };
        timeout(PING_TIMEOUT, session.ping()).await.map_err(late)?
    }

    fn attempt(&self) -> ConnectAttempt {
        let mut lifecycle = lock(&self.lifecycle);
        if let Some(attempt) = &lifecycle.attempt {
            if is_usable(attempt) {
                return attempt.clone();
            }
            if let Some(Ok(session)) = attempt.peek() {
                // The connection was lost while no caller used it.
                let session = Arc::clone(session);
                note_loss(&self.span, &mut lifecycle, &session);
            }
            if let Some(fault) = lifecycle.would_fail_again() {
                return ready(Err(fault)).boxed().shared();
            }
        }
        let attempt = self.connect(lifecycle.not_before);
        lifecycle.attempt = Some(attempt.clone());
        lifecycle.dormant = false;
        drop(lifecycle);
        // Driven by a task of its own, so that a caller that is dropped does not stop it for
        // others.
        tokio::spawn(attempt.clone());
        attempt
    }

    fn connect(&self, not_before: Instant) -> ConnectAttempt {
        let (connector, context) = (Arc::clone(&self.connector), self.context.clone());
        let (lifecycle, sticky) = (Arc::clone(&self.lifecycle), Arc::clone(&self.sticky));
        let owner = SessionOwner {
            lifecycle: Arc::downgrade(&self.lifecycle),
            sticky: Arc::clone(&self.sticky),
            span: self.span.clone(),
        };
        let connecting = async move {
            let start = async {
                sleep_until(not_before).await;
                // Never two processes at a time: they could conflict with each other.
                context.tracker.none_left().await;
                connector.connect(&context).await
            };
            let result = tokio::select! {
                biased;
                () = context.tracker.closing() => Err(Fault::Unreachable(STOPPED.to_owned())),
                result = start => result,
            };
            if let Ok(session) = &result {
                session.owner.get_or_init(|| owner);
                sticky.replay(session).await;
            }
            let mut lifecycle = lock(&lifecycle);
            let again = lifecycle.about.is_some();
            match &result {
                Ok(session) => {
                    info!(protocol = session.about.protocol, "connected");
                    lifecycle.connected(&session.about);
                }
                Err(fault) => {
                    // Not a warning: the callers that wait for the server get the fault.
                    info!(reason = %fault, "not connected");
                    lifecycle.failed(fault.clone());
                }
            }
            drop(lifecycle);
            if result.is_ok() && again {
                // Any list may have changed while the server was away.
                for listing in Listing::ALL {
                    context.listener.list_changed(&connector.name(), listing);
                }
            }
            result
        };
        connecting.instrument(self.span.clone()).boxed().shared()
    }
}

impl Backend for Server {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        lock(&self.lifecycle).state()
    }

    fn about(&self) -> Option<Arc<About>> {
        lock(&self.lifecycle).about.clone()
    }

    fn connected(self: Arc<Self>) -> Option<Arc<dyn Connection>> {
        Some(self.current()?)
    }

    fn connect(self: Arc<Self>) -> BoxFuture<'static, Result<Arc<dyn Connection>, CallError>> {
        async move {
            if lock(&self.lifecycle).dormant {
                return Ok(Arc::new(DormantConnection(self)) as Arc<dyn Connection>);
            }
            let session = self.session().await?;
            Ok(session as Arc<dyn Connection>)
        }
        .boxed()
    }

    fn disconnect(&self) {
        // The process ends when the last user of the connection is done.
        let attempt = lock(&self.lifecycle).take_attempt();
        drop(attempt);
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let request = match system.message() {
                SystemMessage::Ping => return self.ping().await,
                SystemMessage::Level(level) => StickyRequest::Level(level.clone()),
                SystemMessage::Unsubscribe(uri) => StickyRequest::Unsubscribe(uri.clone()),
            };
            // Kept even if sending fails: later connections get it too.
            self.sticky.record(&request);
            match self.current() {
                Some(session) => session.apply(&request).await.map(drop),
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn footprint(&self) -> Option<Footprint> {
        footprint::of(self.current()?.connection.process()?)
    }

    fn stderr(&self) -> Vec<String> {
        self.context.ring.lines()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.context.tracker.stop();
            self.context.tracker.none_left().await;
        }
        .boxed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A list that is being read keeps the session alive, and would keep the process alive.
        self.context.tracker.stop();
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

fn lock(lifecycle: &Mutex<Lifecycle>) -> MutexGuard<'_, Lifecycle> {
    lifecycle.lock().unwrap_or_else(PoisonError::into_inner)
}
