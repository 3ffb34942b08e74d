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

use crate::connect::{Connector, STOPPED, Watched};
use crate::fault::Fault;
use crate::server::tracker::Alive;
pub(crate) use crate::server::connection::Home;
use crate::server::connection::Resting;
use crate::server::lifecycle::{Life, Link, is_usable};
use crate::server::sticky::{Wanted, Wish};
use crate::session::Session;
use crate::settings::Settings;

/// The timeout of a ping.
const PULSE: Duration = Duration::from_secs(5);

/// An MCP server, over any transport.
pub struct Server {
    name: ServerName,
    connector: Arc<Connector>,
    watched: Watched,
    /// The span of everything that is logged about the server.
    span: Span,
    life: Arc<Mutex<Life>>,
    wanted: Arc<Wanted>,
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
        let watched = Watched {
            ring: Ring::default(),
            masker: Arc::new(settings.masker()),
            alive: Arc::new(Alive::new()),
            listener,
        };
        // Error level, although nothing failed: no filter hides this level, so every event inside
        // the span carries the server's name.
        let name = settings.terms().name;
        let span = error_span!("server", %name);
        let connector = Arc::new(Connector::new(settings));
        let (life, wanted) = (Arc::new(Mutex::new(Life::new())), Arc::default());
        Self { name, connector, watched, span, life, wanted }
    }

    /// The session, if there is one that can be used.
    fn current(&self) -> Option<Arc<Session>> {
        let session = lock(&self.life).link.as_ref()?.peek()?.as_ref().ok().cloned()?;
        session.connection.requests().gone().is_none().then_some(session)
    }

    /// Returns the session, connecting if there is none; the attempt is single-flight.
    async fn session(&self) -> Result<Arc<Session>, CallError> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let link = self.link();
        link.await.map_err(|fault| fault.into_error(&self.name))
    }

    async fn ping(&self) -> Result<(), CallError> {
        let Some(session) = self.current() else { return Ok(()) };
        let server = || self.name.clone();
        let late = |_| CallError::TimedOut { server: server(), limit: PULSE, may_have_run: false };
        timeout(PULSE, session.pulse()).await.map_err(late)?
    }

    fn link(&self) -> Link {
        let mut life = lock(&self.life);
        if let Some(link) = &life.link {
            if is_usable(link) {
                return link.clone();
            }
            if let Some(Ok(session)) = link.peek() {
                // The connection was lost while no caller used it.
                let session = Arc::clone(session);
                note_loss(&self.span, &mut life, &session);
            }
            if let Some(fault) = life.would_fail_again() {
                return ready(Err(fault)).boxed().shared();
            }
        }
        let link = self.connect(life.not_before);
        life.link = Some(link.clone());
        life.resting = false;
        drop(life);
        // Driven by a task of its own, so that a caller that is dropped does not stop it for
        // others.
        tokio::spawn(link.clone());
        link
    }

    fn connect(&self, not_before: Instant) -> Link {
        let (connector, watched) = (Arc::clone(&self.connector), self.watched.clone());
        let (life, wanted) = (Arc::clone(&self.life), Arc::clone(&self.wanted));
        let home = Home {
            life: Arc::downgrade(&self.life),
            wanted: Arc::clone(&self.wanted),
            span: self.span.clone(),
        };
        let connecting = async move {
            let start = async {
                sleep_until(not_before).await;
                // Never two processes at a time: they could conflict with each other.
                watched.alive.none_left().await;
                connector.connect(&watched).await
            };
            let result = tokio::select! {
                biased;
                () = watched.alive.closing() => Err(Fault::Unreachable(STOPPED.to_owned())),
                result = start => result,
            };
            if let Ok(session) = &result {
                session.home.get_or_init(|| home);
                wanted.tell(session).await;
            }
            let mut life = lock(&life);
            let again = life.about.is_some();
            match &result {
                Ok(session) => {
                    info!(protocol = session.about.protocol, "connected");
                    life.connected(&session.about);
                }
                Err(fault) => {
                    // Not a warning: the callers that wait for the server get the fault.
                    info!(reason = %fault, "not connected");
                    life.failed(fault.clone());
                }
            }
            drop(life);
            if result.is_ok() && again {
                // Any list may have changed while the server was away.
                for listing in Listing::ALL {
                    watched.listener.list_changed(&connector.name(), listing);
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
        lock(&self.life).state()
    }

    fn about(&self) -> Option<Arc<About>> {
        lock(&self.life).about.clone()
    }

    fn connected(self: Arc<Self>) -> Option<Arc<dyn Connection>> {
        Some(self.current()?)
    }

    fn connect(self: Arc<Self>) -> BoxFuture<'static, Result<Arc<dyn Connection>, CallError>> {
        async move {
            if lock(&self.life).resting {
                return Ok(Arc::new(Resting(self)) as Arc<dyn Connection>);
            }
            let session = self.session().await?;
            Ok(session as Arc<dyn Connection>)
        }
        .boxed()
    }

    fn disconnect(&self) {
        // The process ends when the last user of the connection is done.
        let link = lock(&self.life).rest();
        drop(link);
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let wish = match system.message() {
                SystemMessage::Ping => return self.ping().await,
                SystemMessage::Level(level) => Wish::Level(level.clone()),
                SystemMessage::Unsubscribe(uri) => Wish::Unsubscribe(uri.clone()),
            };
            // Kept even if sending fails: later connections get it too.
            self.wanted.note(&wish);
            match self.current() {
                Some(session) => session.tell(&wish).await.map(drop),
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn footprint(&self) -> Option<Footprint> {
        footprint::of(self.current()?.connection.process()?)
    }

    fn stderr(&self) -> Vec<String> {
        self.watched.ring.lines()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.watched.alive.stop();
            self.watched.alive.none_left().await;
        }
        .boxed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A list that is being read keeps the session alive, and would keep the process alive.
        self.watched.alive.stop();
    }
}

/// Records the loss of a connection, once, no matter how many calls were in flight.
fn note_loss(span: &Span, life: &mut Life, session: &Session) {
    if let Some(fault) = session.connection.requests().gone()
        && session.connection.requests().take_gone_notice()
    {
        span.in_scope(|| info!(reason = %fault, "gone"));
        life.died(fault);
    }
}

fn lock(life: &Mutex<Life>) -> MutexGuard<'_, Life> {
    life.lock().unwrap_or_else(PoisonError::into_inner)
}
