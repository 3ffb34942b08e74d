//! Our own standard streams, without a thread for each where the system lets us.
//!
//! A pipe is opened anew, so that it does not block for us and stays as it is for everybody else
//! who has it. A socket, which is what Node gives its children, cannot be opened anew: it is
//! switched over, and back at the end. For files and terminals, tokio's threads do.

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

/// Our standard input.
pub struct Input(In);

/// Our standard output.
pub struct Output(To);

/// A stream to a client.
pub trait Outlet: AsyncWrite + Unpin {
    /// Whether the other side still reads.
    fn is_read(&self) -> bool;
}

enum In {
    Pipe(pipe::Receiver),
    Socket(Switched),
    Thread(tokio::io::Stdin),
}

enum To {
    Pipe(pipe::Sender),
    Socket(Switched),
    Thread(tokio::io::Stdout),
}

/// A socket that does not block for as long as we have it.
struct Switched {
    stream: UnixStream,
    /// Another handle of it, if it did block and has to do so again.
    before: Option<StdStream>,
}

/// Our standard input and output. Must be called within a tokio runtime, and once.
pub fn standard() -> (Input, Output) {
    (Input::new(), Output::new())
}

// === impl Input ===

impl Input {
    fn new() -> Self {
        let stdin = rustix::stdio::stdin();
        Self(match kind(stdin) {
            Some(FileType::Fifo) => match pipe::OpenOptions::new().open_receiver(path(0)) {
                Ok(pipe) => In::Pipe(pipe),
                Err(_) => In::Thread(tokio::io::stdin()),
            },
            Some(FileType::Socket) => match Switched::new(stdin) {
                Ok(socket) => In::Socket(socket),
                Err(_) => In::Thread(tokio::io::stdin()),
            },
            _ => In::Thread(tokio::io::stdin()),
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
            In::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            In::Socket(socket) => Pin::new(&mut socket.stream).poll_read(context, buffer),
            In::Thread(stdin) => Pin::new(stdin).poll_read(context, buffer),
        }
    }
}

// === impl Output ===

impl Output {
    fn new() -> Self {
        let stdout = rustix::stdio::stdout();
        Self(match kind(stdout) {
            Some(FileType::Fifo) => match pipe::OpenOptions::new().open_sender(path(1)) {
                Ok(pipe) => To::Pipe(pipe),
                Err(_) => To::Thread(tokio::io::stdout()),
            },
            Some(FileType::Socket) => match Switched::new(stdout) {
                Ok(socket) => To::Socket(socket),
                Err(_) => To::Thread(tokio::io::stdout()),
            },
            _ => To::Thread(tokio::io::stdout()),
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
            To::Pipe(pipe) => Pin::new(pipe).poll_write(context, bytes),
            To::Socket(socket) => Pin::new(&mut socket.stream).poll_write(context, bytes),
            To::Thread(stdout) => Pin::new(stdout).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            To::Pipe(pipe) => Pin::new(pipe).poll_write_vectored(context, slices),
            To::Socket(socket) => Pin::new(&mut socket.stream).poll_write_vectored(context, slices),
            To::Thread(stdout) => Pin::new(stdout).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            To::Pipe(pipe) => pipe.is_write_vectored(),
            To::Socket(socket) => socket.stream.is_write_vectored(),
            To::Thread(stdout) => stdout.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            To::Pipe(pipe) => Pin::new(pipe).poll_flush(context),
            To::Socket(socket) => Pin::new(&mut socket.stream).poll_flush(context),
            To::Thread(stdout) => Pin::new(stdout).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Others may have it too; it is theirs to close.
        self.poll_flush(context)
    }
}

impl Outlet for Output {
    fn is_read(&self) -> bool {
        let stdout = rustix::stdio::stdout();
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        // When the poll fails, the client counts as reading; the next write finds out.
        let asked = rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let [stdout] = polled;
        asked.is_err() || !stdout.revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}

// === impl Switched ===

impl Switched {
    fn new(handle: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(handle)?;
        let blocks = !flags.contains(rustix::fs::OFlags::NONBLOCK);
        let stream = StdStream::from(handle.try_clone_to_owned()?);
        // Fails for the sockets of other families.
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

impl Drop for Switched {
    fn drop(&mut self) {
        restore(self.before.as_ref());
    }
}

fn restore(before: Option<&StdStream>) {
    if let Some(stream) = before
        && let Err(error) = stream.set_nonblocking(false)
    {
        tracing::debug!(%error, "a standard stream stays as it is");
    }
}

fn kind(handle: impl AsFd) -> Option<FileType> {
    let stat = rustix::fs::fstat(handle).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Where a standard stream can be opened anew.
fn path(number: u8) -> String {
    format!("/proc/self/fd/{number}")
}
