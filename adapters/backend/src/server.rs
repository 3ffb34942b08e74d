//! One stdio server over its whole life: started on first use, shared by all who call it, started
//! again when it died.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::catalog::Typing;
use capstan_hub::ports::{About, Backend, BoxFuture, Item, Listing, Operator};
use capstan_hub::{Answer, Ticket};
use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::Shared;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument, Span, error_span, info};

use crate::alive::Alive;
use crate::backoff::wait_after;
use crate::connection::{Connection, Watched};
use crate::handshake::{HandshakeError, shake_hands};
use crate::inbound::{Asked, Inbound};
use crate::mask::Masker;
use crate::session::{Lists, Session};
use crate::settings::{Era, StdioSettings};
use crate::spawn::spawn;
use crate::stderr::Ring;

/// Why a server that was closed is not there.
const STOPPED: &str = "it was stopped";

/// A server that is started as a child of its keeper and spoken to over its standard streams.
pub struct StdioServer {
    settings: Arc<StdioSettings>,
    watched: Watched,
    /// Everything that is logged about the server stands in it.
    span: Span,
    life: Arc<Mutex<Life>>,
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
    failure: Option<String>,
    /// The lists that could not be read although it is connected, and why.
    unread: Vec<(Listing, String)>,
    /// Whether it was let go because it offers nothing.
    resting: bool,
}

type Link = Shared<BoxFuture<'static, Result<Arc<Session>, String>>>;

// === impl StdioServer ===

impl StdioServer {
    /// A server that is not started yet. Must be called within a tokio runtime.
    pub fn new(settings: StdioSettings) -> Self {
        let life = Life {
            link: None,
            failures: 0,
            not_before: Instant::now(),
            failure: None,
            unread: Vec::new(),
            resting: false,
        };
        let watched = Watched {
            ring: Ring::default(),
            masker: Arc::new(Masker::of(&settings)),
            alive: Arc::new(Alive::new()),
        };
        // An error only in name: the highest level is the one that no filter hides, and whatever
        // is logged inside says which server it is about.
        let span = error_span!("server", name = %settings.name);
        Self { settings: Arc::new(settings), watched, span, life: Arc::new(Mutex::new(life)) }
    }

    /// The session, connecting if there is none; one attempt for all who wait.
    async fn session(&self) -> Result<Arc<Session>, CallError> {
        let link = self.link();
        link.await
            .map_err(|reason| CallError::Unreachable { server: self.settings.name.clone(), reason })
    }

    fn link(&self) -> Link {
        let mut life = lock(&self.life);
        if let Some(link) = &life.link
            && is_usable(link)
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
        let (settings, watched) = (Arc::clone(&self.settings), self.watched.clone());
        let life = Arc::clone(&self.life);
        let connecting = async move {
            let start = async {
                sleep_until(not_before).await;
                // Never two at a time: they could stand in each other's way.
                watched.alive.none_left().await;
                connect_in_time(&settings, &watched).await
            };
            let result = tokio::select! {
                biased;
                () = watched.alive.closing() => Err(STOPPED.to_owned()),
                result = start => result,
            };
            let mut life = lock(&life);
            match &result {
                Ok(session) => {
                    info!(protocol = session.about.protocol, "connected");
                    life.connected();
                }
                Err(reason) => {
                    // No warning: whoever waits for the server is told.
                    info!(reason, "not connected");
                    life.failed(reason);
                }
            }
            drop(life);
            result
        };
        connecting.instrument(self.span.clone()).boxed().shared()
    }

    /// Notes that the server has died, once, however many calls were in flight.
    fn note_death(&self, session: &Session) {
        if let Some(reason) = session.connection.gone()
            && session.connection.mourn()
        {
            self.span.in_scope(|| info!(reason, "gone"));
            lock(&self.life).failed(&reason);
        }
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

impl Backend for StdioServer {
    fn name(&self) -> &ServerName {
        &self.settings.name
    }

    fn state(&self) -> ServerState {
        let life = lock(&self.life);
        let connected = life.link.as_ref().and_then(Shared::peek).is_some_and(|link| match link {
            Ok(session) => session.connection.gone().is_none(),
            Err(_) => false,
        });
        match (&life.link, &life.failure) {
            (Some(_), _) if connected => match life.unread.first() {
                Some((_, reason)) => ServerState::Degraded(reason.clone()),
                None => ServerState::Connected,
            },
            (Some(link), _) => match link.peek() {
                Some(Ok(session)) => {
                    ServerState::Failed(session.connection.gone().unwrap_or_default())
                }
                Some(Err(reason)) => ServerState::Failed(reason.clone()),
                None => ServerState::Connecting,
            },
            (None, Some(reason)) => ServerState::Failed(reason.clone()),
            (None, None) => ServerState::Idle,
        }
    }

    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>> {
        async { Ok(Arc::clone(&self.session().await?.about)) }.boxed()
    }

    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        self.list_items(listing).boxed()
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

impl Drop for StdioServer {
    fn drop(&mut self) {
        // A list that is being read holds on to the session, and would hold on to the process.
        self.watched.alive.stop();
    }
}

// === impl Life ===

impl Life {
    fn connected(&mut self) {
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

    fn failed(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = Instant::now() + wait_after(self.failures - 1, fastrand::f64());
        self.failure = Some(reason.to_owned());
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

async fn connect_in_time(
    settings: &Arc<StdioSettings>,
    watched: &Watched,
) -> Result<Arc<Session>, String> {
    let limit = settings.startup_timeout;
    match timeout(limit, connect(settings, watched)).await {
        Ok(result) => result,
        Err(_) => Err(match watched.ring.last() {
            Some(line) => format!("it did not answer within {limit:?}; its last words: {line}"),
            None => format!("it did not answer within {limit:?}"),
        }),
    }
}

async fn connect(settings: &Arc<StdioSettings>, watched: &Watched) -> Result<Arc<Session>, String> {
    match attempt(settings, watched, settings.era).await {
        // Some servers end when the first message is not the one they expect.
        Err(HandshakeError::DiedInProbe(_)) => {
            watched.alive.none_left().await;
            attempt(settings, watched, Era::Legacy).await.map_err(|error| error.to_string())
        }
        result => result.map_err(|error| error.to_string()),
    }
}

async fn attempt(
    settings: &Arc<StdioSettings>,
    watched: &Watched,
    era: Era,
) -> Result<Arc<Session>, HandshakeError> {
    let stopped = || HandshakeError::Failed(STOPPED.to_owned());
    let living = watched.alive.one().ok_or_else(stopped)?;
    watched.ring.begin();
    let spawned = spawn(settings).map_err(|error| {
        HandshakeError::Failed(format!("{error}; {}", error.hint(&settings.name)))
    })?;
    let lists = Arc::new(Lists::default());
    let asked = Asked {
        server: settings.name.clone(),
        roots: settings.roots.clone().into(),
        elicitation: settings.elicitation,
    };
    let changed = {
        let lists = Arc::clone(&lists);
        Box::new(move |listing| lists.forget(listing))
    };
    let (for_inbound, masker) = (asked.clone(), Arc::clone(&watched.masker));
    let inbound = |out, pending| Inbound::new(for_inbound, out, pending, masker, changed);
    let connection = Connection::open(&settings.name, spawned, living, watched.clone(), inbound);
    let hello = shake_hands(&connection, settings, era).await?;
    Ok(Arc::new(Session::new(Arc::clone(settings), connection, hello, asked, lists)))
}
