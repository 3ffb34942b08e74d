//! HTTP as little as clients need it, on connections that stay open.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection to the gateway. It closes when it is dropped.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    /// What came of the body and was not yet looked at.
    body: Vec<u8>,
}

/// How an answer begins.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) is_events: bool,
    length: Option<usize>,
}

// === impl Connection ===

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), address: address.to_owned(), body: Vec::new() }
    }

    /// Sends a request with these further lines in its head.
    pub(crate) async fn send(&mut self, line: &str, lines: &str, body: &str) {
        let text = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{lines}\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// How the answer begins.
    pub(crate) async fn head(&mut self) -> Head {
        let status = self.line().await.split(' ').nth(1).unwrap().parse().unwrap();
        let mut head = Head { status, session: None, is_events: false, length: None };
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { return head };
            match name.to_ascii_lowercase().as_str() {
                "mcp-session-id" => head.session = Some(value.to_owned()),
                "content-type" => head.is_events = value.starts_with("text/event-stream"),
                "content-length" => head.length = value.parse().ok(),
                _ => {}
            }
        }
    }

    /// A body whose length is known.
    pub(crate) async fn whole(&mut self, head: &Head) -> String {
        let mut body = vec![0; head.length.unwrap()];
        self.stream.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// The data of the next event; `None` when there will be none.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            while let Some(end) = self.body.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.body.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                // Some say only where to come back to.
                if let Some(data) = data.filter(|data| !data.is_empty()) {
                    return Some(data.to_owned());
                }
            }
            let size = usize::from_str_radix(&self.line().await, 16).unwrap();
            let mut chunk = vec![0; size];
            self.stream.read_exact(&mut chunk).await.unwrap();
            self.line().await;
            if size == 0 {
                return None;
            }
            self.body.extend(chunk);
        }
    }

    /// All messages that answer a request: one, those of a list, or those of a stream.
    pub(crate) async fn messages(&mut self) -> Vec<Value> {
        let head = self.head().await;
        let mut messages = Vec::new();
        if head.is_events {
            while let Some(data) = self.event().await {
                messages.push(serde_json::from_str(&data).unwrap());
            }
            return messages;
        }
        let body = self.whole(&head).await;
        match serde_json::from_str(&body) {
            Ok(Value::Array(list)) => list,
            Ok(message) => vec![message],
            Err(_) => {
                assert_eq!((head.status, body.as_str()), (202, ""));
                Vec::new()
            }
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        assert!(line.ends_with("\r\n"), "the connection has ended: {line:?}");
        line.trim_end().to_owned()
    }
}
