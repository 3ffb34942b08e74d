//! Accepts connections and serves each, until it is time to stop.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use capstan_model::Caller;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{self, Instant, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;

use super::Bound;
use super::face::Face;
use super::timed::Timed;
use crate::Gateway;
use crate::ending::LAST_WORDS;

/// Most headers of a request.
const MAX_HEADERS: usize = 100;

/// Longest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// How much of a body is read, and of an answer gathered, at once, in bytes.
const BUFFER: usize = 64 * 1024;

/// How long to wait when no connection can be accepted, which is when there are no more files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often old sessions are looked for, in the time that one may be idle.
pub(super) const SWEEPS: u32 = 8;

/// What the requests of a connection tell its waits.
pub(super) struct Pulse {
    began: Instant,
    /// Requests so far.
    requests: AtomicU32,
    /// Whether a request is worked on, or its answer sent.
    busy: AtomicBool,
    /// When the last answer was sent, in milliseconds since the connection began.
    rested: AtomicU64,
}

/// A request is worked on for as long as this is there.
pub(super) struct Busy(Arc<Pulse>);

/// Serves until `stop`; then requests under way may end, calls that have not ended in time are told
/// so, and who does not hear that is cut.
pub async fn serve(gateway: Arc<Gateway>, bound: Bound, stop: impl Future<Output = ()>) {
    let Bound { listener, address, tls, settings } = bound;
    let limits = settings.limits;
    gateway.own.store(settings.allowed_hosts.is_empty(), Ordering::Relaxed);
    let face = Arc::new(Face::new(Arc::clone(&gateway), address, &settings));
    let (stopping, stopped) = watch::channel(());
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
                take((&face, &tls), accepted, &mut connections, stopped.clone()).await;
            }
            Some(_) = connections.join_next() => {}
            _ = sweep.tick() => face.sweep(),
            _ = forget.tick() => face.forget_streams(),
        }
    }
    // Streams on which things are only told would never end by themselves.
    face.end_streams();
    stopping.send_replace(());
    let mut drained = pin!(gateway.drain());
    let mut late = pin!(time::sleep(limits.drain));
    let mut is_drained = false;
    loop {
        tokio::select! {
            biased;
            () = &mut drained, if !is_drained => {
                is_drained = true;
                stopping.send_replace(());
            }
            () = &mut late => {
                gateway.give_up();
                stopping.send_replace(());
                break;
            }
            // Whoever waits for a call may have to answer a question of its server.
            accepted = listener.accept(), if !is_drained && connections.len() < limits.connections => {
                take((&face, &tls), accepted, &mut connections, stopping.subscribe()).await;
            }
            ended = connections.join_next(), if is_drained || !connections.is_empty() => {
                if is_drained && ended.is_none() {
                    break;
                }
            }
        }
    }
    drop(listener);
    let told = async { while connections.join_next().await.is_some() {} };
    if time::timeout(LAST_WORDS, told).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections are cut");
        connections.shutdown().await;
    }
    face.end();
}

/// Takes a connection in.
async fn take(
    (face, tls): (&Arc<Face>, &Option<TlsAcceptor>),
    accepted: io::Result<(TcpStream, SocketAddr)>,
    connections: &mut JoinSet<()>,
    stopped: watch::Receiver<()>,
) {
    match accepted {
        Ok((stream, from)) => {
            let caller = Arc::new(Caller::stranger(Some(from.ip())));
            connections.spawn(welcome((Arc::clone(face), caller), stream, tls.clone(), stopped));
        }
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Serves one connection, encrypted or not.
async fn welcome(
    (face, caller): (Arc<Face>, Arc<Caller>),
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    stopped: watch::Receiver<()>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection sends late");
    }
    let Some(tls) = tls else { return converse(face, caller, stream, stopped).await };
    match time::timeout(face.limits().head_wait, tls.accept(stream)).await {
        Ok(Ok(stream)) => converse(face, caller, Box::new(stream), stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection could not be encrypted"),
        Err(_) => tracing::debug!("a connection did not get encrypted in time"),
    }
}

async fn converse(
    face: Arc<Face>,
    caller: Arc<Caller>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut stopped: watch::Receiver<()>,
) {
    let pulse = Arc::new(Pulse::new());
    let io = TokioIo::new(Timed::new(stream, Arc::clone(&pulse), face.limits()));
    let service = service_fn(move |request| {
        // At once, and not when the future is first polled: from here on the head is read.
        let busy = Busy::new(&pulse);
        let (face, caller) = (Arc::clone(&face), Arc::clone(&caller));
        async move {
            Ok::<_, Infallible>(face.answer(request, caller).await.map(|body| body.with(busy)))
        }
    });
    let mut http = http1::Builder::new();
    http.max_headers(MAX_HEADERS).max_header_size(MAX_HEAD).max_buf_size(BUFFER);
    // The head has its own limit in `Timed`, which costs no timer a request.
    http.header_read_timeout(None);
    let mut connection = pin!(http.serve_connection(io, service));
    let result = tokio::select! {
        biased;
        result = connection.as_mut() => result,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = %error, "a connection ended early");
    }
}

// === impl Pulse ===

impl Pulse {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            requests: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            rested: AtomicU64::new(0),
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// When the last answer was sent.
    pub(super) fn rested(&self) -> Instant {
        self.began + Duration::from_millis(self.rested.load(Ordering::Relaxed))
    }
}

// === impl Busy ===

impl Busy {
    fn new(pulse: &Arc<Pulse>) -> Self {
        pulse.busy.store(true, Ordering::Relaxed);
        pulse.requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(pulse))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let rested = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.rested.store(rested, Ordering::Relaxed);
        self.0.busy.store(false, Ordering::Relaxed);
    }
}
