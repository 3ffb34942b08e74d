//! The test harness: a gateway over HTTP in front of one fake server.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready as now};
use std::time::Duration;

use bytes::Bytes;
use capstan_gateway::Gateway;
use capstan_gateway::http::{
    Anonymous, HttpLimits, HttpSettings, McpEndpoints, NOT_FOUND, Routes, Site, bind, pages, serve,
};
use capstan_hub::ports::{About, Asking, BoxFuture, Connection, Item, Listing, Notice};
use capstan_hub::trace::Tracer;
use capstan_hub::{Answer, Begun, Entry, HubBuilder, Message, Outgoing, Source, System};
use capstan_model::{CallError, ServerName, Trust};
use capstan_policy::access::Says;
use capstan_policy::{Access, AccessTable, ServerPolicy};
use capstan_testkit::fakes::{AuditTrail, FakeServer, Running, TestClock, allow_all};
use capstan_wire::{Json, compose, object};
use futures::FutureExt as _;
use futures::future::ready;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use capstan_testkit::http::{HttpAnswer as Heard, HttpConnection, HttpRequest, post};

/// Timeout of each step of a test.
const LIMIT: Duration = Duration::from_secs(20);

/// The tools of the server, which is called `files`.
const TOOLS: [&str; 8] = ["say", "talk", "wait", "big", "mark", "ask", "slow", "heavy"];

/// The length of the answer of `big`.
pub(crate) const BIG: usize = 1024 * 1024;

/// A running gateway.
pub(crate) struct Harness {
    pub(crate) address: SocketAddr,
    /// The address of the metrics, when they have their own.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) server: Arc<Files>,
    log: Arc<AuditTrail>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<()>,
}

/// A scripted server.
pub(crate) struct Files {
    name: ServerName,
    /// The number of running calls of `wait`.
    waiting: watch::Sender<usize>,
    /// Ends one call of `wait`.
    go: Notify,
    /// The params of all calls.
    pub(crate) sent: Mutex<Vec<String>>,
    /// The streamed answer of `big`.
    pub(crate) coming: Mutex<Option<Coming>>,
    /// The length of the coming answer, if the server says it.
    pub(crate) length: Mutex<Option<u64>>,
    /// For each call, whether its client accepts a streamed answer.
    pub(crate) wishes: Mutex<Vec<bool>>,
    /// The number of bytes that were read from the streamed answer.
    pub(crate) taken: Arc<AtomicUsize>,
}

/// The beginning of a reply to request 7 and its rest.
pub(crate) type Coming = (Bytes, mpsc::UnboundedReceiver<Result<Bytes, CallError>>);

/// The rest of a reply.
struct Rest(mpsc::UnboundedReceiver<Result<Bytes, CallError>>, Arc<AtomicUsize>);

/// A call of `wait`.
struct Waiting<'a>(&'a watch::Sender<usize>);

pub(crate) fn settings() -> HttpSettings {
    HttpSettings::new("127.0.0.1:0".parse().unwrap())
}

/// The message of a call of a tool.
pub(crate) fn call(id: u32, tool: &str) -> String {
    let params = format!(r#"{{"name":"{tool}","arguments":{{}},"_meta":{{"progressToken":"t"}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

pub(crate) fn initialize(version: &str) -> String {
    let params = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
    );
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#)
}

/// A member of a JSON-RPC message, or of its error.
#[track_caller]
pub(crate) fn member(message: &str, path: &str) -> String {
    let json = Json::parse(message.to_owned()).unwrap();
    object::at_path(&json, path).map_or_else(String::new, |json| json.to_string())
}

// === impl Harness ===

impl Harness {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn limited(change: impl FnOnce(&mut HttpLimits)) -> Self {
        let mut settings = settings();
        change(&mut settings.limits);
        Self::with(settings).await
    }

    pub(crate) async fn with(settings: HttpSettings) -> Self {
        Self::watched(settings, None).await
    }

    /// One whose server is out of everybody's reach.
    pub(crate) async fn hidden(settings: HttpSettings) -> Self {
        let table = AccessTable { default: Says::Deny, ..AccessTable::default() };
        Self::with_access(settings, table).await
    }

    /// One whose callers are bound by these access rules.
    pub(crate) async fn with_access(settings: HttpSettings, table: AccessTable) -> Self {
        let name: ServerName = "files".parse().unwrap();
        let access = Access::new(table, [(&name, name.as_str())]);
        Self::ruled(settings, None, vec![access], |site| site).await
    }

    pub(crate) async fn watched(settings: HttpSettings, tracer: Option<Arc<dyn Tracer>>) -> Self {
        Self::ruled(settings, tracer, Vec::new(), |site| site).await
    }

    /// One that serves a changed site.
    pub(crate) async fn serving(change: impl FnOnce(Site) -> Site) -> Self {
        Self::ruled(settings(), None, Vec::new(), change).await
    }

    async fn ruled(
        settings: HttpSettings,
        tracer: Option<Arc<dyn Tracer>>,
        access: Vec<Access>,
        change: impl FnOnce(Site) -> Site,
    ) -> Self {
        let name: ServerName = "files".parse().unwrap();
        let server = Arc::new(Files {
            name: name.clone(),
            waiting: watch::channel(0).0,
            go: Notify::new(),
            sent: Mutex::default(),
            coming: Mutex::default(),
            length: Mutex::default(),
            wishes: Mutex::default(),
            taken: Arc::default(),
        });
        let log = Arc::<AuditTrail>::default();
        let mut policy = allow_all([&name], Trust::default());
        let files = ServerPolicy { display: "files".to_owned(), ..ServerPolicy::default() };
        policy.servers.insert(name.clone(), files);
        policy.access = access;
        let (policy, clock) = (Arc::new(policy.compile()), Arc::new(TestClock::default()));
        let mut hub = HubBuilder::new(policy, Arc::<AuditTrail>::clone(&log), clock);
        hub.add(Arc::new(Running(Arc::clone(&server))));
        let hub = hub.build();
        let bound = bind(settings).await.unwrap();
        let (address, metrics) = (bound.address(), bound.metrics_address());
        let (stop, stopped) = oneshot::channel();
        let stopped = stopped.map(|_| ());
        let gateway = Gateway::watched(Arc::new(hub), tracer).unwrap();
        let mcp = McpEndpoints::new(&gateway, bound.limits());
        let routes = mcp.mount(Routes::new(NOT_FOUND));
        let routes = match metrics {
            Some(_) => pages::mount_without_metrics(routes, &gateway),
            None => pages::mount(routes, &gateway),
        };
        let site = change(Site { mcp, routes, authenticator: Arc::new(Anonymous) });
        let ended = tokio::spawn(serve(bound, site, stopped));
        Self { address, metrics, gateway, server, log, stop: Some(stop), ended }
    }

    /// Has the next call of `big` answer as it comes, with a length that is not too large.
    pub(crate) fn comes(&self, begin: &str) -> mpsc::UnboundedSender<Result<Bytes, CallError>> {
        let (more, rest) = mpsc::unbounded_channel();
        let begin = Bytes::copy_from_slice(begin.as_bytes());
        *self.server.coming.lock().unwrap() = Some((begin, rest));
        *self.server.length.lock().unwrap() = Some(9 << 20);
        more
    }

    /// Waits for the first entry of the audit log.
    pub(crate) async fn entry(&self) -> Entry {
        self.entries(1).await.remove(0)
    }

    /// Waits for so many entries of the audit log.
    pub(crate) async fn entries(&self, count: usize) -> Vec<Entry> {
        let mut entries = self.log.subscribe();
        let entries = timeout(LIMIT, entries.wait_for(|entries| entries.len() >= count)).await;
        entries.unwrap().unwrap().to_vec()
    }

    pub(crate) async fn peer(&self) -> HttpConnection {
        HttpConnection::new(self.address).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, ask: &HttpRequest) -> Heard {
        self.peer().await.ask(ask).await
    }

    /// Shakes hands; the id of the session.
    pub(crate) async fn session(&self, version: &str) -> String {
        let answer = self.ask(&post("/mcp", &initialize(version))).await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        assert_eq!(member(&answer.body, "result.protocolVersion"), format!("{version:?}"));
        answer.head.get("mcp-session-id").unwrap().to_owned()
    }

    /// Asks it to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) {
        timeout(LIMIT, self.ended).await.unwrap().unwrap();
    }
}

// === impl Files ===

impl Files {
    /// Waits until so many calls of `wait` are under way.
    pub(crate) async fn waits(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let waited = timeout(LIMIT, waiting.wait_for(|now| *now == count)).await.is_ok();
        assert!(waited, "there were never {count} calls under way");
    }

    /// Lets a call of `wait` go.
    pub(crate) fn go(&self) {
        self.go.notify_one();
    }

    async fn wait(&self) {
        self.waiting.send_modify(|count| *count += 1);
        let _waiting = Waiting(&self.waiting);
        self.go.notified().await;
    }
}

impl FakeServer for Files {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn about(&self) -> Option<Arc<About>> {
        Some(Arc::default())
    }

    fn inform<'a>(&'a self, _: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        ready(Ok(())).boxed()
    }
}

impl Connection for Files {
    fn listed(&self, _: Listing) -> Option<Arc<[Item]>> {
        None
    }

    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        let item = |name: &str| {
            let place = r#"{"place":{"type":"string","x-mcp-header":"Place"}}"#;
            let properties = if name == "mark" { place } else { "{}" };
            let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
            let schema = Json::parse(schema).unwrap();
            let members = [("name", &compose::string(name)), ("inputSchema", &schema)];
            Item { name: name.to_owned(), definition: compose::object(&members) }
        };
        let tools = if listing == Listing::Tools { &TOOLS[..] } else { &[] };
        ready(Ok(tools.iter().map(|name| item(name)).collect())).boxed()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let Message::Call(ticket, back) = outgoing.message() else {
                return Err(outgoing.not_offered(&self.name));
            };
            let tool = object::get_string(ticket.params(), "name").unwrap_or_default();
            self.sent.lock().unwrap().push(ticket.params().to_string());
            let mut text = format!("{tool} done");
            if tool == "big"
                && let Some((begin, rest)) = self.coming.lock().unwrap().take()
            {
                let rest = Rest(rest, Arc::clone(&self.taken));
                let begun = Begun::look(7, vec![begin]).ok().unwrap();
                let length = *self.length.lock().unwrap();
                return Ok(Answer::Streaming(begun.flow(self.name.clone(), length, rest)));
            }
            if matches!(tool.as_str(), "talk" | "slow" | "heavy") {
                back.notice(Notice::Progress {
                    server: self.name.clone(),
                    done: 1.0,
                    total: None,
                    message: None,
                    params: Json::parse(r#"{"progressToken":0,"progress":1}"#.to_owned()).unwrap(),
                });
            }
            match tool.as_str() {
                "wait" | "slow" => self.wait().await,
                "heavy" => {
                    self.wait().await;
                    text = "x".repeat(2 * BIG);
                }
                "ask" => {
                    let params =
                        Json::parse(r#"{"message":"Sure?","requestedSchema":{}}"#).unwrap();
                    let answer = back.ask(Asking::Elicit, params).await;
                    text = answer.unwrap().to_string();
                }
                "big" => text = "x".repeat(BIG),
                _ => {}
            }
            self.wishes.lock().unwrap().push(back.wishes().flow);
            let text = compose::string(&text);
            let block = compose::object(&[("type", &compose::string("text")), ("text", &text)]);
            Ok(Answer::Whole(compose::object(&[("content", &compose::array([&block]))])))
        }
        .boxed()
    }
}

// === impl Waiting ===

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

// === impl Rest ===

impl Source for Rest {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        let next = now!(self.0.poll_recv(cx));
        if let Some(Ok(piece)) = &next {
            self.1.fetch_add(piece.len(), Ordering::Relaxed);
        }
        Poll::Ready(next)
    }
}
