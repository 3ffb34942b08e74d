//! A minimal HTTP client that shows the bytes on the wire.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout of each step of a test.
const LIMIT: Duration = Duration::from_secs(20);

/// A connection.
pub(crate) struct Peer<S = TcpStream> {
    stream: S,
    read: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: String,
}

/// A request under construction.
#[derive(Clone)]
pub(crate) struct Ask {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

pub(crate) fn ask(method: &str, path: &str) -> Ask {
    Ask {
        line: format!("{method} {path} HTTP/1.1"),
        headers: vec![("Host".to_owned(), "localhost".to_owned())],
        body: String::new(),
    }
}

/// A message for `/mcp`, with the headers that every client sends.
pub(crate) fn post(path: &str, body: &str) -> Ask {
    let both = "application/json, text/event-stream";
    ask("POST", path).with("Content-Type", "application/json").with("Accept", both).body(body)
}

// === impl Ask ===

impl Ask {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a header, next to one of the same name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Posts the message to another path.
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.line = format!("POST {path} HTTP/1.1");
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        let own_length =
            self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if !self.body.is_empty() && !own_length {
            write!(text, "Content-Length: {}\r\n", self.body.len()).unwrap();
        }
        write!(text, "\r\n{}", self.body).unwrap();
        text
    }
}

// === impl Head ===

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

// === impl Peer ===

impl Peer {
    pub(crate) async fn new(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    /// Resets the connection when it is dropped.
    pub(crate) fn resets(&self) {
        self.stream.set_zero_linger().unwrap();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Sends a request and reads all of its answer.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Answer {
        self.send(&ask.text()).await;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Closes our side; the answer can still be read.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let mut body = Vec::new();
        if let Some(length) = head.get("content-length") {
            let length: usize = length.parse().unwrap();
            while self.read.len() < length {
                assert!(self.more().await, "the body broke off");
            }
            body.extend(self.read.drain(..length));
        } else if head.get("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        }
        Answer { head, body: String::from_utf8(body).unwrap() }
    }

    pub(crate) async fn head(&mut self) -> Head {
        let text = self.until(b"\r\n\r\n").await.unwrap();
        let mut lines = text.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        };
        Head { status, headers: lines.filter(|line| !line.is_empty()).map(header).collect() }
    }

    /// The next piece of a body without a length; `None` at its end, or when the connection ends.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.until(b"\r\n").await?;
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        while self.read.len() < size + 2 {
            if !self.more().await {
                return None;
            }
        }
        let chunk: Vec<u8> = self.read.drain(..size + 2).take(size).collect();
        (size > 0).then_some(chunk)
    }

    /// The next event of a stream that has data; `None` after the last one.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            let event = self.any_event().await?;
            if !event.ends_with("data:") {
                return Some(event);
            }
        }
    }

    /// The next event of a stream, without keep-alives; `None` after the last one.
    pub(crate) async fn any_event(&mut self) -> Option<String> {
        let mut event = String::new();
        loop {
            event.push_str(std::str::from_utf8(&self.chunk().await?).unwrap());
            if event == ":\n\n" {
                event.clear();
            } else if event.ends_with("\n\n") {
                return Some(event.trim_end().to_owned());
            }
        }
    }

    /// The first event of a stream.
    pub(crate) async fn event_after_head(&mut self) -> String {
        assert_eq!(self.head().await.get("content-type"), Some("text/event-stream"));
        self.event().await.unwrap()
    }

    /// True if the connection ends without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    /// True if all bytes until the end are HTTP.
    pub(crate) async fn starts_with_http(&mut self) -> bool {
        while self.more().await {}
        self.read.starts_with(b"HTTP/")
    }

    async fn until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                let text: Vec<u8> = self.read.drain(..at + end.len()).collect();
                return Some(String::from_utf8(text).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads more bytes; `false` at the end.
    async fn more(&mut self) -> bool {
        self.read.reserve(16 * 1024);
        let read = timeout(LIMIT, self.stream.read_buf(&mut self.read)).await;
        read.unwrap().is_ok_and(|count| count > 0)
    }
}
