//! The smallest possible client: raw lines over the pipes of a child, nothing but the standard
//! library.
//!
//! It understands no JSON. Its requests have ids that occur nowhere else, and a response is the
//! line that contains one.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a response may take.
const LIMIT: Duration = Duration::from_mins(1);

/// A server that runs, killed when this is dropped.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    asked: u32,
}

/// Starts a server, shakes hands, calls one tool, and kills the server.
///
/// `arguments` is JSON, and so is the answer: the whole line of the response.
pub fn call(command: Command, tool: &str, arguments: &str) -> io::Result<String> {
    let mut peer = Peer::spawn(command)?;
    peer.initialize()?;
    peer.call(tool, arguments)
}

/// Has the gateway at a socket run a command: all lines that come back, up to the answer.
pub fn run_in(socket: &Path, order: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"shell/run","params":"#;
    stream.write_all(format!("{request}{order}}}\n").as_bytes())?;
    let (mut lines, mut reading) = (String::new(), BufReader::new(stream));
    loop {
        let begun = lines.len();
        if reading.read_line(&mut lines)? == 0 {
            return Err(io::Error::other("the gateway is gone"));
        }
        if lines.get(begun..).is_some_and(|line| line.starts_with(r#"{"jsonrpc":"2.0","id":1,"#)) {
            return Ok(lines);
        }
    }
}

// === impl Peer ===

impl Peer {
    /// Starts a server.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let (sender, lines) = channel();
        thread::Builder::new().name("peer".to_owned()).spawn(move || {
            let lines = stdout.into_iter().flat_map(|stdout| stdout.split(b'\n'));
            let lines = lines.map_while(Result::ok);
            let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
            // Ends with the server's output, or with the peer.
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        })?;
        Ok(Self { child, stdin, lines, asked: 0 })
    }

    /// The process of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Shakes hands, as a client of 2025-11-25 without any capabilities.
    pub fn initialize(&mut self) -> io::Result<String> {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"thin","version":"1"}}"#;
        let answer = self.request("initialize", params)?;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(answer)
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, arguments: &str) -> io::Result<String> {
        // A name needs no escapes that Rust and JSON write differently.
        self.request("tools/call", &format!(r#"{{"name":{tool:?},"arguments":{arguments}}}"#))
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, method: &str, params: &str) -> io::Result<String> {
        self.asked += 1;
        let id = format!("\"thin-peer-{}\"", self.asked);
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))?;
        self.next(|line| line.contains(&id))
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // In one write: a pipe takes a line whole, and the server wakes up once.
        stdin.write_all(format!("{line}\n").as_bytes())
    }

    /// The next line that fits; lines before it are dropped.
    pub fn next(&self, fits: impl Fn(&str) -> bool) -> io::Result<String> {
        let end = Instant::now() + LIMIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if fits(&line) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::TimedOut.into()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }

    /// Closes the server's input and waits for its end: its exit code, or `None` for a signal.
    pub fn close(mut self) -> io::Result<Option<i32>> {
        drop(self.stdin.take());
        let end = Instant::now() + LIMIT;
        // The output ends with the server; what it still says is dropped.
        while self.lines.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok() {}
        let mut status = None;
        let ended = crate::process::wait_until(
            || {
                status = self.child.try_wait().ok().flatten();
                status.is_some()
            },
            end.saturating_duration_since(Instant::now()),
        );
        if ended {
            Ok(status.and_then(|status| status.code()))
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
