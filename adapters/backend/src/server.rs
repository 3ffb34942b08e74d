//! One server over its whole life: connected on first use, shared by all who call it, connected
//! again when it died.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::catalog::Typing;
use capstan_hub::ports::{
    About, Backend, BoxFuture, Changes, Errand, Item, Listener, Listing, Operator,
};
use capstan_hub::{Answer, Ticket};
use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::Shared;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span, error_span, info};

use crate::alive::Alive;
use crate::backoff::wait_after;
use crate::connect::{Connector, STOPPED};
use crate::connection::Watched;
use crate::fault::Fault;
use crate::mask::Masker;
use crate::session::Session;
use crate::settings::Settings;
use crate::stderr::Ring;
use crate::wanted::Wanted;

/// How long a server can keep us away at the most.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A server, whatever the way to it.
pub struct Server {
    name: ServerName,
    connector: Arc<Connector>,
    watched: Watched,
    /// Everything that is logged about the server stands in it.
    span: Span,
    life: Arc<Mutex<Life>>,
    wanted: Arc<Wanted>,
}

/// What is known about the server right now.
struct Life {
    /// The connection, or the attempt at one, shared by all who wait for it.
    link: Option<Link>,
    /// Failures in a row.
    failures: u32,
    /// When it may be started again.
    not_before: Instant,
    /// Why it could not be used last.
    failure: Option<Fault>,
    /// The lists that could not be read although it is connected, and why.
    unread: Vec<(Listing, String)>,
    /// Whether it was let go because it offers nothing.
    resting: bool,
    /// Who it was when it was connected last.
    about: Option<Arc<About>>,
}

type Link = Shared<BoxFuture<'static, Result<Arc<Session>, Fault>>>;

// === impl Server ===

impl Server {
    /// A server that is not connected yet. Must be called within a tokio runtime.
    pub fn new(settings: impl Into<Settings>) -> Self {
        Self::heard_by(settings, Arc::new(Changes::default()))
    }

    /// The same, with somebody who is told what it says that belongs to no call.
    pub fn heard_by(settings: impl Into<Settings>, listener: Arc<dyn Listener>) -> Self {
        let settings = settings.into();
        let life = Life {
            link: None,
            failures: 0,
            not_before: Instant::now(),
            failure: None,
            unread: Vec::new(),
            resting: false,
            about: None,
        };
        let watched = Watched {
            ring: Ring::default(),
            masker: Arc::new(Masker::of(&settings)),
            alive: Arc::new(Alive::new()),
            listener,
        };
        // An error only in name: the highest level is the one that no filter hides, and whatever
        // is logged inside says which server it is about.
        let name = settings.terms().name;
        let span = error_span!("server", %name);
        let connector = Arc::new(Connector::new(settings));
        let (life, wanted) = (Arc::new(Mutex::new(life)), Arc::default());
        Self { name, connector, watched, span, life, wanted }
    }

    /// The session, where there is one that can be used.
    fn connected(&self) -> Option<Arc<Session>> {
        let session = lock(&self.life).link.as_ref()?.peek()?.as_ref().ok().cloned()?;
        session.connection.gone().is_none().then_some(session)
    }

    /// The session, connecting if there is none; one attempt for all who wait.
    async fn session(&self) -> Result<Arc<Session>, CallError> {
        if let Some(session) = self.connected() {
            return Ok(session);
        }
        let link = self.link();
        link.await.map_err(|fault| fault.into_error(&self.name))
    }

    fn link(&self) -> Link {
        let mut life = lock(&self.life);
        if let Some(link) = &life.link
            && (is_usable(link) || life.would_fail_again())
        {
            return link.clone();
        }
        let link = self.connect(life.not_before);
        life.link = Some(link.clone());
        life.resting = false;
        drop(life);
        // Driven by a task of its own, so that a caller who goes away does not stop it for others.
        tokio::spawn(link.clone());
        link
    }

    fn connect(&self, not_before: Instant) -> Link {
        let (connector, watched) = (Arc::clone(&self.connector), self.watched.clone());
        let (life, wanted) = (Arc::clone(&self.life), Arc::clone(&self.wanted));
        let connecting = async move {
            let start = async {
                sleep_until(not_before).await;
                // Never two at a time: they could stand in each other's way.
                watched.alive.none_left().await;
                connector.connect(&watched).await
            };
            let result = tokio::select! {
                biased;
                () = watched.alive.closing() => Err(Fault::Unreachable(STOPPED.to_owned())),
                result = start => result,
            };
            if let Ok(session) = &result {
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
                    // No warning: whoever waits for the server is told.
                    info!(reason = %fault, "not connected");
                    life.failed(fault.clone());
                }
            }
            drop(life);
            if result.is_ok() && again {
                // Nobody knows what changed while it was away.
                for listing in Listing::ALL {
                    watched.listener.list_changed(&connector.name(), listing);
                }
            }
            result
        };
        connecting.instrument(self.span.clone()).boxed().shared()
    }

    /// Notes that the server has died, once, however many calls were in flight.
    fn note_death(&self, session: &Session) {
        if let Some(fault) = session.connection.gone()
            && session.connection.mourn()
        {
            self.span.in_scope(|| info!(reason = %fault, "gone"));
            lock(&self.life).failed(fault);
        }
    }

    fn is_connected(&self) -> bool {
        let link = lock(&self.life).link.clone();
        let link = link.as_ref().and_then(Shared::peek);
        matches!(link, Some(Ok(session)) if session.connection.gone().is_none())
    }

    async fn list_items(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        if lock(&self.life).resting {
            return Ok(Arc::new([]));
        }
        let session = self.session().await?;
        let result = session.list(listing).instrument(self.span.clone()).await;
        match &result {
            Err(error) if session.connection.gone().is_none() => {
                lock(&self.life).could_not_read(listing, error);
            }
            Err(_) => self.note_death(&session),
            Ok(_) if session.offers_nothing() => self.rest(),
            Ok(_) => lock(&self.life).could_read(listing),
        }
        result
    }

    /// Lets go of a connection that is of no use to anybody.
    fn rest(&self) {
        let mut life = lock(&self.life);
        life.link = None;
        life.resting = true;
    }
}

impl Backend for Server {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        let life = lock(&self.life);
        let link = life.link.as_ref().and_then(Shared::peek);
        let connected = matches!(link, Some(Ok(session)) if session.connection.gone().is_none());
        match (&life.link, &life.failure) {
            (Some(_), _) if connected => match life.unread.first() {
                Some((_, reason)) => ServerState::Degraded(reason.clone()),
                None => ServerState::Connected,
            },
            (Some(link), _) => match link.peek() {
                Some(Ok(session)) => {
                    session.connection.gone().map_or(ServerState::Connected, |fault| fault.state())
                }
                Some(Err(fault)) => fault.state(),
                None => ServerState::Connecting,
            },
            (None, Some(fault)) => fault.state(),
            (None, None) => ServerState::Idle,
        }
    }

    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>> {
        async { Ok(Arc::clone(&self.session().await?.about)) }.boxed()
    }

    fn known(&self) -> Option<Arc<About>> {
        lock(&self.life).about.clone()
    }

    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        // Every call asks, and most find it there.
        match self.connected().and_then(|session| session.known(listing)) {
            Some(items) => std::future::ready(Ok(items)).boxed(),
            None => self.list_items(listing).boxed(),
        }
    }

    fn run<'a>(
        &'a self,
        ticket: &'a Ticket,
        operator: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let session = self.session().await?;
            let result = session.run(ticket, &operator).instrument(self.span.clone()).await;
            if result.is_err() {
                self.note_death(&session);
            }
            result
        }
        .boxed()
    }

    fn errand<'a>(
        &'a self,
        errand: &'a Errand,
        operator: Option<Arc<dyn Operator>>,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        async move {
            match errand {
                // Nothing is started for what a connection is told when there is one.
                Errand::Level(_) | Errand::Unsubscribe(_) if !self.is_connected() => {
                    self.wanted.note(errand);
                    return Ok(Json::empty_object());
                }
                // Whatever comes of it: this is what holds from now on.
                Errand::Level(_) | Errand::Unsubscribe(_) => self.wanted.note(errand),
                Errand::Complete(_) | Errand::Subscribe(_) | Errand::Task(..) => {}
            }
            let done = self.session().await?.errand(errand, operator).await;
            if done.is_ok() {
                self.wanted.note(errand);
            }
            done
        }
        .boxed()
    }

    fn complete<'a>(&'a self, typing: &'a Typing) -> BoxFuture<'a, Result<Vec<String>, CallError>> {
        async { self.session().await?.complete(typing).await }.boxed()
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
        // A list that is being read holds on to the session, and would hold on to the process.
        self.watched.alive.stop();
    }
}

// === impl Life ===

impl Life {
    fn connected(&mut self, about: &Arc<About>) {
        self.about = Some(Arc::clone(about));
        self.failures = 0;
        self.failure = None;
        self.unread.clear();
    }

    fn could_not_read(&mut self, listing: Listing, error: &CallError) {
        self.could_read(listing);
        self.unread.push((listing, error.to_string()));
    }

    fn could_read(&mut self, listing: Listing) {
        self.unread.retain(|(unread, _)| *unread != listing);
    }

    fn failed(&mut self, fault: Fault) {
        self.failures = self.failures.saturating_add(1);
        let mut wait = wait_after(self.failures - 1, fastrand::f64());
        if let Fault::RateLimited(Some(asked)) = &fault {
            wait = wait.max(*asked).min(LONGEST_WAIT);
        }
        self.not_before = Instant::now() + wait;
        self.failure = Some(fault);
    }

    /// Whether it failed lately in a way that waiting does not change: whoever calls meanwhile is
    /// told so at once, and the server is not asked.
    fn would_fail_again(&self) -> bool {
        let failed = self.link.as_ref().and_then(Shared::peek);
        matches!(failed, Some(Err(fault)) if fault.lasts()) && Instant::now() < self.not_before
    }
}

fn lock(life: &Mutex<Life>) -> MutexGuard<'_, Life> {
    life.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a link can still be waited for or used.
fn is_usable(link: &Link) -> bool {
    match link.peek() {
        None => true,
        Some(Ok(session)) => session.connection.gone().is_none(),
        Some(Err(_)) => false,
    }
}
