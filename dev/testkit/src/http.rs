//! A raw HTTP client: requests are sent as they are written, and answers read as they come.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::time::timeout;

use crate::fail::OrFail as _;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(50);

/// A connection.
pub struct HttpConnection<S = TcpStream> {
    stream: S,
    read: Vec<u8>,
    /// The part of a stream of events that was read but not taken.
    events: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
}

/// An answer, all of it.
#[derive(Debug)]
pub struct HttpAnswer {
    /// The head.
    pub head: Head,
    /// The body.
    pub body: String,
}

/// A request that is put together.
#[derive(Clone)]
pub struct HttpRequest {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// A request without a body.
pub fn request(method: &str, path: &str) -> HttpRequest {
    HttpRequest {
        line: format!("{method} {path} HTTP/1.1"),
        headers: vec![("Host".to_owned(), "localhost".to_owned())],
        body: String::new(),
    }
}

/// A message that is posted, with the headers that every client sends.
pub fn post(path: &str, body: &str) -> HttpRequest {
    message("POST", path, body)
}

/// A request with the headers that every client sends.
pub fn message(method: &str, path: &str, body: &str) -> HttpRequest {
    let both = "application/json, text/event-stream";
    request(method, path).with("Content-Type", "application/json").with("Accept", both).body(body)
}

/// Sends a request on a connection of its own, and returns the whole answer as it came.
#[track_caller]
pub fn exchange(address: &str, request: HttpRequest) -> String {
    let mut stream = std::net::TcpStream::connect(address).or_fail("no connection");
    stream.set_read_timeout(Some(LIMIT)).or_fail("no timeout");
    let text = request.with("Host", address).with("Connection", "close").text();
    stream.write_all(text.as_bytes()).or_fail("the request cannot be sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).or_fail("the answer broke off");
    answer
}

// === impl HttpRequest ===

impl HttpRequest {
    /// Sets a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a header, even if there is one of that name.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Posts the message to another path.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        self.line = format!("POST {path} HTTP/1.1");
        self
    }

    /// Removes a header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// The request as it is sent.
    pub fn text(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        let own_length =
            self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if !self.body.is_empty() && !own_length {
            text.extend(["Content-Length: ", &self.body.len().to_string(), "\r\n"]);
        }
        text.extend(["\r\n", &self.body]);
        text
    }
}

// === impl Head ===

impl Head {
    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

// === impl HttpConnection ===

impl HttpConnection {
    /// Connects to an address.
    pub async fn new(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).await.or_fail("no connection");
        stream.set_nodelay(true).or_fail("no option");
        Self::over(stream)
    }

    /// Makes the connection reset when it is dropped.
    pub fn resets(&self) {
        self.stream.set_zero_linger().or_fail("no option");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> HttpConnection<S> {
    /// Uses a connection that is open.
    pub fn over(stream: S) -> Self {
        Self { stream, read: Vec::new(), events: Vec::new() }
    }

    /// Sends a request and reads all of its answer.
    pub async fn ask(&mut self, request: &HttpRequest) -> HttpAnswer {
        self.send(&request.text()).await;
        self.answer().await
    }

    /// Sends text as it is.
    pub async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.or_fail("the request cannot be sent");
    }

    /// Closes our side; the answer can still be read.
    pub async fn half_close(&mut self) {
        self.stream.shutdown().await.or_fail("the connection is gone");
    }

    /// Reads a whole answer.
    pub async fn answer(&mut self) -> HttpAnswer {
        let head = self.head().await;
        let body = self.body(&head).await;
        HttpAnswer { head, body }
    }

    /// Reads the whole body behind this head.
    ///
    /// # Panics
    /// If the connection ends before the body.
    pub async fn body(&mut self, head: &Head) -> String {
        let mut body = Vec::new();
        if let Some(length) = head.get("content-length") {
            let length: usize = length.parse().or_fail("the length is not a number");
            while self.read.len() < length {
                assert!(self.more().await, "the body broke off");
            }
            body.extend(self.read.drain(..length));
        } else if head.get("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        }
        text(body)
    }

    /// Reads the head of an answer.
    pub async fn head(&mut self) -> Head {
        let text = self.until(b"\r\n\r\n").await.or_fail("the connection has ended");
        let mut lines = text.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").or_fail("a header has no value");
            (name.to_owned(), value.to_owned())
        };
        Head {
            status: status.or_fail("the answer has no status"),
            headers: lines.filter(|line| !line.is_empty()).map(header).collect(),
        }
    }

    /// The next piece of a body without a length; `None` at its end, or when the connection ends.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.until(b"\r\n").await?;
        let size = usize::from_str_radix(size.trim(), 16).or_fail("a chunk has no size");
        while self.read.len() < size + 2 {
            if !self.more().await {
                return None;
            }
        }
        let chunk: Vec<u8> = self.read.drain(..size + 2).take(size).collect();
        (size > 0).then_some(chunk)
    }

    /// The next event of a stream that says something; `None` when there are no more.
    pub async fn event(&mut self) -> Option<String> {
        loop {
            let event = self.any_event().await?;
            if !event.ends_with("data:") {
                return Some(event);
            }
        }
    }

    /// The next event of a stream, without its keep-alives; `None` when there are no more.
    pub async fn any_event(&mut self) -> Option<String> {
        loop {
            while let Some(end) = self.events.windows(2).position(|pair| pair == b"\n\n") {
                let event = text(self.events.drain(..end + 2).collect());
                if event != ":\n\n" {
                    return Some(event.trim_end().to_owned());
                }
            }
            let chunk = self.chunk().await?;
            self.events.extend(chunk);
        }
    }

    /// The first event of a stream.
    ///
    /// # Panics
    /// If the answer is not a stream.
    pub async fn event_after_head(&mut self) -> String {
        assert_eq!(self.head().await.get("content-type"), Some("text/event-stream"));
        self.event().await.or_fail("the stream has ended")
    }

    /// True if the connection ends without another byte.
    pub async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    /// Reads to the end; true if it is HTTP.
    pub async fn starts_with_http(&mut self) -> bool {
        while self.more().await {}
        self.read.starts_with(b"HTTP/")
    }

    async fn until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                return Some(text(self.read.drain(..at + end.len()).collect()));
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads on; `false` at the end.
    async fn more(&mut self) -> bool {
        self.read.reserve(16 * 1024);
        let read = timeout(LIMIT, self.stream.read_buf(&mut self.read)).await;
        read.or_fail("nothing came in time").is_ok_and(|count| count > 0)
    }
}

#[track_caller]
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).or_fail("not UTF-8")
}
