//! A server on the loopback that keeps what it was sent, byte for byte, and answers as it is told.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What is answered to a request.
pub(crate) type Reply = Box<dyn Fn(&Sent) -> String + Send + Sync>;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The first line.
    pub(crate) line: String,
    /// The other lines before the body, with their names in small letters.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

pub(crate) struct Web {
    pub(crate) origin: String,
    sent: Arc<Mutex<Vec<Sent>>>,
    task: JoinHandle<()>,
}

/// An answer with this status, content type and body.
pub(crate) fn reply(status: u16, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

// === impl Sent ===

impl Sent {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

// === impl Web ===

impl Web {
    pub(crate) async fn start(answer: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let (kept, answer) = (Arc::clone(&sent), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept), Arc::clone(&answer)));
            }
        });
        Self { origin, sent, task }
    }

    /// What came, oldest first.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// What came last.
    pub(crate) fn last(&self) -> Sent {
        self.sent().pop().unwrap()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, kept: Arc<Mutex<Vec<Sent>>>, answer: Arc<Reply>) {
    let mut bytes = Vec::new();
    while let Some(sent) = next(&mut stream, &mut bytes).await {
        kept.lock().unwrap().push(sent.clone());
        let text = answer(&sent);
        // Nothing at all is said by somebody who hangs up.
        if text.is_empty() || stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn next(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Sent> {
    let end = loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        match end {
            Some(end) => break end,
            None => more(stream, bytes).await?,
        }
    };
    let head = String::from_utf8(bytes.drain(..end + 4).collect()).unwrap();
    let mut lines = head.lines().filter(|line| !line.is_empty()).map(ToOwned::to_owned);
    let line = lines.next()?;
    let small = |line: String| {
        let (name, value) = line.split_once(':').unwrap();
        format!("{}:{value}", name.to_lowercase())
    };
    let mut sent = Sent { line, headers: lines.map(small).collect(), body: String::new() };
    let length: usize = sent.header("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < length {
        more(stream, bytes).await?;
    }
    sent.body = String::from_utf8_lossy(&bytes.drain(..length).collect::<Vec<_>>()).into_owned();
    Some(sent)
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(bytes).await.ok()?;
    (read > 0).then_some(())
}
