//! One client: what it can do, what it was asked, what it runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::lock;
use super::message::Revision;
use super::seal::random;
use super::stream::Stream;

/// How many streams of a session can be taken up again.
const KEPT: usize = 64;

/// The levels of log messages, least severe first.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A connection of a client. Over modern HTTP, which has none, each request has one of its own.
pub(super) struct Session {
    pub(super) id: String,
    /// Where messages go that belong to no request.
    pub(super) main: Arc<Stream>,
    /// The visits to URLs that were asked for, and whether they were made.
    pub(super) visits: Mutex<HashMap<String, Visit>>,
    /// The resources whose changes the client wants to hear of.
    pub(super) subscribed: Mutex<HashSet<String>>,
    client: Mutex<Option<Client>>,
    /// Who waits for the answer to a request of ours, by its id.
    pending: Mutex<HashMap<String, oneshot::Sender<Result<Value, Value>>>>,
    /// The requests that run, and how each is told that it is cancelled.
    running: Mutex<HashMap<String, watch::Sender<Cancelled>>>,
    streams: Mutex<VecDeque<Arc<Stream>>>,
    next: AtomicU64,
}

/// What a client said in its handshake.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) revision: Revision,
    pub(super) capabilities: Value,
    /// The least severe level of log messages it wants.
    pub(super) level: String,
}

/// Whether a person has been to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    Asked,
    Made,
}

/// Whether a request is still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    No,
    Yes,
}

/// Takes a request off the list of those that run.
pub(super) struct Running {
    session: Arc<Session>,
    id: String,
    pub(super) cancelled: watch::Receiver<Cancelled>,
}

/// Cancels everything in a session when it is dropped: whoever was served has gone away.
pub(super) struct Abandon(pub(super) Arc<Session>);

// === impl Session ===

impl Session {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            id: format!("{:016x}{:016x}", random(), random()),
            main: Stream::new(0),
            visits: Mutex::default(),
            subscribed: Mutex::default(),
            client: Mutex::default(),
            pending: Mutex::default(),
            running: Mutex::default(),
            streams: Mutex::default(),
            next: AtomicU64::new(1),
        })
    }

    pub(super) fn client(&self) -> Option<Client> {
        lock(&self.client).clone()
    }

    pub(super) fn greet(&self, client: Client) {
        *lock(&self.client) = Some(client);
    }

    pub(super) fn set_level(&self, level: &str) -> Result<(), UnknownLevel> {
        let known = LEVELS.contains(&level).then(|| level.to_owned()).ok_or(UnknownLevel)?;
        if let Some(client) = lock(&self.client).as_mut() {
            client.level = known;
        }
        Ok(())
    }

    /// A stream for the messages of one request.
    pub(super) fn open(&self) -> Arc<Stream> {
        let stream = Stream::new(self.next.fetch_add(1, Ordering::Relaxed));
        let mut streams = lock(&self.streams);
        streams.push_back(Arc::clone(&stream));
        while streams.len() > KEPT {
            streams.pop_front();
        }
        drop(streams);
        stream
    }

    /// The stream of that number, to take it up again.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        if number == 0 {
            return Some(Arc::clone(&self.main));
        }
        lock(&self.streams).iter().find(|stream| stream.number == number).cloned()
    }

    /// Sends a request of our own; its answer comes through the receiver.
    pub(super) fn ask(
        &self,
        out: &Stream,
        method: &str,
        params: &Value,
    ) -> oneshot::Receiver<Result<Value, Value>> {
        let id = format!("ask-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        lock(&self.pending).insert(json!(id).to_string(), sender);
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if params != &json!({}) {
            super::message::set(&mut line, "params", params.clone());
        }
        out.push(line.to_string());
        receiver
    }

    pub(super) fn answered(&self, id: &Value, said: Result<Value, Value>) {
        if let Some(waiting) = lock(&self.pending).remove(&id.to_string()) {
            // Whoever asked may have given up.
            drop(waiting.send(said));
        }
    }

    pub(super) fn run(self: &Arc<Self>, id: &Value) -> Running {
        let (sender, cancelled) = watch::channel(Cancelled::No);
        let id = id.to_string();
        lock(&self.running).insert(id.clone(), sender);
        Running { session: Arc::clone(self), id, cancelled }
    }

    /// Takes note of what the client tells.
    pub(super) fn heed(&self, method: &str, params: &Value) {
        if let ("notifications/cancelled", Some(id)) = (method, params.get("requestId")) {
            self.cancel(id);
        }
    }

    fn cancel(&self, id: &Value) {
        if let Some(running) = lock(&self.running).get(&id.to_string()) {
            running.send_replace(Cancelled::Yes);
        }
    }

    /// Ends all that the client could still hear from us.
    pub(super) fn close(&self) {
        self.cancel_all();
        self.main.end(None);
        for stream in lock(&self.streams).drain(..) {
            stream.end(None);
        }
    }

    fn cancel_all(&self) {
        for running in lock(&self.running).values() {
            running.send_replace(Cancelled::Yes);
        }
    }
}

/// A level of log messages that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("no such level")]
pub(super) struct UnknownLevel;

/// Whether a message of a level is heard by who wants that least level.
pub(super) fn heard(level: &str, least: &str) -> bool {
    let rank = |name: &str| LEVELS.iter().position(|level| *level == name);
    rank(level) >= rank(least)
}

// === impl Running ===

impl Running {
    /// Waits until the request is cancelled.
    pub(super) async fn over(cancelled: &watch::Receiver<Cancelled>) {
        let mut cancelled = cancelled.clone();
        // The sender lives as long as the request; without it nobody waits any more.
        if cancelled.wait_for(|state| *state == Cancelled::Yes).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.session.running).remove(&self.id);
    }
}

// === impl Abandon ===

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.cancel_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_lets_through_what_is_at_least_as_severe() {
        assert!(heard("error", "info") && heard("info", "info") && heard("debug", "debug"));
        assert!(!heard("debug", "info") && !heard("warning", "emergency"));
    }

    #[tokio::test]
    async fn an_answer_reaches_who_asked_and_others_are_ignored() {
        let session = Session::new();
        let said = session.ask(&session.main, "roots/list", &json!({}));
        let asked = session.main.reader().next().await.unwrap();
        assert_eq!(&*asked.line, r#"{"jsonrpc":"2.0","id":"ask-1","method":"roots/list"}"#);
        session.answered(&json!("other"), Ok(json!(1)));
        session.answered(&json!("ask-1"), Ok(json!(2)));
        assert_eq!(said.await.unwrap(), Ok(json!(2)));
    }

    #[tokio::test]
    async fn whoever_goes_away_cancels_what_runs() {
        let session = Session::new();
        let running = session.run(&json!(7));
        session.cancel(&json!(8));
        assert_eq!(*running.cancelled.borrow(), Cancelled::No);
        drop(Abandon(Arc::clone(&session)));
        Running::over(&running.cancelled).await;
    }
}
