//! A server on the loopback that answers as its script says.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// A scripted server. It ends when it is dropped, with all of its connections.
pub(crate) struct Peer {
    pub(crate) origin: String,
    state: Arc<State>,
    task: AbortHandle,
}

struct State {
    script: Box<dyn Fn(&Seen) -> Answer + Send + Sync>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    news: Notify,
}

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    /// By their names in lower case.
    pub(crate) headers: HashMap<String, String>,
    /// The message, `null` without one.
    pub(crate) body: Value,
    /// Which of the connections it came on.
    pub(crate) connection: usize,
    /// How many requests of the same verb and JSON-RPC method came before.
    pub(crate) before: usize,
}

/// What goes back.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) steps: Vec<Step>,
}

/// A part of a body, which is sent in chunks.
#[derive(Clone)]
pub(crate) enum Step {
    Send(String),
    /// The same, cut wherever.
    Raw(Vec<u8>),
    Wait(Duration),
    /// Goes on when somebody says so.
    Until(Arc<Notify>),
    /// Sends whatever is fed to it, until the feeder goes away.
    Feed(Feed),
    /// Closes the connection in the middle of everything.
    Cut,
    /// Says nothing more until the other side goes away.
    Hold,
}

/// The end of a queue of text that a stream takes.
pub(crate) type Feed = Arc<Mutex<Option<mpsc::UnboundedReceiver<String>>>>;

// === impl Peer ===

impl Peer {
    pub(crate) async fn new(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let state = State::new(script);
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { origin, state, task: task.abort_handle() }
    }

    /// The same behind a socket in the file system.
    pub(crate) fn on_socket(
        path: &std::path::Path,
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let state = State::new(script);
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        let origin = format!("unix://{}:", path.display());
        Self { origin, state, task: task.abort_handle() }
    }

    /// Ends in the middle of everything.
    pub(crate) fn die(&self) {
        self.task.abort();
    }

    /// Everything that came in.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// The requests of this kind: a verb, or a JSON-RPC method.
    pub(crate) fn of(&self, kind: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.verb == kind || seen.method() == kind).collect()
    }

    /// Waits until this many requests of this kind have come in.
    pub(crate) async fn receives(&self, kind: &str, count: usize) -> Vec<Seen> {
        loop {
            let news = self.state.news.notified();
            let seen = self.of(kind);
            if seen.len() >= count {
                return seen;
            }
            tokio::time::timeout(Duration::from_secs(20), news).await.unwrap();
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.die();
    }
}

// === impl State ===

impl State {
    fn new(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        let script = Box::new(script);
        let (seen, connections) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { script, seen, connections, news: Notify::new() })
    }

    fn note(&self, mut request: Seen) -> Seen {
        let mut seen = self.seen.lock().unwrap();
        let same = |old: &&Seen| old.verb == request.verb && old.method() == request.method();
        request.before = seen.iter().filter(same).count();
        seen.push(request.clone());
        drop(seen);
        self.news.notify_waiters();
        request
    }
}

// === impl Seen ===

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.body.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// A result for this request, as a message.
    pub(crate) fn result(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.body.get("id"), "result": result}).to_string()
    }

    /// An error for this request, as a message.
    pub(crate) fn error(&self, code: i64, data: &Value) -> String {
        let error = json!({"code": code, "message": "no", "data": data});
        json!({"jsonrpc": "2.0", "id": self.body.get("id"), "error": error}).to_string()
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), steps: Vec::new() }
    }

    pub(crate) fn json(body: impl Into<String>) -> Self {
        Self::typed("application/json", body)
    }

    pub(crate) fn typed(kind: &str, body: impl Into<String>) -> Self {
        Self::status(200).with("content-type", kind).then(Step::Send(body.into()))
    }

    pub(crate) fn events(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::status(200).with("content-type", "text/event-stream") }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn coded(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

// === impl Step ===

impl Step {
    /// An event with a message in it.
    pub(crate) fn event(data: &str) -> Self {
        Self::Send(format!("data: {data}\n\n"))
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let connection = state.connections.fetch_add(1, Ordering::Relaxed);
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let request = Seen { connection, ..request };
        let request = state.note(request);
        let answer = (state.script)(&request);
        if write(&mut stream, answer).await.is_none() {
            return;
        }
    }
}

async fn read(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split(' ');
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Seen { verb, path, headers, body, connection: 0, before: 0 })
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Option<()> {
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    stream.write_all(&chunk).await.ok()?;
    stream.flush().await.ok()
}

/// Writes an answer; `None` when the connection is over.
async fn write(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answer: Answer) -> Option<()> {
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", answer.status);
    for (name, value) in &answer.headers {
        write!(head, "{name}: {value}\r\n").ok()?;
    }
    if matches!(answer.steps.first(), Some(Step::Cut)) {
        return None;
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.ok()?;
    stream.flush().await.ok()?;
    for step in answer.steps {
        take(stream, step).await?;
    }
    stream.write_all(b"0\r\n\r\n").await.ok()?;
    stream.flush().await.ok()
}

/// Takes one step; `None` when the connection is over.
async fn take(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), step: Step) -> Option<()> {
    match step {
        Step::Send(text) => send(stream, text.as_bytes()).await,
        Step::Raw(bytes) => send(stream, &bytes).await,
        Step::Feed(feed) => {
            let mut feed = feed.lock().unwrap().take()?;
            while let Some(text) = feed.recv().await {
                send(stream, text.as_bytes()).await?;
            }
            Some(())
        }
        Step::Wait(time) => {
            tokio::time::sleep(time).await;
            Some(())
        }
        Step::Until(notify) => {
            notify.notified().await;
            Some(())
        }
        Step::Cut => None,
        Step::Hold => {
            drop(stream.read_u8().await);
            None
        }
    }
}
