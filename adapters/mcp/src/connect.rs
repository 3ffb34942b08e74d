//! Connects to servers: starts their processes, or opens a client for their addresses.

use std::sync::{Arc, Mutex, PoisonError};

use capstan_http::{Client, WebAddress};
use capstan_hub::ports::Listener;
use capstan_model::ServerName;
use capstan_process::spawn::spawn;
use capstan_process::stderr::Ring;
use capstan_safety::mask::Masker;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tracing::debug;

use crate::channel::Channel;
use crate::channel::inbound::{Asked, Changed, Inbound};
use crate::fault::Fault;
use crate::http::HttpChannel;
use crate::http::legacy_sse::SseChannel;
use crate::http::base::Opening;
use crate::http::web::Web;
use crate::server::tracker::Alive;
use crate::session::Session;
use crate::session::handshake::{HandshakeError, shake_hands};
use crate::session::listing::Lists;
use crate::settings::{Era, HttpSettings, Prefer, Settings, StdioSettings, Terms};
use crate::stdio::Connection;

/// The reason given for a server that was closed.
pub(crate) const STOPPED: &str = "it was stopped";

/// Connects to one server, repeatedly if needed.
pub(crate) struct Connector {
    settings: Settings,
    terms: Arc<Terms>,
    /// Outlives a connection, so that the next connection reuses its open sockets.
    web: OnceCell<Web>,
    /// The HTTP transport that worked last; it is tried first.
    worked: Mutex<Option<Way>>,
}

/// The parts of a server that outlive a connection to it.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) ring: Ring,
    pub(crate) masker: Arc<Masker>,
    pub(crate) alive: Arc<Alive>,
    /// Receives the server's notifications that belong to no call.
    pub(crate) listener: Arc<dyn Listener>,
}

/// One of the two HTTP transports.
#[derive(Clone, Copy, Debug)]
enum Way {
    Streamable,
    Sse,
}

// === impl Connector ===

impl Connector {
    pub(crate) fn new(settings: Settings) -> Self {
        let terms = Arc::new(settings.terms());
        Self { settings, terms, web: OnceCell::new(), worked: Mutex::default() }
    }

    pub(crate) fn name(&self) -> ServerName {
        self.terms.name.clone()
    }

    /// Connects within the startup timeout.
    pub(crate) async fn connect(&self, watched: &Watched) -> Result<Arc<Session>, Fault> {
        let limit = self.terms.startup_timeout;
        let connecting = async {
            match &self.settings {
                Settings::Stdio(settings) => self.stdio(settings, watched).await,
                Settings::Http(settings) => self.http(settings, watched).await,
            }
        };
        match timeout(limit, connecting).await {
            Ok(Ok(session)) => Ok(session),
            Ok(Err(HandshakeError::Failed(fault))) => Err(fault),
            Ok(Err(HandshakeError::DiedInProbe(reason))) => Err(Fault::Unreachable(reason)),
            Err(_) => Err(Fault::Unreachable(match watched.ring.last() {
                Some(line) => format!("it did not answer within {limit:?}; its last words: {line}"),
                None => format!("it did not answer within {limit:?}"),
            })),
        }
    }

    async fn stdio(
        &self,
        settings: &StdioSettings,
        watched: &Watched,
    ) -> Result<Arc<Session>, HandshakeError> {
        match self.start(settings, watched, settings.era).await {
            // Some servers exit when the first message is not the one they expect.
            Err(HandshakeError::DiedInProbe(_)) => {
                watched.alive.none_left().await;
                self.start(settings, watched, Era::Legacy).await
            }
            result => result,
        }
    }

    async fn start(
        &self,
        settings: &StdioSettings,
        watched: &Watched,
        era: Era,
    ) -> Result<Arc<Session>, HandshakeError> {
        let living = watched.alive.one().ok_or_else(stopped)?;
        watched.ring.begin();
        let spawned = spawn(settings.launch()).map_err(|error| {
            let reason = format!("{error}; {}", error.hint(&settings.name));
            HandshakeError::Failed(Fault::Unreachable(reason))
        })?;
        let (asked, lists) = (self.asked(), Arc::new(Lists::default()));
        let (for_inbound, changed) = (asked.clone(), self.forgetting(&lists, watched));
        let inbound = |requests| Inbound::new(for_inbound, requests, watched, changed);
        let connection = Connection::open(settings, spawned, living, watched.clone(), inbound);
        let connection: Arc<dyn Channel> = Arc::new(connection);
        let hello = shake_hands(&*connection, &self.terms, era).await?;
        Ok(Arc::new(Session::new(Arc::clone(&self.terms), connection, hello, asked, lists)))
    }

    async fn http(
        &self,
        settings: &HttpSettings,
        watched: &Watched,
    ) -> Result<Arc<Session>, HandshakeError> {
        let worked = *self.worked.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = match (settings.prefer, worked) {
            (Prefer::Http, _) => (Way::Streamable, None),
            (Prefer::Sse, _) => (Way::Sse, None),
            (Prefer::HttpThenSse, None)
            | (Prefer::HttpThenSse | Prefer::SseThenHttp, Some(Way::Streamable)) => {
                (Way::Streamable, Some(Way::Sse))
            }
            (Prefer::SseThenHttp, None)
            | (Prefer::HttpThenSse | Prefer::SseThenHttp, Some(Way::Sse)) => {
                (Way::Sse, Some(Way::Streamable))
            }
        };
        let fault = match (self.reach(settings, watched, first).await, second) {
            (Err(HandshakeError::Failed(fault)), Some(_)) if is_other_way(&fault, first) => fault,
            (result, _) => return result,
        };
        debug!(%fault, "tried the other transport over HTTP");
        watched.alive.none_left().await;
        match (self.reach(settings, watched, second.unwrap_or(first)).await, first) {
            // Both transports failed; the error of streamable HTTP is the more useful one.
            (
                Err(HandshakeError::Failed(
                    Fault::Status { .. } | Fault::NotMcp(_) | Fault::TooLong(_),
                )),
                Way::Streamable,
            ) => Err(HandshakeError::Failed(fault)),
            (result, _) => result,
        }
    }

    async fn reach(
        &self,
        settings: &HttpSettings,
        watched: &Watched,
        way: Way,
    ) -> Result<Arc<Session>, HandshakeError> {
        let failed = |reason| HandshakeError::Failed(Fault::Unreachable(reason));
        let web = async { web(settings, watched) };
        let web = self.web.get_or_try_init(|| web).await.map_err(failed)?;
        let living = watched.alive.one().ok_or_else(stopped)?;
        let (asked, lists) = (self.asked(), Arc::new(Lists::default()));
        let opening = Opening {
            web: web.clone(),
            asked: asked.clone(),
            changed: self.forgetting(&lists, watched),
            living,
            watched: watched.clone(),
            limit: settings.timeout,
        };
        let (channel, era): (Arc<dyn Channel>, Era) = match way {
            Way::Streamable => (Arc::new(HttpChannel::open(opening)), settings.era),
            Way::Sse => {
                let channel = SseChannel::open(opening).await.map_err(HandshakeError::Failed)?;
                (Arc::new(channel), Era::Legacy)
            }
        };
        let hello = shake_hands(&*channel, &self.terms, era).await?;
        *self.worked.lock().unwrap_or_else(PoisonError::into_inner) = Some(way);
        Ok(Arc::new(Session::new(Arc::clone(&self.terms), channel, hello, asked, lists)))
    }

    fn asked(&self) -> Asked {
        Asked {
            server: self.terms.name.clone(),
            roots: self.terms.roots.clone().into(),
            elicitation: self.terms.elicitation,
            others: self.terms.others,
        }
    }

    /// Returns the handler for a changed list: it drops the cached list and notifies the listener.
    fn forgetting(&self, lists: &Arc<Lists>, watched: &Watched) -> Changed {
        let (lists, listener) = (Arc::clone(lists), Arc::clone(&watched.listener));
        let name = self.terms.name.clone();
        Box::new(move |listing| {
            lists.forget(listing);
            listener.list_changed(&name, listing);
        })
    }
}

fn stopped() -> HandshakeError {
    HandshakeError::Failed(Fault::Unreachable(STOPPED.to_owned()))
}

/// True if the fault means that the server may speak the other transport.
fn is_other_way(fault: &Fault, tried: Way) -> bool {
    match (fault, tried) {
        (Fault::Status { status, .. }, Way::Streamable) => matches!(status, 400 | 404 | 405),
        (Fault::Status { status, .. }, Way::Sse) => (400..500).contains(status),
        (Fault::NotMcp(_) | Fault::TooLong(_), Way::Sse) => true,
        (Fault::NotMcp(_) | Fault::TooLong(_), Way::Streamable)
        | (
            Fault::Unreachable(_)
            | Fault::Blocked(_)
            | Fault::Elsewhere(_)
            | Fault::Login(_)
            | Fault::Forbidden(_)
            | Fault::RateLimited(_)
            | Fault::Endless(_),
            Way::Streamable | Way::Sse,
        ) => false,
    }
}

fn web(settings: &HttpSettings, watched: &Watched) -> Result<Web, String> {
    let address = WebAddress::parse(settings.url.reveal())?;
    let masker = Arc::clone(&watched.masker);
    let client = Client::new(&address, &settings.headers, masker, &settings.addresses)?;
    Ok(Web { client, max_message: settings.max_message })
}
