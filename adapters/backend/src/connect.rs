//! Makes connections: the only place from which a process is started or an address is reached.
//!
//! Whatever is to be checked before anything leaves the machine is checked here, in [`Address::web`]
//! for addresses and in `Connector::start` for programs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_model::{Secret, ServerName};
use capstan_policy::address::{AddressPolicy, Loopback};
use reqwest::Url;
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tracing::debug;

use crate::address_guard::{AddressGuard, Host};
use crate::channel::Channel;
use crate::connection::{Connection, Watched};
use crate::fault::Fault;
use crate::handshake::{HandshakeError, shake_hands};
use crate::http::HttpChannel;
use crate::inbound::{Asked, Changed, Inbound};
use crate::link::Opening;
use crate::listing::Lists;
use crate::local::Place;
use crate::mask::Masker;
use crate::reach::{AGENT, Reach};
use crate::session::Session;
use crate::settings::{Era, HttpSettings, Prefer, Settings, StdioSettings, Terms};
use crate::spawn::spawn;
use crate::sse::SseChannel;
use crate::web::Web;

/// Why a server that was closed is not there.
pub(crate) const STOPPED: &str = "it was stopped";

/// How long the way to a server may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long a connection that nobody uses is kept.
const KEEP: Duration = Duration::from_secs(30);

/// Connects to one server, again and again.
pub(crate) struct Connector {
    settings: Settings,
    terms: Arc<Terms>,
    /// Outlives a connection, so that what it keeps open is used by the next.
    web: OnceCell<Web>,
    /// The transport over HTTP that worked last, which is tried first from then on.
    worked: Mutex<Option<Way>>,
}

/// Where a server on the web is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) url: Url,
    /// The socket that leads there, for one on this machine.
    pub(crate) socket: Option<PathBuf>,
    /// Whether the configuration names this machine in so many words.
    loopback: Loopback,
}

/// One of the two transports over HTTP.
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

    /// Connects within the time that a start may take.
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
            // Some servers end when the first message is not the one they expect.
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
        let inbound = |out, pending| Inbound::new(for_inbound, out, pending, watched, changed);
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
            // Neither way is there; what streamable HTTP says is the more telling.
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

    /// What is done about a list that has changed.
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

/// Whether what came back means that the server may speak the other transport.
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
    let address = Address::parse(settings.url.reveal())?;
    let masker = Arc::clone(&watched.masker);
    let mut web = address.web(&settings.headers, masker, &settings.addresses)?;
    web.max_message = settings.max_message;
    Ok(web)
}

/// The client through which every request to an address on another machine leaves.
fn client(address: &Address, guard: AddressGuard) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .user_agent(AGENT)
        .referer(false)
        // Followed by `Web`, which knows where credentials may go.
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .pool_idle_timeout(KEEP)
        .dns_resolver(Arc::new(guard));
    if let Some(socket) = &address.socket {
        builder = builder.unix_socket(socket.as_path());
    }
    if address.socket.is_some() || is_loopback(&address.url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("no HTTP client could be made: {error}"))
}

/// Whether an address is on this machine, where no proxy can reach it for us.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match Host::of(url.host_str().unwrap_or_default()) {
        Host::Literal(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

// === impl Address ===

impl Address {
    /// The way there, on which these headers are sent.
    pub(crate) fn web(
        &self,
        headers: &[(String, Secret<String>)],
        masker: Arc<Masker>,
        policy: &AddressPolicy,
    ) -> Result<Web, String> {
        // Whoever asks for compression needs somebody who undoes it.
        let is_plain = |(name, _): &(String, _)| !name.eq_ignore_ascii_case("accept-encoding");
        let guard = AddressGuard::new(self.host(), policy.clone(), self.loopback);
        let local = || self.local(&guard).filter(|_| headers.iter().all(is_plain));
        let reach = match (guard.check_literal(), local()) {
            (Err(refusal), _) if self.socket.is_none() => Reach::Refused(Arc::new(refusal)),
            (_, Some(local)) => local,
            (_, None) => Reach::Far(client(self, guard)?),
        };
        Web::new(reach, self.url.clone(), headers, masker)
    }

    /// Reads an address that the configuration gives.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (url, socket) = match text.strip_prefix("unix://") {
            Some(rest) => {
                let (socket, path) = rest.split_once(":/").unwrap_or((rest, ""));
                (format!("http://localhost/{path}"), Some(PathBuf::from(socket)))
            }
            None => (text.to_owned(), None),
        };
        let loopback = Loopback::of_configured(&url);
        Ok(Self { url: http_url(Url::parse(&url))?, socket, loopback })
    }

    /// Reads an address that a server or a document gives, as seen from this one. Within the origin
    /// it leads where this one does; elsewhere it has no right to this machine.
    pub(crate) fn join(&self, text: &str) -> Result<Self, String> {
        let url = http_url(self.url.join(text))?;
        let Self { socket, loopback, .. } = self.clone();
        if url.origin() == self.url.origin() {
            return Ok(Self { url, socket, loopback });
        }
        Self::found(url)
    }

    /// Reads an address that a server or a document gives.
    pub(crate) fn discover(text: &str) -> Result<Self, String> {
        Self::found(http_url(Url::parse(text))?)
    }

    fn found(url: Url) -> Result<Self, String> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err("its address has a login in it, which only the configuration may".into());
        }
        Ok(Self { url, socket: None, loopback: Loopback::Refused })
    }

    /// Where it leads, before any name is looked up.
    pub(crate) fn host(&self) -> Host {
        Host::of(self.url.host_str().unwrap_or_default())
    }

    /// Whether the configuration names this machine in so many words, or a socket on it.
    pub(crate) fn is_configured_here(&self) -> bool {
        self.socket.is_some() || self.loopback == Loopback::Configured
    }

    /// The short way, when the server is on this machine and neither encryption nor a password is
    /// in the way.
    fn local(&self, guard: &AddressGuard) -> Option<Reach> {
        let Self { url, socket, .. } = self;
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let name = url.host_str()?;
        let place = match socket {
            Some(socket) => Place::Socket(socket.clone()),
            None if is_loopback(url) => Place::Port(guard.clone(), url.port_or_known_default()?),
            None => return None,
        };
        let host = match url.port() {
            Some(port) => HeaderValue::try_from(format!("{name}:{port}")),
            None => HeaderValue::try_from(name),
        };
        Some(Reach::local(place, host.ok()?))
    }
}

/// A URL that HTTP can be spoken to.
fn http_url<E: std::fmt::Display>(url: Result<Url, E>) -> Result<Url, String> {
    let url = url.map_err(|error| format!("its `url` cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("its `url` begins with `{}`, which is no HTTP", url.scheme()));
    }
    Ok(url)
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
