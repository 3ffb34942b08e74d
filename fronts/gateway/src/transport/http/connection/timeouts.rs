//! Closes a connection whose client stalls or is gone.
//!
//! Three waits are limited: for the next request, for the rest of a started head, and for the
//! client to read the written bytes. A timer is set once and reset only when it fires too early, so
//! that a request costs no timer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use crate::transport::http::HttpLimits;
use crate::transport::http::connection::connection_state::ConnectionState;
use crate::transport::http::connection::head_scan::HeadScan;

/// Probe interval for a client that has closed its sending side.
///
/// Such a client may have closed the complete connection. The two cases look alike until something
/// is sent, so the answer begins after this time, if only with white space.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// A stream with access to the state of its socket.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// The socket error after the client has rejected sent bytes, if any.
    fn broken(&self) -> Option<io::Error>;
}

/// A connection with timeouts.
pub(crate) struct Timed<S> {
    stream: S,
    scan: HeadScan,
    state: Arc<ConnectionState>,
    limits: HttpLimits,
    /// Next probe of a client that has closed its sending side; `None` while it may send more.
    closed: Option<Instant>,
    /// Start of the wait for the rest of a head; `None` if no head has started.
    head: Option<Instant>,
    /// Number of requests whose heads were read.
    requests: u32,
    quiet: Alarm,
    /// Start of the time in which the client has read nothing.
    stalled: Option<Instant>,
    stall: Alarm,
}

/// A lazily created timer.
#[derive(Default)]
struct Alarm(Option<Pin<Box<Sleep>>>);

// === impl Timed ===

impl<S> Timed<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>, limits: &HttpLimits) -> Self {
        Self {
            stream,
            scan: HeadScan::new(),
            state,
            limits: *limits,
            closed: None,
            // A new connection is expected to send a request.
            head: Some(Instant::now()),
            requests: 0,
            quiet: Alarm::default(),
            stalled: None,
            stall: Alarm::default(),
        }
    }

    /// Ready when the wait for a request has timed out.
    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.note_request();
        let idle = self.limits.idle_connection;
        match self.head {
            // No read is polled after an answer is sent, so the timer must be set before.
            None if self.state.is_busy() => {
                self.quiet.keep(idle, cx);
                Poll::Pending
            }
            None => self.quiet.poll(self.state.rested() + idle, cx),
            Some(since) => self.quiet.poll(since + self.limits.head_wait, cx),
        }
    }

    /// Records that a new request has started, whose head was therefore complete.
    fn note_request(&mut self) {
        let requests = self.state.requests();
        if requests != self.requests {
            self.requests = requests;
            self.head = None;
        }
    }

    /// Passes the result of a write through, with a timeout while it is pending.
    fn limit<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let since = *self.stalled.get_or_insert_with(Instant::now);
        ready!(self.stall.poll(since + self.limits.stall, cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: Socket> Timed<S> {
    /// Waits for the answer to a half-closed client, as long as the socket reports no error.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // After the end an incomplete request stays incomplete, and an answered one needs no wait.
        let is_whole = self.scan.is_between_requests();
        while let Some(look) = self.closed.filter(|_| is_whole && self.state.is_busy()) {
            if let Some(error) = self.stream.broken() {
                return Poll::Ready(Err(error));
            }
            ready!(self.quiet.poll(look, cx));
            self.state.probe();
            self.closed = Some(Instant::now() + PROBE_INTERVAL);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Socket> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closed.is_some() {
            return this.poll_closed(cx);
        }
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(cx, buffer) {
            this.note_request();
            let fresh = buffer.filled_mut().get_mut(before..).unwrap_or_default();
            let got_some = !fresh.is_empty();
            this.scan.scan(fresh);
            if got_some && this.scan.is_between_requests() {
                this.state.note_whole_request();
            } else if got_some {
                this.state.note_part_of_request();
            }
            // No probe can be sent within a streamed answer, and clients that close only their
            // sending side do it earlier.
            let may_read = !this.state.is_streaming();
            if !got_some && read.is_ok() && buffer.remaining() > 0 && may_read {
                this.closed = Some(Instant::now() + PROBE_INTERVAL);
                return this.poll_closed(cx);
            }
            if got_some && this.head.is_none() && !this.state.is_busy() {
                this.head = Some(Instant::now());
            }
            return Poll::Ready(read);
        }
        ready!(this.poll_quiet(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request came")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limit(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.limit(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            // A flush without pending bytes is no progress.
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            flushed @ (Poll::Ready(Err(_)) | Poll::Pending) => self.limit(flushed, cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limit(shut, cx)
    }
}

// === impl Socket ===

impl Socket for TcpStream {
    fn broken(&self) -> Option<io::Error> {
        self.take_error().unwrap_or_else(Some)
    }
}

impl Socket for Box<TlsStream<TcpStream>> {
    fn broken(&self) -> Option<io::Error> {
        self.get_ref().0.broken()
    }
}

// === impl Alarm ===

impl Alarm {
    /// Ready at `deadline`.
    fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        if timer.deadline() < deadline {
            // The timer was set for an earlier wait.
            timer.as_mut().reset(deadline);
            ready!(timer.as_mut().poll(cx));
        }
        Poll::Ready(())
    }

    /// Makes sure that the task is woken within `wait`.
    fn keep(&mut self, wait: Duration, cx: &mut Context<'_>) {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep(wait)));
        if timer.as_mut().poll(cx).is_ready() {
            timer.as_mut().reset(Instant::now() + wait);
            // The poll registers the waker.
            let _: Poll<()> = timer.as_mut().poll(cx);
        }
    }
}
