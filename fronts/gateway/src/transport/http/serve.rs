//! Accepts and serves connections until shutdown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{self, Instant, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;

use crate::Gateway;
use crate::gateway::shutdown::LAST_WORDS;
use crate::transport::http::authenticator::{Authenticator, RemotePeer};
use crate::transport::http::connection::connection_state::{Busy, ConnectionState};
use crate::transport::http::connection::timeouts::{Socket, Timed};
use crate::transport::http::mcp_endpoints::McpEndpoints;
use crate::transport::http::pages;
use crate::transport::http::request::guard::Guard;
use crate::transport::http::routes::{Connection, Listener, Router, Routes};
use crate::transport::http::{Bound, HttpLimits};

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// Maximum size of a request head, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// Buffer size for request bodies and answers, in bytes.
const BUFFER: usize = 64 * 1024;

/// Pause after a connection could not be accepted, which happens when descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often the log warns that connections cannot be accepted.
const WARN_INTERVAL: Duration = Duration::from_secs(5);

/// How long a connection may send nothing of an awaited request when descriptors run out.
const SILENCE_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of connections to the metrics address; further ones wait to be accepted.
const METRICS_CONNECTIONS: usize = 16;

/// Number of session sweeps within the idle timeout.
pub(crate) const SWEEPS: u32 = 8;

/// Everything that a gateway serves over HTTP.
pub struct Site {
    /// The endpoints whose clients and streams end with the site.
    pub mcp: Arc<McpEndpoints>,
    /// The routes at the address for clients.
    pub routes: Routes,
    /// Authenticates the requests of routes that need a caller.
    pub authenticator: Arc<dyn Authenticator>,
}

/// Accepts the connections of one address.
struct AcceptLoop {
    router: Arc<Router>,
    limits: HttpLimits,
    tls: Option<TlsAcceptor>,
    commands: watch::Sender<ConnectionCommand>,
    /// Connections that could not be accepted since the last warning, and its time.
    failed: u64,
    told: Option<Instant>,
}

/// A connection that was accepted.
struct Accepted {
    router: Arc<Router>,
    limits: HttpLimits,
    connection: Connection,
    commands: watch::Receiver<ConnectionCommand>,
}

/// A command to all connections of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionCommand {
    /// Close if idle, because descriptors have run out.
    MakeRoom,
    /// Close after the running request is answered.
    Stop,
}

/// Serves until `stop`, then shuts down.
///
/// Running requests may end. Calls that do not end in time are aborted and their clients get an
/// error. Clients that do not read it are disconnected.
pub async fn serve(bound: Bound, site: Site, stop: impl Future<Output = ()>) {
    let Bound { listener, address, tls, metrics, settings } = bound;
    let Site { mcp, routes, authenticator } = site;
    let gateway = Arc::clone(mcp.gateway());
    let limits = settings.limits;
    gateway.own.store(settings.allowed_hosts.is_empty(), Ordering::Relaxed);
    let mut aside = JoinSet::new();
    if let Some((listener, address)) = metrics {
        let router = Router {
            listener: Listener::Metrics,
            guard: Guard::new(address, &settings),
            authenticator: Arc::clone(&authenticator),
            routes: pages::metrics_only(&gateway),
        };
        aside.spawn(serve_metrics(AcceptLoop::new(router, limits, tls.clone()), listener));
    }
    let guard = Guard::new(address, &settings);
    let router = Router { listener: Listener::Clients, guard, authenticator, routes };
    let mut accept_loop = AcceptLoop::new(router, limits, tls);
    let mut connections = JoinSet::new();
    let mut sweep = time::interval(limits.idle_session / SWEEPS);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut forget = time::interval((limits.resume / 2).max(Duration::from_secs(1)));
    forget.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept(), if connections.len() < limits.connections => {
                accept_loop.take(accepted, &mut connections).await;
            }
            Some(_) = connections.join_next() => {}
            _ = sweep.tick() => mcp.sweep(),
            _ = forget.tick() => mcp.forget_streams(),
        }
    }
    // Streams for notifications never end by themselves.
    mcp.end_streams();
    accept_loop.commands.send_replace(ConnectionCommand::Stop);
    drain(&gateway, &limits, &listener, &mut accept_loop, &mut connections).await;
    drop(listener);
    let told = async { while connections.join_next().await.is_some() {} };
    if time::timeout(LAST_WORDS, told).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections are cut");
        connections.shutdown().await;
    }
    mcp.end();
}

/// Waits for the running calls, and aborts them at the deadline.
async fn drain(
    gateway: &Gateway,
    limits: &HttpLimits,
    listener: &TcpListener,
    accept_loop: &mut AcceptLoop,
    connections: &mut JoinSet<()>,
) {
    let mut drained = pin!(gateway.drain());
    let mut late = pin!(time::sleep(limits.drain));
    let mut is_drained = false;
    loop {
        tokio::select! {
            biased;
            () = &mut drained, if !is_drained => {
                is_drained = true;
                accept_loop.commands.send_replace(ConnectionCommand::Stop);
            }
            () = &mut late => {
                gateway.give_up();
                accept_loop.commands.send_replace(ConnectionCommand::Stop);
                break;
            }
            // A client of a running call may have to answer a question of its server.
            accepted = listener.accept(), if !is_drained && connections.len() < limits.connections => {
                accept_loop.take(accepted, connections).await;
            }
            ended = connections.join_next(), if is_drained || !connections.is_empty() => {
                if is_drained && ended.is_none() {
                    break;
                }
            }
        }
    }
}

/// Serves the metrics as long as the gateway runs.
async fn serve_metrics(mut accept_loop: AcceptLoop, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            accepted = listener.accept(), if connections.len() < METRICS_CONNECTIONS => {
                accept_loop.take(accepted, &mut connections).await;
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

// === impl AcceptLoop ===

impl AcceptLoop {
    fn new(router: Router, limits: HttpLimits, tls: Option<TlsAcceptor>) -> Self {
        let commands = watch::Sender::new(ConnectionCommand::MakeRoom);
        Self { router: Arc::new(router), limits, tls, commands, failed: 0, told: None }
    }

    /// Starts the task of an accepted connection.
    async fn take(
        &mut self,
        accepted: io::Result<(TcpStream, SocketAddr)>,
        connections: &mut JoinSet<()>,
    ) {
        match accepted {
            Ok((stream, from)) => {
                let state = Arc::new(ConnectionState::new());
                let accepted = Accepted {
                    router: Arc::clone(&self.router),
                    limits: self.limits,
                    connection: Connection { from: RemotePeer::new(from.ip()), state },
                    commands: self.commands.subscribe(),
                };
                connections.spawn(accepted.welcome(stream, self.tls.clone()));
            }
            Err(error) => self.make_room(&error).await,
        }
    }

    /// Closes idle connections, and waits a moment for their descriptors.
    async fn make_room(&mut self, error: &io::Error) {
        self.failed += 1;
        if self.told.is_none_or(|told| told.elapsed() >= WARN_INTERVAL) {
            let failed = self.failed;
            tracing::warn!(
                %error, failed,
                "cannot accept connections; idle ones are closed; raise `ulimit -n` if this lasts"
            );
            (self.failed, self.told) = (0, Some(Instant::now()));
        }
        // `Stop` is final: no other command replaces it.
        let has_stopped = *self.commands.borrow() == ConnectionCommand::Stop;
        if !has_stopped {
            self.commands.send_replace(ConnectionCommand::MakeRoom);
        }
        time::sleep(ACCEPT_PAUSE).await;
    }
}

// === impl Accepted ===

impl Accepted {
    /// Serves the connection, encrypted or not.
    async fn welcome(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection sends too slowly");
        }
        let Some(tls) = tls else { return self.converse(stream).await };
        let encrypted = tokio::select! {
            biased;
            accepted = time::timeout(self.limits.head_wait, tls.accept(stream)) => accepted,
            () = wait_for_eviction(&self.connection.state, self.commands.clone()) => return,
        };
        match encrypted {
            Ok(Ok(stream)) => self.converse(Box::new(stream)).await,
            Ok(Err(error)) => tracing::debug!(%error, "the TLS handshake of a connection failed"),
            Err(_) => tracing::debug!("a connection did not complete the TLS handshake in time"),
        }
    }

    async fn converse(self, stream: impl Socket) {
        let Self { router, limits, connection, mut commands } = self;
        let state = Arc::clone(&connection.state);
        let io = TokioIo::new(Timed::new(stream, Arc::clone(&state), &limits));
        let service = service_fn(|request: Request<Incoming>| {
            // Immediately, not at the future's first poll: the head is complete from here on.
            let busy = Busy::new(&state);
            let (router, connection) = (Arc::clone(&router), connection.clone());
            async move {
                let response = router.answer(request, connection).await;
                Ok::<_, Infallible>(response.map(|body| body.with(busy)))
            }
        });
        let mut http = http1::Builder::new();
        http.max_headers(MAX_HEADERS).max_header_size(MAX_HEAD).max_buf_size(BUFFER);
        // `Timed` limits the head instead, which costs no timer per request.
        http.header_read_timeout(None);
        let mut connection = pin!(http.serve_connection(io, service));
        let result = loop {
            tokio::select! {
                biased;
                result = connection.as_mut() => break result,
                _ = commands.changed() => {
                    let command = *commands.borrow_and_update();
                    if command == ConnectionCommand::MakeRoom && state.is_silent_for(SILENCE_GRACE) {
                        return;
                    }
                    if command == ConnectionCommand::Stop || state.is_resting() {
                        connection.as_mut().graceful_shutdown();
                        break connection.await;
                    }
                }
            }
        };
        if let Err(error) = result {
            tracing::debug!(error = %error, "a connection ended early");
        }
    }
}

/// Waits until descriptors run out and the connection has sent nothing for too long.
async fn wait_for_eviction(
    state: &ConnectionState,
    mut commands: watch::Receiver<ConnectionCommand>,
) {
    while commands.changed().await.is_ok() {
        if *commands.borrow_and_update() == ConnectionCommand::MakeRoom
            && state.is_silent_for(SILENCE_GRACE)
        {
            return;
        }
    }
    std::future::pending::<()>().await;
}
