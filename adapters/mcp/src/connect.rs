//! Connects to servers: starts their processes, or opens a client for their addresses.

use std::sync::{Arc, Mutex, PoisonError};

use capstan_http::{Client, WebAddress};
use capstan_hub::ports::{Era, Listener};
use capstan_model::ServerName;
use capstan_process::spawn::spawn;
use capstan_process::stderr::Ring;
use capstan_safety::mask::Masker;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tracing::debug;

use crate::channel::Channel;
use crate::channel::inbound::{Changed, Inbound, QuestionSettings};
use crate::fault::Fault;
use crate::http::HttpChannel;
use crate::http::base::Opening;
use crate::http::legacy_sse::SseChannel;
use crate::http::web::{Remedy, Web};
use crate::server::echo::{Reporter, Reports};
use crate::server::slot::Role;
use crate::server::sticky::StickyRequests;
use crate::server::tracker::ConnectionTracker;
use crate::session::Session;
use crate::session::handshake::{HandshakeError, Order, perform};
use crate::session::listing::{AllLists, Lists};
use crate::settings::{
    CommonSettings, Era as EraSetting, HttpSettings, LoginCredentials, Prefer, Settings,
    StdioSettings,
};
use crate::stdio::StdioChannel;
use crate::stdio::missing_variable::remedy;

/// The reason given for a server that was closed.
pub(crate) const STOPPED: &str = "it was stopped";

/// Connects to one server, repeatedly if needed.
pub(crate) struct Connector {
    settings: Settings,
    common: Arc<CommonSettings>,
    /// Outlives a connection, so that the next connection reuses its open sockets.
    web: OnceCell<Web>,
    /// The HTTP transport that worked last; it is tried first.
    worked: Mutex<Option<HttpTransport>>,
}

/// The parts of a server that outlive a connection to it.
#[derive(Clone)]
pub(crate) struct ServerContext {
    pub(crate) ring: Ring,
    pub(crate) masker: Arc<Masker>,
    pub(crate) tracker: Arc<ConnectionTracker>,
    /// Receives the server's notifications that belong to no call.
    pub(crate) listener: Arc<dyn Listener>,
    /// The lists of all of the server's connections.
    pub(crate) all_lists: Arc<AllLists>,
    /// The last reports of all connections of the server.
    pub(crate) reports: Arc<Reports>,
    /// The requests that last, for all connections of the server.
    pub(crate) sticky: Arc<StickyRequests>,
}

/// One of the two HTTP transports.
#[derive(Clone, Copy, Debug)]
enum HttpTransport {
    Streamable,
    Sse,
}

// === impl Connector ===

impl Connector {
    pub(crate) fn new(settings: Settings) -> Self {
        let common = Arc::new(settings.common());
        Self { settings, common, web: OnceCell::new(), worked: Mutex::default() }
    }

    pub(crate) fn name(&self) -> ServerName {
        self.common.name.clone()
    }

    /// True if legacy clients may get a connection of their own. A process gets none: a
    /// second process would not have the state of the first.
    pub(crate) fn may_have_lanes(&self) -> bool {
        match &self.settings {
            Settings::Stdio(_) => false,
            Settings::Http(settings) => settings.era == EraSetting::Auto,
        }
    }

    /// Connects within the startup timeout. The era that the first caller wishes counts for a
    /// server over stdio.
    pub(crate) async fn connect(
        &self,
        context: &ServerContext,
        role: Role,
        wish: Option<Era>,
    ) -> Result<Arc<Session>, Fault> {
        let limit = self.common.startup_timeout;
        let connecting = async {
            match (&self.settings, role) {
                (Settings::Stdio(settings), _) => {
                    self.stdio(settings, context, Order::of(settings.era, wish)).await
                }
                (Settings::Http(settings), Role::Home) => self.http(settings, context).await,
                (Settings::Http(settings), Role::Legacy) => {
                    let transport = HttpTransport::Streamable;
                    self.reach(settings, context, transport, Order::Legacy).await
                }
            }
        };
        let fault = match timeout(limit, connecting).await {
            Ok(Ok(session)) => return Ok(session),
            Ok(Err(HandshakeError::Failed(fault))) => fault,
            Ok(Err(HandshakeError::DiedInProbe(reason))) => Fault::Unreachable(reason),
            Err(_) => {
                let late = format!("it did not answer within {limit:?} (`startup_timeout`)");
                Fault::Unreachable(match context.ring.last() {
                    Some(line) => format!("{late}; last line of its output: {line}"),
                    None => late,
                })
            }
        };
        Err(self.with_remedy(fault, context))
    }

    /// Adds the configuration that a server lacks, if its output says what it misses.
    fn with_remedy(&self, fault: Fault, context: &ServerContext) -> Fault {
        let (Fault::Unreachable(reason), Settings::Stdio(settings)) = (&fault, &self.settings)
        else {
            return fault;
        };
        match remedy(&settings.name, &settings.withheld, &context.ring.fresh()) {
            Some(remedy) => Fault::Unreachable(format!("{reason}; {remedy}")),
            None => fault,
        }
    }

    async fn stdio(
        &self,
        settings: &StdioSettings,
        context: &ServerContext,
        order: Order,
    ) -> Result<Arc<Session>, HandshakeError> {
        match self.start(settings, context, order).await {
            // Some servers exit when the first message is not the one they expect.
            Err(HandshakeError::DiedInProbe(_)) => {
                context.tracker.none_left().await;
                self.start(settings, context, Order::Legacy).await
            }
            result => result,
        }
    }

    async fn start(
        &self,
        settings: &StdioSettings,
        context: &ServerContext,
        order: Order,
    ) -> Result<Arc<Session>, HandshakeError> {
        let guard = context.tracker.track().ok_or_else(stopped)?;
        context.ring.begin();
        let spawned = spawn(settings.launch()).map_err(|error| {
            let reason = format!("{error}; {}", error.hint(&settings.name));
            HandshakeError::Failed(Fault::Unreachable(reason))
        })?;
        let (questions, lists) = (self.question_settings(), Arc::new(Lists::default()));
        let (for_inbound, changed) = (questions.clone(), self.forgetting(&lists, context));
        let inbound = |requests| Inbound::new(for_inbound, requests, context, changed);
        let connection = StdioChannel::open(settings, spawned, guard, context.clone(), inbound);
        let connection: Arc<dyn Channel> = Arc::new(connection);
        let handshake = perform(&*connection, &self.common, order).await?;
        Ok(Arc::new(Session::new(
            Arc::clone(&self.common),
            connection,
            handshake,
            questions,
            lists,
        )))
    }

    async fn http(
        &self,
        settings: &HttpSettings,
        context: &ServerContext,
    ) -> Result<Arc<Session>, HandshakeError> {
        let worked = *self.worked.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = match (settings.prefer, worked) {
            (Prefer::Http, _) => (HttpTransport::Streamable, None),
            (Prefer::Sse, _) => (HttpTransport::Sse, None),
            (Prefer::HttpThenSse, None)
            | (Prefer::HttpThenSse | Prefer::SseThenHttp, Some(HttpTransport::Streamable)) => {
                (HttpTransport::Streamable, Some(HttpTransport::Sse))
            }
            (Prefer::SseThenHttp, None)
            | (Prefer::HttpThenSse | Prefer::SseThenHttp, Some(HttpTransport::Sse)) => {
                (HttpTransport::Sse, Some(HttpTransport::Streamable))
            }
        };
        let order = Order::of(settings.era, None);
        let fault = match (self.reach(settings, context, first, order).await, second) {
            (Err(HandshakeError::Failed(fault)), Some(_)) if may_speak_other(&fault, first) => {
                fault
            }
            (result, _) => return result,
        };
        debug!(%fault, "tried the other transport over HTTP");
        context.tracker.none_left().await;
        let second = second.unwrap_or(first);
        match (self.reach(settings, context, second, order).await, first) {
            // Both transports failed; the error of streamable HTTP is the more useful one.
            (
                Err(HandshakeError::Failed(
                    Fault::Status { .. } | Fault::NotMcp(_) | Fault::TooLong(_),
                )),
                HttpTransport::Streamable,
            ) => Err(HandshakeError::Failed(fault)),
            (result, _) => result,
        }
    }

    async fn reach(
        &self,
        settings: &HttpSettings,
        context: &ServerContext,
        transport: HttpTransport,
        order: Order,
    ) -> Result<Arc<Session>, HandshakeError> {
        let failed = |reason| HandshakeError::Failed(Fault::Unreachable(reason));
        let web = async { web(settings, context) };
        let web = self.web.get_or_try_init(|| web).await.map_err(failed)?;
        let guard = context.tracker.track().ok_or_else(stopped)?;
        let (questions, lists) = (self.question_settings(), Arc::new(Lists::default()));
        let opening = Opening {
            web: web.clone(),
            questions: questions.clone(),
            changed: self.forgetting(&lists, context),
            guard,
            context: context.clone(),
            limit: settings.timeout,
        };
        let (channel, order): (Arc<dyn Channel>, Order) = match transport {
            HttpTransport::Streamable => (Arc::new(HttpChannel::open(opening)), order),
            HttpTransport::Sse => {
                let channel = SseChannel::open(opening).await.map_err(HandshakeError::Failed)?;
                (Arc::new(channel), Order::Legacy)
            }
        };
        let handshake = perform(&*channel, &self.common, order).await?;
        *self.worked.lock().unwrap_or_else(PoisonError::into_inner) = Some(transport);
        Ok(Arc::new(Session::new(Arc::clone(&self.common), channel, handshake, questions, lists)))
    }

    fn question_settings(&self) -> QuestionSettings {
        QuestionSettings {
            server: self.common.name.clone(),
            roots: self.common.roots.clone().into(),
            elicitation: self.common.elicitation,
            others: self.common.others,
        }
    }

    /// Returns the handler for a changed list: it drops the cached list of every connection and
    /// notifies the listener. If another connection has reported the change already, only a list
    /// that has changed once more is news.
    fn forgetting(&self, lists: &Arc<Lists>, context: &ServerContext) -> Changed {
        context.all_lists.add(lists);
        let (lists, listener) = (Arc::clone(&context.all_lists), Arc::clone(&context.listener));
        let name = self.common.name.clone();
        let reporter = Reporter::new(&context.reports);
        Box::new(move |listing| {
            lists.forget(listing);
            if reporter.repeats(listing.method()) {
                listener.list_may_differ(&name, listing);
            } else {
                listener.list_changed(&name, listing);
            }
        })
    }
}

fn stopped() -> HandshakeError {
    HandshakeError::Failed(Fault::Unreachable(STOPPED.to_owned()))
}

/// True if the fault means that the server may speak the other transport.
fn may_speak_other(fault: &Fault, tried: HttpTransport) -> bool {
    match (fault, tried) {
        (Fault::Status { status, .. }, HttpTransport::Streamable) => {
            matches!(status, 400 | 404 | 405)
        }
        (Fault::Status { status, .. }, HttpTransport::Sse) => (400..500).contains(status),
        (Fault::NotMcp(_) | Fault::TooLong(_), HttpTransport::Sse) => true,
        (Fault::NotMcp(_) | Fault::TooLong(_), HttpTransport::Streamable)
        | (
            Fault::Unreachable(_)
            | Fault::Blocked(_)
            | Fault::Elsewhere(_)
            | Fault::Login(_)
            | Fault::Credentials(_)
            | Fault::Scopes(_)
            | Fault::Forbidden(_)
            | Fault::RateLimited(_)
            | Fault::Endless(_),
            HttpTransport::Streamable | HttpTransport::Sse,
        ) => false,
    }
}

fn web(settings: &HttpSettings, context: &ServerContext) -> Result<Web, String> {
    let address = WebAddress::parse(settings.url.reveal())?;
    let masker = Arc::clone(&context.masker);
    let client = Client::new(&address, &settings.headers, masker, &settings.addresses)?;
    let client = settings
        .fetched
        .iter()
        .fold(client, |client, LoginCredentials(one)| client.with(Arc::clone(one)));
    let (client, remedy) = match &settings.login {
        Some(LoginCredentials(login)) => (client.with(Arc::clone(login)), Remedy::Login),
        None => (client, Remedy::Configuration),
    };
    Ok(Web { client, max_message: settings.max_message, remedy })
}
