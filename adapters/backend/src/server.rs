//! One stdio server over its whole life: started on first use, shared by all who call it, started
//! again when it died.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::ports::{About, Backend, BoxFuture, Item, Listing, Operator};
use capstan_hub::{Answer, Ticket};
use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::Shared;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

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

/// A server that is started as a child of its keeper and spoken to over its standard streams.
pub struct StdioServer {
    settings: Arc<StdioSettings>,
    watched: Watched,
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
    /// What went wrong last.
    trouble: Option<ServerState>,
    /// Why it rests although nothing is wrong.
    resting: bool,
}

type Link = Shared<BoxFuture<'static, Result<Arc<Session>, String>>>;

// === impl StdioServer ===

impl StdioServer {
    /// A server that is not started yet. Must be called within a tokio runtime.
    pub fn new(settings: StdioSettings) -> Self {
        let secrets = settings.secrets.iter().map(|secret| secret.reveal().clone());
        let life = Life {
            link: None,
            failures: 0,
            not_before: Instant::now(),
            trouble: None,
            resting: false,
        };
        let watched = Watched {
            ring: Ring::default(),
            masker: Arc::new(Masker::new(secrets)),
            alive: Arc::new(Alive::new()),
        };
        Self { settings: Arc::new(settings), watched, life: Arc::new(Mutex::new(life)) }
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
        async move {
            sleep_until(not_before).await;
            let result = tokio::select! {
                result = connect_in_time(&settings, &watched) => result,
                () = watched.alive.closing() => Err("it was stopped".to_owned()),
            };
            let mut life = lock(&life);
            match &result {
                Ok(session) => {
                    info!(server = %settings.name, protocol = session.about.protocol, "connected");
                    life.failures = 0;
                    life.trouble = None;
                }
                Err(reason) => {
                    warn!(server = %settings.name, reason, "not connected");
                    life.failed(reason);
                }
            }
            drop(life);
            result
        }
        .boxed()
        .shared()
    }

    /// Notes that the server has died, so that its state is true at once.
    fn note_death(&self, error: &CallError) {
        if let CallError::Unreachable { reason, .. } | CallError::OutcomeUnknown { reason, .. } =
            error
        {
            lock(&self.life).failed(reason);
        }
    }

    async fn list_items(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        let session = self.session().await?;
        let result = session.list(listing).await;
        match &result {
            Err(error) if session.connection.gone().is_none() => {
                lock(&self.life).trouble = Some(ServerState::Degraded(error.to_string()));
            }
            Err(error) => self.note_death(error),
            Ok(_) if session.offers_nothing() => self.rest(),
            Ok(_) => {}
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
        match (&life.trouble, &life.link) {
            (Some(ServerState::Degraded(reason)), _) if connected => {
                ServerState::Degraded(reason.clone())
            }
            (_, _) if connected => ServerState::Connected,
            (_, Some(link)) if link.peek().is_none() => ServerState::Connecting,
            (Some(trouble), _) => trouble.clone(),
            (None, Some(link)) => match link.peek() {
                Some(Ok(session)) => {
                    ServerState::Failed(session.connection.gone().unwrap_or_default())
                }
                Some(Err(reason)) => ServerState::Failed(reason.clone()),
                None => ServerState::Connecting,
            },
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
            let result = session.run(ticket, &operator).await;
            if let Err(error) = &result {
                self.note_death(error);
            }
            result
        }
        .boxed()
    }

    fn stderr(&self) -> Vec<String> {
        self.watched.ring.lines()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.watched.alive.end().boxed()
    }
}

// === impl Life ===

impl Life {
    fn failed(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = Instant::now() + wait_after(self.failures - 1, fastrand::f64());
        self.trouble = Some(ServerState::Failed(reason.to_owned()));
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
    let connection = Connection::open(&settings.name, spawned, watched.clone(), |out, pending| {
        Inbound::new(for_inbound, out, pending, masker, changed)
    });
    let hello = shake_hands(&connection, settings, era).await?;
    Ok(Arc::new(Session::new(Arc::clone(settings), connection, hello, asked, lists)))
}
