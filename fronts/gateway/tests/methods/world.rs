//! A gateway in front of fake servers, and clients that talk to it without any face.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_gateway::{Client, Exchange, Gateway, Out, View};
use capstan_hub::ports::{
    About, AuditLog, Backend, BoxFuture, Clock, Connection, Footprint, Item, Listing, Subscriber,
};
use capstan_hub::{
    Answer, BackChannel, Entry, HubBuilder, Message, Outgoing, SideOp, System, SystemMessage,
    TaskSubscription,
};
use capstan_model::{CallError, Caller, Front, ServerName, ServerState};
use capstan_policy::{Pattern, PolicySource, Rule, ServerPolicy};
use capstan_wire::{Json, RequestId, compose, object};
use futures::FutureExt as _;
use futures::future::ready;
use jiff::Timestamp;
use tokio::time::{Instant, timeout};

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// What a fake server gives back.
pub(crate) type Given = BoxFuture<'static, Result<Json, CallError>>;

/// Who gets what a server says while it works on a request.
pub(crate) enum To {
    Nobody,
    Client(BackChannel),
    /// With the capabilities of the client.
    Subscriber(Arc<dyn Subscriber>, Json),
}

/// What a fake server answers to a call.
type Runs = dyn Fn(Json, BackChannel) -> Given + Send + Sync;

/// What a fake server answers to an errand.
type Errands = dyn Fn(&str, Json, To) -> Given + Send + Sync;

/// How a fake server lists.
type Lists = dyn Fn(Listing) -> BoxFuture<'static, Arc<[Item]>> + Send + Sync;

/// A running gateway.
pub(crate) struct World {
    pub(crate) gateway: Arc<Gateway>,
    sent: Arc<Mutex<Vec<String>>>,
    log: Arc<Log>,
}

/// A server that does as it is told.
pub(crate) struct Server {
    name: ServerName,
    about: About,
    lists: Box<Lists>,
    runs: Box<Runs>,
    errands: Box<Errands>,
    sent: Arc<Mutex<Vec<String>>>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Said {
    /// What was said before the answer.
    pub(crate) messages: Vec<String>,
    pub(crate) answer: String,
}

/// An audit log that keeps everything.
#[derive(Default)]
struct Log(Mutex<Vec<Entry>>);

struct Time(Instant);

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

/// A member of a message, by its path.
#[track_caller]
pub(crate) fn member(message: &str, path: &str) -> String {
    object::at_path(&json(message), path).map_or_else(String::new, |json| json.to_string())
}

/// A list of tools with these definitions; each begins with a name.
pub(crate) fn items(definitions: &[String]) -> Arc<[Item]> {
    let item = |text: &String| {
        let definition = json(text);
        Item { name: object::get_string(&definition, "name").unwrap(), definition }
    };
    definitions.iter().map(item).collect()
}

/// Everything that comes of a request.
pub(crate) async fn finish(exchange: Exchange) -> Said {
    follow(exchange, |_| {}).await
}

/// The same, with somebody who hears each message as it comes.
pub(crate) async fn follow(mut exchange: Exchange, mut hear: impl FnMut(&str)) -> Said {
    let mut messages = Vec::new();
    loop {
        match timeout(LIMIT, exchange.next()).await.unwrap() {
            Some(Out::Message(message)) => {
                let message = String::from_utf8(message.to_vec()).unwrap();
                hear(&message);
                messages.push(message);
            }
            Some(Out::Answer(answer)) => {
                let mut text = Vec::new();
                answer.write_into(&mut text);
                return Said { messages, answer: String::from_utf8(text).unwrap() };
            }
            None => return Said { messages, answer: String::new() },
        }
    }
}

/// Rules that allow everything to these servers.
pub(crate) fn allowing<'a>(servers: impl Iterator<Item = &'a ServerName>) -> PolicySource {
    let mut policy = PolicySource::default();
    let all = Rule::new(Pattern::parse("*").unwrap(), "permissions.allow");
    policy.permissions.global.allow.push(all);
    policy.servers = servers.map(|name| (name.clone(), ServerPolicy::default())).collect();
    policy
}

// === impl World ===

impl World {
    pub(crate) fn new(servers: Vec<Server>) -> Self {
        Self::with(servers, |_| {})
    }

    /// The same, with something changed before it runs.
    pub(crate) fn with(servers: Vec<Server>, change: impl FnOnce(&mut HubBuilder)) -> Self {
        let (sent, log) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Log::default()));
        let mut hub = HubBuilder::new(
            Arc::new(allowing(servers.iter().map(|server| &server.name)).compile()),
            Arc::<Log>::clone(&log),
            Arc::new(Time(Instant::now())),
        );
        for server in servers {
            hub.add(Arc::new(Server { sent: Arc::clone(&sent), ..server }));
        }
        change(&mut hub);
        Self { gateway: Gateway::new(Arc::new(hub.build())).unwrap(), sent, log }
    }

    /// What was written down so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.log.0.lock().unwrap().clone()
    }

    /// A client of 2025-11-25 that can do this.
    pub(crate) async fn legacy(&self, view: View, able: &str) -> Arc<Client> {
        self.of_revision("2025-11-25", view, able).await
    }

    /// A client that has shaken hands.
    pub(crate) async fn of_revision(&self, version: &str, view: View, able: &str) -> Arc<Client> {
        self.greet(version, view, able).await.1
    }

    /// The same, of a client that calls itself so.
    pub(crate) async fn named(&self, name: &str, view: View, able: &str) -> Arc<Client> {
        self.introduce(name, "2025-11-25", view, able).await.1
    }

    /// A client that has shaken hands, and how it was greeted.
    pub(crate) async fn greet(
        &self,
        version: &str,
        view: View,
        able: &str,
    ) -> (String, Arc<Client>) {
        self.introduce("c", version, view, able).await
    }

    /// A client whom access rules bind, in this role.
    pub(crate) async fn bound(&self, role: &str) -> Arc<Client> {
        let caller = Caller::remote("someone", vec![role.to_owned()]);
        let party = self.gateway.party(Arc::new(caller), View::All);
        let params =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}"#;
        let id = RequestId::Number(0);
        self.gateway.initialize(&id, Some(&json(params)), party).await.1.unwrap()
    }

    async fn introduce(
        &self,
        name: &str,
        version: &str,
        view: View,
        able: &str,
    ) -> (String, Arc<Client>) {
        let params = json(&format!(
            r#"{{"protocolVersion":"{version}","capabilities":{able},"clientInfo":{{"name":"{name}","version":"1"}}}}"#
        ));
        let party = self.gateway.party(caller("anonymous"), view);
        let id = RequestId::Number(0);
        let (answer, client) = self.gateway.initialize(&id, Some(&params), party).await;
        let mut text = Vec::new();
        answer.write_into(&mut text);
        (String::from_utf8(text).unwrap(), client.unwrap())
    }

    /// Asks something, and waits for all that comes of it.
    pub(crate) async fn ask(&self, client: &Arc<Client>, method: &str, params: &str) -> Said {
        finish(self.start(client, method, params)).await
    }

    /// Asks something.
    pub(crate) fn start(&self, client: &Arc<Client>, method: &str, params: &str) -> Exchange {
        self.gateway.request(client, RequestId::Number(1), method, Some(json(params)))
    }

    /// Asks something as a modern client that can do this.
    pub(crate) async fn ask_modern(&self, who: (View, &str), method: &str, params: &str) -> Said {
        finish(self.start_modern(who, method, params)).await
    }

    /// The same, without waiting.
    pub(crate) fn start_modern(
        &self,
        (view, able): (View, &str),
        method: &str,
        params: &str,
    ) -> Exchange {
        self.start_as("anonymous", (view, able), method, params)
    }

    /// The same, as this caller. Params may have a `_meta` of their own.
    pub(crate) fn start_as(
        &self,
        subject: &str,
        (view, able): (View, &str),
        method: &str,
        params: &str,
    ) -> Exchange {
        let params = json(params);
        let meta = object::get(&params, "_meta").unwrap_or_else(Json::empty_object);
        let version = "io.modelcontextprotocol/protocolVersion";
        let capabilities = "io.modelcontextprotocol/clientCapabilities";
        let meta = object::with_member(&meta, version, &json(r#""2026-07-28""#)).unwrap();
        let meta = object::with_member(&meta, capabilities, &json(able)).unwrap();
        let params = object::with_member(&params, "_meta", &meta).unwrap();
        let (id, party) = (RequestId::Number(1), self.gateway.stateless(caller(subject), view));
        let client = self.gateway.modern(&id, Some(&params), party).unwrap();
        self.gateway.request(&client, id, method, Some(params))
    }

    /// The server, as one whose calls are seen here.
    pub(crate) fn joins(&self, server: Server) -> Server {
        Server { sent: Arc::clone(&self.sent), ..server }
    }

    /// What reached the servers since it was last looked at, each with the name of the server.
    pub(crate) fn take_sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

fn caller(subject: &str) -> Arc<Caller> {
    Arc::new(Caller::named(subject, Front::Gateway))
}

// === impl Server ===

impl Server {
    /// A server of 2025-11-25 with one tool `t`, which does nothing.
    pub(crate) fn new(name: &str) -> Self {
        let about = About { protocol: "2025-11-25".to_owned(), ..About::default() };
        let runs = |_, _| ready(Ok(json(r#"{"content":[]}"#))).boxed();
        let server = Self {
            name: name.parse().unwrap(),
            about,
            lists: Box::new(|_| ready(Arc::from([])).boxed()),
            runs: Box::new(runs),
            errands: Box::new(|_, _, _| ready(Ok(json("{}"))).boxed()),
            sent: Arc::default(),
        };
        server.with_tools(&["t"])
    }

    pub(crate) fn with_tools(self, names: &[&str]) -> Self {
        let tools: Vec<String> = names
            .iter()
            .map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#))
            .collect();
        self.listing(move |listing| {
            let tools = if listing == Listing::Tools { items(&tools) } else { Arc::from([]) };
            ready(tools).boxed()
        })
    }

    /// A server of 2026-07-28.
    pub(crate) fn modern(name: &str) -> Self {
        let server = Self::new(name);
        let about = About { protocol: "2026-07-28".to_owned(), ..server.about.clone() };
        Self { about, ..server }
    }

    pub(crate) fn able(self, capabilities: &str) -> Self {
        let about = About { capabilities: Some(json(capabilities)), ..self.about.clone() };
        Self { about, ..self }
    }

    pub(crate) fn running(
        self,
        runs: impl Fn(Json, BackChannel) -> Given + Send + Sync + 'static,
    ) -> Self {
        Self { runs: Box::new(runs), ..self }
    }

    pub(crate) fn answering(
        self,
        errands: impl Fn(&str, Json, To) -> Given + Send + Sync + 'static,
    ) -> Self {
        Self { errands: Box::new(errands), ..self }
    }

    pub(crate) fn listing(
        self,
        lists: impl Fn(Listing) -> BoxFuture<'static, Arc<[Item]>> + Send + Sync + 'static,
    ) -> Self {
        Self { lists: Box::new(lists), ..self }
    }
}

impl Server {
    fn side(&self, method: &str, params: Json, to: To) -> Given {
        let shown = object::without_member(&params, "_meta").unwrap_or_else(|_| params.clone());
        self.sent.lock().unwrap().push(format!("{} {method} {shown}", self.name));
        (self.errands)(method, params, to)
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
        Some(Arc::new(self.about.clone()))
    }

    fn connected(self: Arc<Self>) -> Option<Arc<dyn Connection>> {
        Some(self)
    }

    fn connect(self: Arc<Self>) -> BoxFuture<'static, Result<Arc<dyn Connection>, CallError>> {
        ready(Ok(self as Arc<dyn Connection>)).boxed()
    }

    fn disconnect(&self) {}

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        let (method, text) = match system.message() {
            SystemMessage::Ping => return ready(Ok(())).boxed(),
            SystemMessage::Level(level) => ("logging/setLevel", level),
            SystemMessage::Unsubscribe(uri) => ("resources/unsubscribe", uri),
        };
        self.side(method, compose::string(text), To::Nobody).map(|said| said.map(drop)).boxed()
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
    fn listed(&self, _: Listing) -> Option<Arc<[Item]>> {
        None
    }

    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        (self.lists)(listing).map(Ok).boxed()
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        let (method, params, to) = match outgoing.message() {
            Message::Call(ticket, back) => {
                let params = ticket.params().clone();
                self.sent.lock().unwrap().push(format!("{} {params}", self.name));
                let back = back.clone();
                return (self.runs)(params, back).map(|ran| ran.map(Answer::Whole)).boxed();
            }
            Message::Side(admission) => match admission.op() {
                SideOp::Complete(params) => (admission.op().method(), params.clone(), To::Nobody),
                SideOp::Subscribe => {
                    let uri = compose::string(&admission.id().item);
                    (admission.op().method(), uri, To::Nobody)
                }
            },
            Message::Task(request, back) => {
                (request.op().method(), request.params().clone(), To::Client(back.clone()))
            }
            Message::Follow(subscription) => {
                let ids = Json::from_value(&subscription.ids()).unwrap();
                let capabilities = subscription.capabilities().clone();
                let to = To::Subscriber(Arc::clone(subscription.subscriber()), capabilities);
                (TaskSubscription::METHOD, ids, to)
            }
        };
        self.side(method, params, to).map(|said| said.map(Answer::Whole)).boxed()
    }
}

// === impl To ===

impl To {
    pub(crate) fn client(self) -> Option<BackChannel> {
        if let Self::Client(back) = self { Some(back) } else { None }
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
