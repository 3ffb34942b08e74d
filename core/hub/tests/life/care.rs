//! A server in care, with fakes for everything around it.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::life::{IdleRule, Start, Supervision, Supervisor, SupervisorPorts, Terms};
use capstan_hub::ports::{
    About, AuditLog, Backend, BoxFuture, Changes, Clock, Connected, Connection, Era, Footprint,
    Item, Lane, Listener, Listing, Manifests, Pace, SavedText, StoreError, UsageLog, UsageRow,
};
use capstan_hub::{
    Answer, BackChannel, Call, Entry, Freshness, Hub, HubBuilder, Message, Outgoing, Requester,
    System, SystemMessage,
};
use capstan_model::{CallError, Caller, Front, ServerName, ServerState, Target};
use capstan_policy::{Pattern, PolicySource, Rule};
use capstan_wire::{Json, compose};
use futures::FutureExt;
use futures::future::{pending, ready};
use jiff::Timestamp;
use tokio::time::Instant;

/// One who tends, a server, and what is kept over restarts.
#[derive(Clone)]
pub(crate) struct Care {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) server: Arc<Fake>,
    pub(crate) manifests: Arc<Kept>,
    pub(crate) usage: Arc<Log>,
    told: Arc<Told>,
}

/// A hub of one supervised server.
#[derive(Clone)]
pub(crate) struct Supervised {
    pub(crate) hub: Arc<Hub>,
    pub(crate) name: ServerName,
}

/// A server that does as it is told.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) tools: Mutex<Arc<[Item]>>,
    /// How long a call takes.
    pub(crate) takes: Mutex<Duration>,
    pub(crate) answer: Mutex<String>,
    /// Whether it does not answer when it is asked for a list.
    pub(crate) lists_hang: AtomicBool,
    /// Whether it has a prompt.
    pub(crate) has_prompts: AtomicBool,
    /// Whether it does not say that it is there.
    pub(crate) hangs: AtomicBool,
    /// Whether it cannot be started.
    pub(crate) broken: AtomicBool,
    /// The tools on a second connection, for legacy callers, if it has one.
    pub(crate) own_tools: Mutex<Option<Arc<[Item]>>>,
    /// Whether the second connection is open.
    pub(crate) own_connected: AtomicBool,
    /// The connections that calls were sent on.
    pub(crate) calls: Mutex<Vec<&'static str>>,
    /// Whether the next call on the second connection does not reach the server.
    pub(crate) own_loses_one: AtomicBool,
    /// What it has said that it has.
    listed: Mutex<Option<Arc<[Item]>>>,
    connected: AtomicBool,
    starts: AtomicUsize,
}

/// The same under another name.
struct Named(ServerName, Arc<Fake>);

/// The second connection of a server.
struct OwnLane(ServerName, Arc<Fake>);

#[derive(Default)]
pub(crate) struct Kept(
    pub(crate) Mutex<HashMap<String, Vec<u8>>>,
    /// The number of times that a text was confirmed.
    pub(crate) AtomicUsize,
);

#[derive(Default)]
pub(crate) struct Log(pub(crate) Mutex<Vec<UsageRow>>);

#[derive(Default)]
struct Told(Mutex<Vec<Listing>>);

/// The time of the runtime. Its wall clock starts at zero.
struct Time(Instant);

struct NoLog;

/// The time at which saved texts were confirmed: an hour before the runtime starts.
pub(crate) const SAVED: Timestamp = Timestamp::constant(-3600, 0);

/// A fixed idle time.
pub(crate) fn fixed(seconds: u64) -> IdleRule {
    IdleRule::After(Duration::from_secs(seconds))
}

/// A list of tools of these names.
pub(crate) fn items(names: &[&str]) -> Arc<[Item]> {
    let item = |name: &&str| {
        let definition = compose::object(&[("name", &compose::string(name))]);
        Item { name: (*name).to_owned(), definition }
    };
    names.iter().map(item).collect()
}

// === impl Care ===

impl Default for Care {
    fn default() -> Self {
        Self::with(Arc::default(), Arc::default())
    }
}

impl Care {
    fn with(manifests: Arc<Kept>, usage: Arc<Log>) -> Self {
        let (told, changes) = (Arc::<Told>::default(), Arc::<Changes>::default());
        changes.listen(Arc::clone(&told) as Arc<dyn Listener>);
        let supervisor = Supervisor::new(SupervisorPorts {
            clock: Arc::new(Time(Instant::now())),
            manifests: Arc::clone(&manifests) as Arc<dyn Manifests>,
            usage: Arc::clone(&usage) as Arc<dyn UsageLog>,
            changes,
            spawn: Arc::new(|task| drop(tokio::spawn(task))),
        });
        tokio::spawn(Arc::clone(&supervisor).run());
        let server = Fake {
            tools: Mutex::new(items(&["do"])),
            answer: Mutex::new(r#"{"content":[]}"#.to_owned()),
            ..Fake::default()
        };
        Self { supervisor, server: Arc::new(server), manifests, usage, told }
    }

    /// Everything anew, but for what is kept.
    pub(crate) fn restarted(&self) -> Self {
        Self::with(Arc::clone(&self.manifests), Arc::clone(&self.usage))
    }

    pub(crate) fn take(&self, name: &str, idle: IdleRule) -> Supervised {
        self.take_as(name, "key", idle, Start::Lazy)
    }

    pub(crate) fn take_as(
        &self,
        name: &str,
        key: &str,
        idle: IdleRule,
        start: Start,
    ) -> Supervised {
        let terms = Terms { start, idle, key: Some(key.to_owned()) };
        self.supervised(name, Arc::clone(&self.server), &|| Supervision::Full(terms.clone()))
    }

    /// The server, only counted.
    pub(crate) fn counted(&self, name: &str) -> Supervised {
        self.supervised(name, Arc::clone(&self.server), &|| Supervision::Counted)
    }

    /// A server of its own under the same supervisor.
    pub(crate) fn other(&self, name: &str, idle: IdleRule) -> Supervised {
        let server = Fake { tools: Mutex::new(items(&["do"])), ..Fake::default() };
        let terms = Terms { start: Start::Lazy, idle, key: None };
        self.supervised(name, Arc::new(server), &|| Supervision::Full(terms.clone()))
    }

    fn supervised(
        &self,
        name: &str,
        server: Arc<Fake>,
        how: &dyn Fn() -> Supervision,
    ) -> Supervised {
        let mut policy = PolicySource::default();
        policy.permissions.global.allow = vec![Rule::new(Pattern::parse("*").unwrap(), "all")];
        let clock = Arc::new(Time(Instant::now()));
        let mut hub = HubBuilder::new(Arc::new(policy.compile()), Arc::new(NoLog), clock);
        let name: ServerName = name.parse().unwrap();
        hub.add(Arc::new(Named(name.clone(), server)));
        hub.supervise(&self.supervisor, |_, _| how());
        Supervised { hub: Arc::new(hub.build()), name }
    }

    /// Lets what goes on in the background come to an end.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The lists that were said to have changed.
    pub(crate) fn told(&self) -> Vec<Listing> {
        self.told.0.lock().unwrap().clone()
    }
}

// === impl Supervised ===

impl Supervised {
    /// Makes a call on the road.
    pub(crate) async fn call(&self) -> Result<(), CallError> {
        self.call_in(Lane::ANY).await
    }

    /// Makes a call on the road in this lane.
    pub(crate) async fn call_in(&self, lane: Lane) -> Result<(), CallError> {
        let call = Call::new(Caller::operator(Front::Cli), self.target(), None);
        let requester = Requester { lane, ..Requester::unattended() };
        self.hub.call(&self.hub.session(), call, requester).await.map(drop)
    }

    pub(crate) fn target(&self) -> Target {
        Target::tool(format!("{}__do", self.name))
    }

    pub(crate) fn state(&self) -> ServerState {
        self.hub.state(&self.name).unwrap()
    }

    pub(crate) fn pace(&self) -> Pace {
        self.hub.vitals_of(&self.name).unwrap().pace.unwrap()
    }

    pub(crate) async fn list(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        self.hub.list(&self.name, listing, Freshness::Known).await
    }

    pub(crate) async fn current(&self) -> Result<Arc<[Item]>, CallError> {
        self.hub.list(&self.name, Listing::Tools, Freshness::Current).await
    }
}

// === impl Fake ===

impl Fake {
    pub(crate) fn starts(&self) -> usize {
        self.starts.load(Ordering::Relaxed)
    }

    fn connect(&self, server: &ServerName) -> Result<(), CallError> {
        if self.broken.load(Ordering::Relaxed) {
            let reason = "it ended".to_owned();
            return Err(CallError::Unreachable { server: server.clone(), reason });
        }
        if !self.connected.swap(true, Ordering::Relaxed) {
            self.starts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

// === impl Named ===

impl Backend for Named {
    fn name(&self) -> &ServerName {
        &self.0
    }

    fn state(&self) -> ServerState {
        if self.1.connected.load(Ordering::Relaxed) {
            ServerState::Connected
        } else {
            ServerState::Idle
        }
    }

    fn about(&self) -> Option<Arc<About>> {
        let capabilities = Json::parse(r#"{"tools":{}}"#).ok();
        let protocol = if self.may_have_lanes() { "2026-07-28" } else { "" }.to_owned();
        let about = About { protocol, capabilities, ..About::default() };
        (self.1.starts() > 0).then(|| Arc::new(about))
    }

    fn may_have_lanes(&self) -> bool {
        self.1.own_tools.lock().unwrap().is_some()
    }

    fn connected(self: Arc<Self>, lane: Lane) -> Option<Connected> {
        if !self.1.connected.load(Ordering::Relaxed) {
            return None;
        }
        let has_own = lane.era == Some(Era::Legacy) && self.1.own_tools.lock().unwrap().is_some();
        if has_own && !self.1.own_connected.load(Ordering::Relaxed) {
            return None;
        }
        let own = || Arc::new(OwnLane(self.0.clone(), Arc::clone(&self.1))) as Arc<dyn Connection>;
        let own = has_own.then(own);
        Some(Connected { home: self, own })
    }

    fn connect(self: Arc<Self>, lane: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        async move {
            self.1.connect(&self.0)?;
            if lane.era == Some(Era::Legacy) {
                self.1.own_connected.store(true, Ordering::Relaxed);
            }
            Ok(self.connected(lane).unwrap())
        }
        .boxed()
    }

    fn disconnect(&self) {
        self.1.connected.store(false, Ordering::Relaxed);
        self.disconnect_lanes();
    }

    fn disconnect_lanes(&self) -> bool {
        self.1.own_connected.swap(false, Ordering::Relaxed)
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        let limit = Duration::from_secs(5);
        if *system.message() != SystemMessage::Ping || !self.1.hangs.load(Ordering::Relaxed) {
            return ready(Ok(())).boxed();
        }
        let server = self.0.clone();
        ready(Err(CallError::TimedOut { server, limit, may_have_run: false })).boxed()
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

impl Connection for Named {
    fn listed(&self, listing: Listing) -> Option<Arc<[Item]>> {
        let is_there = listing == Listing::Tools && self.1.connected.load(Ordering::Relaxed);
        self.1.listed.lock().unwrap().clone().filter(|_| is_there)
    }

    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        async move {
            if self.1.lists_hang.load(Ordering::Relaxed) {
                return pending().await;
            }
            let tools = self.1.tools.lock().unwrap().to_vec();
            // Another object each time, as after a restart.
            let listed = match listing {
                Listing::Tools => tools,
                Listing::Prompts if self.1.has_prompts.load(Ordering::Relaxed) => {
                    items(&["ask"]).to_vec()
                }
                Listing::Prompts | Listing::Resources | Listing::Templates => Vec::new(),
            };
            let listed: Arc<[Item]> = listed.into();
            if listing == Listing::Tools {
                *self.1.listed.lock().unwrap() = Some(Arc::clone(&listed));
            }
            Ok(listed)
        }
        .boxed()
    }

    fn list_members(&self, _: Listing) -> Option<Json> {
        Json::parse(r#"{"_meta":"home"}"#).ok()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            self.1.calls.lock().unwrap().push("home");
            let Message::Call(..) = outgoing.message() else {
                return Ok(Answer::Whole(Json::empty_object()));
            };
            let takes = *self.1.takes.lock().unwrap();
            tokio::time::sleep(takes).await;
            assert!(self.1.connected.load(Ordering::Relaxed), "it was stopped under a call");
            let answer = self.1.answer.lock().unwrap().clone();
            Ok(Answer::Whole(Json::parse(answer).unwrap()))
        }
        .boxed()
    }
}

// === impl OwnLane ===

impl Connection for OwnLane {
    fn identity(&self) -> Option<Arc<About>> {
        let protocol = "2025-11-25".to_owned();
        Some(Arc::new(About { protocol, ..About::default() }))
    }

    fn list_members(&self, _: Listing) -> Option<Json> {
        Json::parse(r#"{"_meta":"own"}"#).ok()
    }

    fn listed(&self, listing: Listing) -> Option<Arc<[Item]>> {
        self.1.own_tools.lock().unwrap().clone().filter(|_| listing == Listing::Tools)
    }

    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        ready(Ok(self.listed(listing).unwrap_or_default())).boxed()
    }

    fn send<'a>(&'a self, _: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            self.1.calls.lock().unwrap().push("own");
            if self.1.own_loses_one.swap(false, Ordering::Relaxed) {
                self.1.own_connected.store(false, Ordering::Relaxed);
                let reason = "its session has ended".to_owned();
                return Err(CallError::Unreachable { server: self.0.clone(), reason });
            }
            let takes = *self.1.takes.lock().unwrap();
            tokio::time::sleep(takes).await;
            assert!(self.1.own_connected.load(Ordering::Relaxed), "it was closed under a call");
            let answer = self.1.answer.lock().unwrap().clone();
            Ok(Answer::Whole(Json::parse(answer).unwrap()))
        }
        .boxed()
    }
}

// === the rest of the world ===

impl Manifests for Kept {
    fn load(&self, key: &str) -> Option<SavedText> {
        let text = self.0.lock().unwrap().get(key).cloned()?;
        Some(SavedText { text, confirmed: SAVED })
    }

    fn save(&self, key: &str, text: &dyn Fn(&mut dyn io::Write) -> io::Result<()>) {
        let mut written = Vec::new();
        text(&mut written).unwrap();
        self.0.lock().unwrap().insert(key.to_owned(), written);
    }

    fn confirm(&self, _: &str) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl UsageLog for Log {
    fn read(&self, since: i64) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        let mut rows = self.0.lock().unwrap().clone();
        rows.retain(|row| row.hour >= since);
        ready(Ok(rows)).boxed()
    }

    fn add<'a>(&'a self, rows: &'a [UsageRow], _: i64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.lock().unwrap().extend_from_slice(rows);
        ready(Ok(())).boxed()
    }
}

impl Listener for Told {
    fn list_changed(&self, _: &ServerName, _: Listing) {}

    fn list_may_differ(&self, _: &ServerName, listing: Listing) {
        self.0.lock().unwrap().push(listing);
    }

    fn resource_updated(&self, _: &ServerName, _: &Json) {}

    fn told(&self, _: &ServerName, _: &str, _: Option<&Json>) {}

    fn only_client(&self, _: &ServerName) -> Option<BackChannel> {
        None
    }
}

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

impl AuditLog for NoLog {
    fn record(&self, _: Entry) {}
}
