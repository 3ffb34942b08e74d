//! Standard input and output, without a thread for each where possible.
//!
//! A pipe is reopened, so that it is non-blocking for this process only and unchanged for other
//! processes. A socket, which Node gives its children, cannot be reopened: it is switched to
//! non-blocking, and back at the end. Files and terminals use tokio's threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Standard input.
pub struct Input(InputKind);

/// Standard output.
pub struct Output(OutputKind);

/// An output stream to a client.
pub trait Outlet: AsyncWrite + Unpin {
    /// True if the other side still reads.
    fn is_read(&self) -> bool;
}

enum InputKind {
    Pipe(pipe::Receiver),
    Socket(NonBlocking),
    Thread(tokio::io::Stdin),
}

enum OutputKind {
    Pipe(pipe::Sender),
    Socket(NonBlocking),
    Thread(tokio::io::Stdout),
}

/// A socket that is non-blocking until this is dropped.
struct NonBlocking {
    stream: UnixStream,
    /// A second handle, if the socket was blocking and must be restored.
    before: Option<StdStream>,
}

/// Opens standard input and output. Must be called once, within a tokio runtime.
pub fn standard() -> (Input, Output) {
    (Input::new(), Output::new())
}

// === impl Input ===

impl Input {
    fn new() -> Self {
        let stdin = rustix::stdio::stdin();
        Self(match kind(stdin) {
            Some(FileType::Fifo) => match pipe::OpenOptions::new().open_receiver(path(0)) {
                Ok(pipe) => InputKind::Pipe(pipe),
                Err(_) => InputKind::Thread(tokio::io::stdin()),
            },
            Some(FileType::Socket) => match NonBlocking::new(stdin) {
                Ok(socket) => InputKind::Socket(socket),
                Err(_) => InputKind::Thread(tokio::io::stdin()),
            },
            _ => InputKind::Thread(tokio::io::stdin()),
        })
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            InputKind::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            InputKind::Socket(socket) => Pin::new(&mut socket.stream).poll_read(context, buffer),
            InputKind::Thread(stdin) => Pin::new(stdin).poll_read(context, buffer),
        }
    }
}

// === impl Output ===

impl Output {
    fn new() -> Self {
        let stdout = rustix::stdio::stdout();
        Self(match kind(stdout) {
            Some(FileType::Fifo) => match pipe::OpenOptions::new().open_sender(path(1)) {
                Ok(pipe) => OutputKind::Pipe(pipe),
                Err(_) => OutputKind::Thread(tokio::io::stdout()),
            },
            Some(FileType::Socket) => match NonBlocking::new(stdout) {
                Ok(socket) => OutputKind::Socket(socket),
                Err(_) => OutputKind::Thread(tokio::io::stdout()),
            },
            _ => OutputKind::Thread(tokio::io::stdout()),
        })
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            OutputKind::Pipe(pipe) => Pin::new(pipe).poll_write(context, bytes),
            OutputKind::Socket(socket) => Pin::new(&mut socket.stream).poll_write(context, bytes),
            OutputKind::Thread(stdout) => Pin::new(stdout).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            OutputKind::Pipe(pipe) => Pin::new(pipe).poll_write_vectored(context, slices),
            OutputKind::Socket(socket) => {
                Pin::new(&mut socket.stream).poll_write_vectored(context, slices)
            }
            OutputKind::Thread(stdout) => Pin::new(stdout).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            OutputKind::Pipe(pipe) => pipe.is_write_vectored(),
            OutputKind::Socket(socket) => socket.stream.is_write_vectored(),
            OutputKind::Thread(stdout) => stdout.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            OutputKind::Pipe(pipe) => Pin::new(pipe).poll_flush(context),
            OutputKind::Socket(socket) => Pin::new(&mut socket.stream).poll_flush(context),
            OutputKind::Thread(stdout) => Pin::new(stdout).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Other processes may share it, so it is not closed.
        self.poll_flush(context)
    }
}

impl Outlet for Output {
    fn is_read(&self) -> bool {
        let stdout = rustix::stdio::stdout();
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        // If the poll fails, the client counts as reading; the next write reports an error.
        let asked = rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let [stdout] = polled;
        asked.is_err() || !stdout.revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}

// === impl NonBlocking ===

impl NonBlocking {
    fn new(handle: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(handle)?;
        let blocks = !flags.contains(rustix::fs::OFlags::NONBLOCK);
        let stream = StdStream::from(handle.try_clone_to_owned()?);
        // Fails for sockets of other families.
        stream.local_addr()?;
        let before = if blocks { Some(stream.try_clone()?) } else { None };
        stream.set_nonblocking(true)?;
        match UnixStream::from_std(stream) {
            Ok(stream) => Ok(Self { stream, before }),
            Err(error) => {
                restore(before.as_ref());
                Err(error)
            }
        }
    }
}

impl Drop for NonBlocking {
    fn drop(&mut self) {
        restore(self.before.as_ref());
    }
}

fn restore(before: Option<&StdStream>) {
    if let Some(stream) = before
        && let Err(error) = stream.set_nonblocking(false)
    {
        tracing::debug!(%error, "the mode of a standard stream could not be changed");
    }
}

fn kind(handle: impl AsFd) -> Option<FileType> {
    let stat = rustix::fs::fstat(handle).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// The path that reopens a standard stream.
fn path(number: u8) -> String {
    format!("/proc/self/fd/{number}")
}
