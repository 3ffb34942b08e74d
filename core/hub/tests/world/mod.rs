//! Fakes for everything that the road needs from outside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{
    About, Approval, Approver, Ask, AuditLog, Backend, BoxFuture, ClientSide, Clock, Connected,
    Connection, Elicitation, Footprint, Item, Lane, Listing, Notice, Question, Reply, Unanswered,
    Wishes,
};
use capstan_hub::{
    Answer, BackChannel, Call, ClientIdentity, Entry, Ground, Hub, HubBuilder, Message, Outgoing,
    Requester, Session, System,
};
use capstan_model::{CallError, ServerName, ServerState};
use capstan_policy::{Pattern, PolicySource, Rule, ServerPolicy};
use capstan_wire::{Json, compose};
use futures::FutureExt;
use futures::future::ready;
use jiff::Timestamp;
use tokio::time::Instant;

/// What a fake server lists.
pub(crate) type Listed = Result<Arc<[Item]>, CallError>;

/// What a fake server answers.
pub(crate) type Ran = Result<Answer, CallError>;

/// How a fake server lists.
type Lists = dyn Fn(Listing) -> BoxFuture<'static, Listed> + Send + Sync;

/// How a fake server runs what it is asked to, given how often it has been.
type Runs = dyn Fn(usize, BackChannel) -> BoxFuture<'static, Ran> + Send + Sync;

/// A hub among fakes, with one conversation.
pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) session: Session,
    pub(crate) log: Arc<Log>,
}

/// A server that does as it is told.
pub(crate) struct Server {
    pub(crate) name: ServerName,
    pub(crate) lists: Box<Lists>,
    pub(crate) runs: Box<Runs>,
    /// The requests that reached it: method and params.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

/// An operator who does as told.
pub(crate) struct Person {
    pub(crate) approves: Box<dyn Fn() -> BoxFuture<'static, Approval> + Send + Sync>,
    pub(crate) answers: Box<dyn Fn() -> BoxFuture<'static, Reply> + Send + Sync>,
    /// Everything that was shown, a line each.
    pub(crate) seen: Mutex<Vec<String>>,
}

/// An audit log that keeps everything.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Mutex<Vec<Entry>>);

/// The time of the runtime, which a test can pause. Its wall clock starts at zero.
struct Time(Instant);

/// A policy with these global rules and the server `files`, which its operator calls `Files`.
pub(crate) fn policy(deny: &[&str], ask: &[&str], allow: &[&str]) -> PolicySource {
    let mut policy = PolicySource::default();
    let files = ServerPolicy { display: "Files".to_owned(), ..ServerPolicy::default() };
    policy.servers.insert("files".parse().unwrap(), files);
    policy.permissions.global.deny = rules("permissions.deny", deny);
    policy.permissions.global.ask = rules("permissions.ask", ask);
    policy.permissions.global.allow = rules("permissions.allow", allow);
    policy
}

/// Rules that stand at `place`.
pub(crate) fn rules(place: &str, patterns: &[&str]) -> Vec<Rule> {
    let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), place);
    patterns.iter().map(rule).collect()
}

/// A list of items of these names.
pub(crate) fn items(names: &[&str]) -> Arc<[Item]> {
    let item = |name: &&str| {
        let definition = compose::object(&[("name", &compose::string(name))]);
        Item { name: (*name).to_owned(), definition }
    };
    names.iter().map(item).collect()
}

/// JSON, as it is written.
pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

// === impl World ===

impl World {
    /// A hub of these servers under these rules.
    pub(crate) fn new(servers: Vec<Server>, policy: PolicySource) -> Self {
        let log = Arc::new(Log::default());
        let audit = Arc::clone(&log) as Arc<dyn AuditLog>;
        let clock = Arc::new(Time(Instant::now()));
        let hub = HubBuilder::new(Arc::new(policy.compile()), audit, clock).build();
        let mut world = Self { session: hub.session(), hub, log };
        world.change(|hub| servers.into_iter().for_each(|server| hub.add(Arc::new(server))));
        world
    }

    /// Changes the hub before it is used.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut HubBuilder)) {
        let mut next = HubBuilder::after(&self.hub);
        for name in self.hub.servers() {
            next.keep(&self.hub, name);
        }
        change(&mut next);
        self.hub = next.build();
    }

    /// Makes a call with `person` at the front.
    pub(crate) async fn call(&self, person: &Arc<Person>, call: Call) -> Result<Json, CallError> {
        let screened = self.hub.call(&self.session, call, person.requester()).await?;
        Ok(screened.result().clone())
    }

    /// The audit entries written so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.log.0.lock().unwrap().clone()
    }
}

// === impl Server ===

impl Server {
    /// A server that lists these items, whatever is asked for, and answers every call.
    pub(crate) fn new(name: &str, names: &'static [&'static str]) -> Self {
        Self {
            name: name.parse().unwrap(),
            lists: Box::new(move |_| ready(Ok(items(names))).boxed()),
            runs: Box::new(|_, _| ready(Ok(Answer::Whole(json(r#"{"content":[]}"#)))).boxed()),
            requests: Arc::default(),
        }
    }
}

impl Backend for Server {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        ServerState::Connected
    }

    fn about(&self) -> Option<Arc<About>> {
        Some(Arc::default())
    }

    fn connected(self: Arc<Self>, _: Lane) -> Option<Connected> {
        Some(Connected::one(self))
    }

    fn connect(self: Arc<Self>, _: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        ready(Ok(Connected::one(self))).boxed()
    }

    fn disconnect(&self) {}

    fn disconnect_lanes(&self) -> bool {
        false
    }

    fn inform<'a>(&'a self, _: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        ready(Ok(())).boxed()
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

impl Connection for Server {
    fn listed(&self, listing: Listing) -> Option<Arc<[Item]>> {
        (self.lists)(listing).now_or_never()?.ok()
    }

    fn list(self: Arc<Self>, listing: Listing) -> BoxFuture<'static, Listed> {
        (self.lists)(listing)
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Ran> {
        let (ticket, back) = match outgoing.message() {
            Message::Call(ticket, back) => (ticket, back),
            Message::Side(admission) => {
                let line = format!("{} of {}", admission.op().method(), admission.id());
                self.requests.lock().unwrap().push(line);
                return ready(Ok(Answer::Whole(json("{}")))).boxed();
            }
            Message::Task(..) | Message::Follow(_) => {
                return ready(Err(outgoing.not_offered(&self.name))).boxed();
            }
        };
        let mut requests = self.requests.lock().unwrap();
        requests.push(format!("{} {}", ticket.kind().method(), ticket.params()));
        let count = requests.len();
        drop(requests);
        (self.runs)(count, back.clone())
    }
}

// === impl Person ===

impl Person {
    /// Nobody: approves nothing and declines everything.
    pub(crate) fn nobody() -> Self {
        Self {
            approves: Box::new(|| ready(Approval::No(Ground::Nobody)).boxed()),
            answers: Box::new(|| ready(Reply::Decline).boxed()),
            seen: Mutex::default(),
        }
    }

    /// The person as the requester of a call.
    pub(crate) fn requester(self: &Arc<Self>) -> Requester<'_> {
        Requester::new(self, ClientIdentity::default())
    }

    fn see(&self, line: String) {
        self.seen.lock().unwrap().push(line);
    }
}

impl Approver for Person {
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval> {
        let Question { id, kind, arguments, effect, rule, .. } = question;
        let (kind, effect) = (kind.as_str(), effect.as_str());
        self.see(format!("{kind} {id} {arguments} ({effect}) by `{rule}`"));
        (self.approves)()
    }

    fn inform(&self, _: &str) {}
}

impl ClientSide for Person {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        let answer = move |elicitation| {
            let Elicitation { server, message, want } = elicitation;
            self.see(format!("{server} asks: {message} {want:?}"));
            (self.answers)()
        };
        ask.by_person(answer).boxed()
    }

    fn notice(&self, notice: Notice) {
        self.see(format!("{notice:?}"));
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

// === impl Log ===

impl AuditLog for Log {
    fn record(&self, entry: Entry) {
        self.0.lock().unwrap().push(entry);
    }
}

// === impl Time ===

impl Clock for Time {
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
