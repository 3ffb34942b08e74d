//! Fakes of the hub's ports: a clock, an audit log, a person, and servers that are always connected.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::{
    About, Ask, AuditLog, Backend, BoxFuture, ClientSide, Clock, Connected, Connection,
    Elicitation, Footprint, Lane, Notice, Reply, Unanswered, Wishes,
};
use capstan_hub::{Entry, System};
use capstan_model::{CallError, ServerName, ServerState, Trust};
use capstan_policy::{Pattern, PolicySource, Rule, ServerPolicy};
use capstan_wire::Json;
use futures::FutureExt as _;
use futures::future::ready;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::fail::OrFail as _;

/// The time of the runtime, which a test can pause. Its wall clock starts at the Unix epoch.
pub struct TestClock(Instant);

/// An audit log that keeps everything.
#[derive(Default)]
pub struct AuditTrail(watch::Sender<Vec<Entry>>);

/// A person who gives one answer to all questions and keeps what was shown.
pub struct TestPerson {
    reply: Reply,
    seen: Mutex<Vec<String>>,
}

/// A fake server; [`Running`] makes a backend of it.
pub trait FakeServer: Connection + 'static {
    /// The server's name.
    fn name(&self) -> &ServerName;

    /// The server's description.
    fn about(&self) -> Option<Arc<About>>;

    /// Receives a message that only informs.
    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>>;
}

/// The backend of a fake server. It is always connected.
pub struct Running<F>(pub Arc<F>);

/// Rules that allow everything at these servers, which are trusted to this degree.
pub fn allow_all<'a>(
    servers: impl IntoIterator<Item = &'a ServerName>,
    trust: Trust,
) -> PolicySource {
    let mut policy = PolicySource::default();
    let all = Pattern::parse("*").or_fail("no pattern");
    policy.permissions.global.allow = vec![Rule::new(all, "permissions.allow")];
    for server in servers {
        let own = ServerPolicy { trust, ..ServerPolicy::default() };
        policy.servers.insert(server.clone(), own);
    }
    policy
}

// === impl TestClock ===

impl Default for TestClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

// === impl AuditTrail ===

impl AuditTrail {
    /// Everything that was recorded.
    pub fn entries(&self) -> Vec<Entry> {
        self.0.borrow().clone()
    }

    /// Everything that was recorded, as it changes.
    pub fn subscribe(&self) -> watch::Receiver<Vec<Entry>> {
        self.0.subscribe()
    }
}

impl AuditLog for AuditTrail {
    fn record(&self, entry: Entry) {
        self.0.send_modify(|entries| entries.push(entry));
    }
}

// === impl TestPerson ===

impl TestPerson {
    /// A person who gives this answer to all questions.
    pub fn new(reply: Reply) -> Self {
        Self { reply, seen: Mutex::default() }
    }

    /// Everything that was shown, a line each.
    pub fn seen(&self) -> Vec<String> {
        self.lines().clone()
    }

    fn see(&self, line: String) {
        self.lines().push(line);
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSide for TestPerson {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        let answer = move |elicitation| {
            let Elicitation { server, message, want } = elicitation;
            self.see(format!("{server} asks: {message} {want:?}"));
            ready(self.reply.clone())
        };
        ask.by_person(answer).boxed()
    }

    fn notice(&self, notice: Notice) {
        self.see(match notice {
            Notice::Progress { server, done, total, message, .. } => {
                format!("{server}: {done} of {total:?}, {message:?}")
            }
            Notice::Log { server, level, text, .. } => format!("{server}: {level} {text}"),
            Notice::Other { method, .. } => method.into(),
        });
    }

    fn capabilities(&self) -> Option<Json> {
        None
    }

    fn wishes(&self) -> Wishes {
        Wishes::PERSON
    }

    fn outlives_answer(&self) -> bool {
        false
    }
}

// === impl Running ===

impl<F: FakeServer> Backend for Running<F> {
    fn name(&self) -> &ServerName {
        self.0.name()
    }

    fn state(&self) -> ServerState {
        ServerState::Connected
    }

    fn about(&self) -> Option<Arc<About>> {
        self.0.about()
    }

    fn connected(self: Arc<Self>, _: Lane) -> Option<Connected> {
        Some(Connected::one(Arc::<F>::clone(&self.0)))
    }

    fn connect(self: Arc<Self>, _: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        ready(Ok(Connected::one(Arc::<F>::clone(&self.0)))).boxed()
    }

    fn disconnect(&self) {}

    fn disconnect_lanes(&self) -> bool {
        false
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        self.0.inform(system)
    }

    fn footprint(&self) -> Option<Footprint> {
        None
    }

    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}
