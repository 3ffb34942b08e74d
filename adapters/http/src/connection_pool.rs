//! A connection pool for servers on this machine: plain HTTP/1.1 over reused connections.
//!
//! Requests to other machines go through `reqwest`, which supports proxies and encryption. Neither
//! is needed here. The task that waits for an answer drives the connection itself, so that a
//! request wakes no other task. Idle connections are closed by a background task that ends when
//! there are none left.

use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use capstan_safety::address::AddressRefusal;
use futures::future::poll_fn;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout};

use crate::address_guard::{AddressGuard, LookupError};
use crate::payload::Payload;

/// The timeout for establishing a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const KEEP: Duration = Duration::from_secs(30);

/// The largest number of idle connections.
const MAX_IDLE: usize = 256;

/// The size of the read buffer, in bytes.
const BUFFER: usize = 64 * 1024;

/// The connections to one server on this machine.
pub(crate) struct ConnectionPool {
    place: Place,
    idle: Mutex<Idle>,
}

/// The endpoint that a server on this machine listens on.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A name or address of this machine, which is checked for each connection, and a port.
    Port(AddressGuard, u16),
    Socket(PathBuf),
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) enum LocalError {
    /// There is no connection.
    Connect(io::Error),
    /// The address is refused; no connection was attempted.
    Refused(AddressRefusal),
    /// The connection broke. It is unknown if the request arrived.
    Broken(hyper::Error),
}

/// The body of an answer, still arriving.
pub(crate) struct Flow {
    body: Incoming,
    /// Returned to the pool when the body has ended.
    line: Option<Line>,
    home: Arc<ConnectionPool>,
}

#[derive(Default)]
struct Idle {
    lines: Vec<(Line, Instant)>,
    /// True if a background task closes idle connections.
    minded: bool,
}

/// One connection.
struct Line {
    sender: SendRequest<Payload>,
    /// `None` after the connection has ended.
    connection: Option<Box<Connection<Stream, Payload>>>,
}

type Stream = TokioIo<Box<dyn Io>>;

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

// === impl ConnectionPool ===

impl ConnectionPool {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, idle: Mutex::default() }
    }

    /// Sends a request and waits for the beginning of its answer.
    pub(crate) async fn send(
        self: &Arc<Self>,
        mut request: Box<Request<Payload>>,
    ) -> Result<Response<Flow>, LocalError> {
        loop {
            let (mut line, is_new) = match self.take() {
                Some(line) => (line, false),
                // Boxed, because it is rare, and larger than all the rest.
                None => (Box::pin(self.connect()).await?, true),
            };
            let Line { sender, connection } = &mut line;
            let mut answer = pin!(sender.try_send_request(*request));
            let driven = poll_fn(|cx| {
                drive(connection, cx);
                answer.as_mut().poll(cx)
            });
            match driven.await {
                Ok(response) => {
                    let home = Arc::clone(self);
                    return Ok(response.map(|body| Flow { body, line: Some(line), home }));
                }
                // The server closed an idle connection, and nothing of the request was sent.
                Err(mut error) => match error.take_message() {
                    Some(again) if !is_new => *request = again,
                    Some(_) | None => return Err(LocalError::Broken(error.into_error())),
                },
            }
        }
    }

    async fn connect(&self) -> Result<Line, LocalError> {
        let opening = async {
            let io: Box<dyn Io> = match &self.place {
                Place::Port(guard, port) => {
                    let addresses = guard.lookup(*port).await?;
                    let stream = TcpStream::connect(&*addresses).await?;
                    stream.set_nodelay(true)?;
                    Box::new(stream)
                }
                Place::Socket(path) => Box::new(UnixStream::connect(path).await?),
            };
            Ok::<_, LookupError>(io)
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it took too long");
        let opened = timeout(CONNECT_LIMIT, opening).await.map_err(late);
        let io = TokioIo::new(opened.map_err(LocalError::Connect)??);
        let shaken = Builder::new().max_buf_size(BUFFER).handshake(io).await;
        let (sender, connection) = shaken.map_err(LocalError::Broken)?;
        Ok(Line { sender, connection: Some(Box::new(connection)) })
    }

    /// Takes the idle connection that was used last.
    fn take(&self) -> Option<Line> {
        let mut idle = self.idle();
        while let Some((line, since)) = idle.lines.pop() {
            if since.elapsed() < KEEP && !line.sender.is_closed() {
                return Some(line);
            }
        }
        None
    }

    fn put(self: &Arc<Self>, line: Line) {
        let mut idle = self.idle();
        if idle.lines.len() >= MAX_IDLE {
            return;
        }
        idle.lines.push((line, Instant::now()));
        if !std::mem::replace(&mut idle.minded, true) {
            drop(idle);
            // A weak reference, so that the connections end with the pool.
            let home = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    sleep(KEEP).await;
                    if !home.upgrade().is_some_and(|home| home.sweep()) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes connections that were idle for too long; `true` if others remain.
    fn sweep(&self) -> bool {
        let mut idle = self.idle();
        idle.lines.retain(|(_, since)| since.elapsed() < KEEP);
        idle.minded = !idle.lines.is_empty();
        idle.minded
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl LocalError ===

impl From<LookupError> for LocalError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Refused(refusal) => Self::Refused(refusal),
            LookupError::Failed(error) => Self::Connect(error),
        }
    }
}

// === impl Flow ===

impl Flow {
    /// Reads the next piece of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, hyper::Error>> {
        loop {
            let mut frame = Pin::new(&mut self.body).poll_frame(cx);
            if frame.is_pending() {
                if let Some(line) = &mut self.line {
                    line.drive(cx);
                }
                frame = Pin::new(&mut self.body).poll_frame(cx);
            }
            match ready!(frame) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Some(Err(error)) => {
                    self.line = None;
                    return Poll::Ready(Err(error));
                }
                None => {
                    self.give_back(cx);
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }

    /// The length of the body, if known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// True if nothing more follows. The connection then returns to the pool.
    pub(crate) async fn has_ended(&mut self) -> bool {
        if !self.body.is_end_stream() {
            return false;
        }
        poll_fn(|cx| {
            self.give_back(cx);
            Poll::Ready(true)
        })
        .await
    }

    fn give_back(&mut self, cx: &mut Context<'_>) {
        let Some(mut line) = self.line.take() else { return };
        if !line.sender.is_ready() {
            line.drive(cx);
        }
        if line.sender.is_ready() {
            self.home.put(line);
        }
    }
}

// === impl Line ===

impl Line {
    fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.connection, cx);
    }
}

/// Polls a connection, so that it reads and writes as much as it can.
fn drive(connection: &mut Option<Box<Connection<Stream, Payload>>>, cx: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|line| Pin::new(&mut **line).poll(cx).is_ready());
    if ended {
        // Pending operations on the connection fail with the reason.
        *connection = None;
    }
}
