//! Runs the gateway: a hub for other programs, and the transport by which they reach it.
//!
//! `record` also keeps what one server answers, and `replay` answers from it. `auth` authenticates
//! callers, with the tokens of `own_authorization` too, `client_document` says
//! who we are as a client of authorization servers, `served` replaces the hub on a reload, `supervise` starts and stops servers, `watch` triggers
//! reloads.

mod auth;
mod caller_logins;
mod client_document;
mod own_authorization;
mod record;
mod replay;
mod served;
mod supervise;
mod watch;

use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use capstan_app::hub_settings::{self, ClientTransport};
use capstan_app::reload::{LiveConfig, Reloading, Transport};
use capstan_app::{AppError, Environment, Selection, Setup};
use capstan_audit::Background;
use capstan_cli::serving::{Face, HttpFace, Protection, Ready, Serve, Serving};
use capstan_config::{Config, GatewayLimits, Loaded};
use capstan_gateway::http::{
    self, Anonymous, Bound, HttpLimits, HttpSettings, McpEndpoints, Routes, Site, Tls,
};
use capstan_gateway::{Gateway, View, stdio};
use capstan_hub::ports::{AuditLog, BoxFuture, CallerLogins};
use capstan_hub::{Hub, HubBuilder};
use capstan_model::{Caller, ServerState};
use futures::future::{Shared, join};
use futures::{FutureExt, poll};
use tokio::time::{sleep, timeout};

use crate::adapters::Adapters;
use crate::control;
use crate::files::CacheFolder;
use crate::telemetry::Telemetry;
use auth::{AuditLogins, GatewayAuth};
use caller_logins::CallerSignIns;
use client_document::ClientDocument;
use record::Recorded;
use served::Served;
pub(crate) use supervise::Supervised;

/// Time limit for calls to end when we stop.
///
/// The rest of ten seconds is for notifying clients whose calls did not end, and for the servers.
const DRAIN: Duration = Duration::from_secs(6);

/// Time limit for notifying clients when we stop immediately.
const HURRY: Duration = Duration::from_millis(500);

/// Two stop signals within this time count as one: launchers forward a Ctrl-C that we have also
/// received ourselves.
const ECHO: Duration = Duration::from_millis(300);

/// Interval at which the states of servers are checked.
const WATCH: Duration = Duration::from_secs(1);

/// The ways by which callers are let in: at the gateway, and at servers with accounts of their own.
struct Access {
    auth: Option<Arc<GatewayAuth>>,
    callers: Option<Arc<CallerSignIns>>,
}

/// Completes when it is time to stop.
type Stopping = Shared<BoxFuture<'static, ()>>;

/// The parts of a gateway over HTTP.
struct OverHttp {
    bound: Bound,
    access: Access,
    document: Option<ClientDocument>,
}

/// Announces that the gateway accepts clients.
type Announce<'a> = Box<dyn FnOnce(Ready) -> BoxFuture<'a, ()> + Send + 'a>;

// === impl OverHttp ===

impl OverHttp {
    fn of(bound: Option<Bound>, access: Access, loaded: &Loaded) -> Option<Self> {
        bound.map(|bound| Self { bound, access, document: ClientDocument::of(loaded) })
    }
}

impl Serve for Adapters {
    fn serve<'a>(
        &'a self,
        setup: &'a Setup,
        selection: &'a Selection,
        serving: Serving<'a>,
    ) -> BoxFuture<'a, Result<(), AppError>> {
        Box::pin(serve(Arc::new(self.clone()), setup, selection, serving))
    }

    fn replay<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<(), AppError>> {
        Box::pin(async move { unless_gone(replay::serve(replay::read(file)?).await) })
    }
}

/// Serves until told to stop, or until the client on our standard streams is gone.
async fn serve(
    adapters: Arc<Adapters>,
    setup: &Setup,
    selection: &Selection,
    serving: Serving<'_>,
) -> Result<(), AppError> {
    let Serving { face, stop, ready } = serving;
    let mut stopping = stop().shared();
    let only = match &face {
        Face::Record(recording) => Some(record::only(setup, recording)),
        Face::Stdio { .. } | Face::Http(_) => None,
    };
    let setup = only.as_ref().unwrap_or(setup);
    let loaded = &*setup.loaded;
    // Binds first, so that no server is started if the address is not available.
    let Opened { transport, bound, recorded } = open(&adapters, setup, face).await?;
    let (mut hub, audit) = hub(&adapters, setup, transport)?;
    let access = access(&adapters, &loaded.config, bound.as_ref(), &mut hub).await?;
    let telemetry = Telemetry::start(&adapters.environment);
    let supervised = Arc::new(Supervised::start(&adapters, &hub.clock, &hub.changes));
    supervised.supervise(&mut hub, &loaded.config);
    hub.tracer = telemetry.tracer();
    let gateway = Gateway::watched(Arc::new(hub.build()), telemetry.tracer())
        .map_err(|error| AppError::internal(error.to_string()))?;
    telemetry.count(&gateway);
    // Keeps the gateway alive, so that its final counters can be sent at the end.
    let counted = Arc::clone(&gateway);
    let served = Arc::new(Served::new(&adapters, &gateway, &supervised, transport));
    let reloading = Reloading {
        configs: Arc::clone(&adapters.configs),
        served: Arc::<Served>::clone(&served),
        transport: if bound.is_some() { Transport::Http } else { Transport::Stdio },
        names: Arc::<CacheFolder>::clone(&adapters.names),
        usage: Arc::clone(&adapters.usage),
        index: Arc::<capstan_search::SearchIndex>::clone(&adapters.index),
    };
    let live = LiveConfig::new(reloading, gateway.hub(), setup, selection);
    let mut controlled = control::open(&adapters.environment, &live);
    tokio::spawn(warm_up(Arc::clone(&gateway)));
    let required = required(&gateway.hub(), &loaded.config, &mut stopping).await;
    let result = match required {
        Ok(ControlFlow::Continue(())) => {
            controlled.spawn(watch::follow(Arc::clone(&live)).map(|never| match never {}));
            if let Some(auth) = &access.auth {
                controlled.spawn(Arc::clone(auth).maintain());
            }
            let hurried = hurried(Arc::clone(&gateway), stopping.clone(), stop);
            tokio::select! {
                biased;
                served = run(gateway, (OverHttp::of(bound, access, loaded), recorded.clone()), (stopping, ready)) => served,
                () = hurried => Ok(()),
            }
        }
        Ok(ControlFlow::Break(())) => Ok(()),
        Err(failure) => Err(failure),
    };
    let result = result.and(recorded.map_or(Ok(()), |recorded| recorded.save()));
    controlled.shutdown().await;
    // In parallel, and off the runtime's threads: there is no time to run one after the other.
    let told = tokio::task::spawn_blocking(move || telemetry.end());
    let ((), told) = tokio::join!(served.close(), told);
    drop((told, counted));
    supervised.end().await;
    if let Some(audit) = audit {
        audit.close();
    }
    result
}

/// The way to the gateway, before it has a hub.
struct Opened {
    transport: ClientTransport,
    bound: Option<Bound>,
    recorded: Option<Recorded>,
}

/// Opens the way by which clients reach the gateway.
async fn open(adapters: &Adapters, setup: &Setup, face: Face) -> Result<Opened, AppError> {
    let environment = &adapters.environment;
    Ok(match face {
        Face::Stdio { confirm } => {
            Opened { transport: ClientTransport::Stdio(confirm), bound: None, recorded: None }
        }
        Face::Record(recording) => {
            let recorded = Some(Recorded::new(environment, setup, recording)?);
            Opened { transport: ClientTransport::Stdio(None), bound: None, recorded }
        }
        Face::Http(face) => {
            let bound = Some(bind(environment, &setup.loaded.config, face).await?);
            Opened { transport: ClientTransport::Http, bound, recorded: None }
        }
    })
}

/// Builds the authentication of callers over HTTP, and their logins to servers.
async fn access(
    adapters: &Adapters,
    config: &Config,
    bound: Option<&Bound>,
    hub: &mut HubBuilder,
) -> Result<Access, AppError> {
    let Some(bound) = bound else { return Ok(Access { auth: None, callers: None }) };
    let auth = GatewayAuth::new(adapters, config, bound, hub).await?;
    let (logins, audit) = (Arc::clone(&adapters.logins), AuditLogins::new(hub));
    let callers = CallerSignIns::new(logins, audit, &config.gateway, bound);
    hub.caller_logins = Some(Arc::<CallerSignIns>::clone(&callers) as Arc<dyn CallerLogins>);
    Ok(Access { auth, callers: Some(callers) })
}

/// Starts the servers early, so that they are ready for the first client.
async fn warm_up(gateway: Arc<Gateway>) {
    if let Some(spills) = gateway.hub().spills() {
        spills.sweep().await;
    }
    gateway.warm_up().await;
    hub_settings::warn_unmatched(&gateway.hub()).await;
}

/// Logs what the shutdown waits for; completes when a second stop signal arrives.
async fn hurried(gateway: Arc<Gateway>, stopping: Stopping, stop: fn() -> BoxFuture<'static, ()>) {
    stopping.await;
    drop(timeout(ECHO, stop()).await);
    let mut again = stop();
    // Registers for the second signal before the message invites it.
    if poll!(&mut again).is_pending() {
        let calls = gateway.in_flight();
        if calls > 0 {
            tracing::warn!(calls, "stopping when the running calls have ended; repeat to stop now");
        }
        again.await;
    }
    gateway.give_up();
    sleep(HURRY).await;
}

/// Serves clients until told to stop, or until the only client is gone.
async fn run(
    gateway: Arc<Gateway>,
    (over_http, recorded): (Option<OverHttp>, Option<Recorded>),
    (stop, ready): (Stopping, Announce<'_>),
) -> Result<(), AppError> {
    let watched = watch(Arc::clone(&gateway));
    match over_http {
        None => {
            // The process that started us; it may do what the operator's rules allow a client.
            let caller = Arc::new(Caller::anonymous());
            let served = async {
                if let Some(recorded) = recorded {
                    return recorded.serve(gateway, caller, stop).await;
                }
                let (input, output) = stdio::streams::standard();
                stdio::serve(gateway, (caller, View::All), input, output, stop, DRAIN).await
            };
            tokio::select! {
                biased;
                served = served => unless_gone(served),
                never = watched => match never {},
            }
        }
        Some(OverHttp { bound, access, document }) => {
            let url = format!("{}://{}/mcp", bound.scheme(), host(bound.address()));
            let exposed = (!bound.address().ip().to_canonical().is_loopback())
                .then(|| format!("{}://{}/mcp", bound.scheme(), bound.address()));
            let metrics = bound.metrics_address();
            let metrics = metrics.map(|at| format!("{}://{}/metrics", bound.scheme(), host(at)));
            let ways = access.auth.as_ref().map(|auth| auth.ways()).unwrap_or_default();
            let protection = Protection { ways, encrypted: bound.scheme() == "https" };
            let announced = ready(Ready { hub: gateway.hub(), url, exposed, metrics, protection });
            let site = site(&gateway, &bound, access, document);
            tokio::select! {
                biased;
                () = http::serve(bound, site, stop) => {}
                (never, ()) = join(watched, announced) => match never {},
            }
            Ok(())
        }
    }
}

/// The HTTP site: the routes, and the authenticator of their callers.
fn site(
    gateway: &Arc<Gateway>,
    bound: &Bound,
    Access { auth, callers }: Access,
    document: Option<ClientDocument>,
) -> Site {
    let mcp = McpEndpoints::new(gateway, bound.limits());
    let routes = mcp.mount(Routes::new(http::NOT_FOUND));
    let routes = match bound.metrics_address() {
        Some(_) => http::pages::mount_without_metrics(routes, gateway),
        None => http::pages::mount(routes, gateway),
    };
    let routes = callers.iter().fold(routes, |routes, callers| callers.mount(routes));
    let routes = match document {
        Some(document) => document.mount(routes),
        None => routes,
    };
    match auth {
        Some(auth) => Site { mcp, routes: auth.mount(routes), authenticator: auth },
        None => Site { mcp, routes, authenticator: Arc::new(Anonymous) },
    }
}

/// Waits for the required servers, unless told to stop.
async fn required(
    hub: &Hub,
    config: &Config,
    stop: &mut Stopping,
) -> Result<ControlFlow<()>, AppError> {
    tokio::select! {
        biased;
        () = stop => Ok(ControlFlow::Break(())),
        required = hub_settings::start_required(hub, config) => required.map(ControlFlow::Continue),
    }
}

/// Builds a hub for clients, with an audit log that is written in the background.
fn hub(
    adapters: &Adapters,
    setup: &Setup,
    transport: ClientTransport,
) -> Result<(HubBuilder, Option<Arc<Background>>), AppError> {
    let mut hub = adapters.gateway_hub(setup, transport, None)?;
    let config = &setup.loaded.config;
    if !config.audit.enabled {
        return Ok((hub, None));
    }
    let log = crate::audit::open(&adapters.environment, config);
    let log = log.map_err(|error| invalid(&error.into()))?;
    let log = Background::start(log).context("the audit log needs a thread");
    let log = Arc::new(log.map_err(|error| invalid(&error))?);
    hub.audit = Arc::<Background>::clone(&log) as Arc<dyn AuditLog>;
    Ok((hub, Some(log)))
}

async fn bind(
    environment: &Environment,
    config: &Config,
    face: HttpFace,
) -> Result<Bound, AppError> {
    let HttpFace { listen, metrics, insecure, tls } = face;
    let path = |path: PathBuf| environment.current_folder.join(path);
    let settings = HttpSettings {
        listen,
        metrics_listen: metrics,
        allowed_hosts: hosts(config),
        allowed_origins: config.gateway.allowed_origins.clone(),
        tls: tls.map(|files| Tls { cert: path(files.cert), key: path(files.key) }),
        insecure,
        authenticated: config.gateway.auth.as_ref().is_some_and(|auth| !auth.is_open()),
        limits: limits(&config.gateway.limits),
    };
    http::bind(settings).await.map_err(|error| {
        let hint = error.hint(metrics);
        let failure = invalid(&anyhow::Error::new(error));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// The host names that clients may use: the configured ones, and those of the public URL and of the
/// authorization server.
fn hosts(config: &Config) -> Vec<String> {
    let gateway = &config.gateway;
    let issuer = gateway.auth.as_ref().and_then(|auth| auth.oauth_as.as_ref()?.issuer_url.as_ref());
    let public = [gateway.public_url.as_ref(), issuer].into_iter().flatten().filter_map(|url| {
        let (_, rest) = url.split_once("://")?;
        rest.split('/').next().map(str::to_owned)
    });
    gateway.allowed_hosts.iter().cloned().chain(public).collect()
}

fn limits(limits: &GatewayLimits) -> HttpLimits {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    HttpLimits {
        body: usize::try_from(limits.max_body).unwrap_or(usize::MAX),
        connections: count(limits.max_connections),
        sessions: count(limits.max_sessions),
        idle_session: limits.session_idle,
        drain: DRAIN,
        ..HttpLimits::default()
    }
}

/// The address for clients to use; an unspecified address becomes the loopback address.
fn host(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let loopback: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(loopback, address.port())
}

/// Treats a client that no longer reads as the normal end of the connection.
fn unless_gone(result: io::Result<()>) -> Result<(), AppError> {
    let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    match result {
        Err(error) if !gone.contains(&error.kind()) => {
            Err(AppError::internal(format!("the client cannot be reached: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Logs a warning each time a server fails.
async fn watch(gateway: Arc<Gateway>) -> Infallible {
    let mut failed = HashSet::new();
    loop {
        let hub = gateway.hub();
        for name in hub.servers() {
            let Some(ServerState::Failed(reason)) = hub.state(name) else {
                failed.remove(name);
                continue;
            };
            if failed.insert(name.clone()) {
                // Logged in debug format, because it may quote output of the server.
                tracing::warn!(server = %name, ?reason, "a server cannot be used");
            }
        }
        hub.pins().look_again().await;
        drop(hub);
        sleep(WATCH).await;
    }
}

fn invalid(error: &anyhow::Error) -> AppError {
    AppError::config(format!("{error:#}"))
}
