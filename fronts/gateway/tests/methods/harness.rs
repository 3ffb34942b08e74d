//! The test harness: a gateway in front of fake servers, and clients without a transport.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_gateway::{Client, Exchange, Gateway, Out, View};
use capstan_hub::ports::{About, BoxFuture, Connection, Item, Listing, Subscriber};
use capstan_hub::{
    Answer, BackChannel, Entry, HubBuilder, Message, Outgoing, SideOp, System, SystemMessage,
    TaskSubscription,
};
use capstan_model::{CallError, Caller, Front, ServerName, Trust};
use capstan_policy::PolicySource;
use capstan_testkit::fakes::{AuditTrail, FakeServer, Running, TestClock, allow_all};
use capstan_wire::{Json, RequestId, compose, object};
use futures::FutureExt as _;
use futures::future::ready;
use tokio::time::timeout;

/// Timeout of each step of a test.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The answer of a fake server.
pub(crate) type Given = BoxFuture<'static, Result<Json, CallError>>;

/// The receiver of a server's messages during a request.
pub(crate) enum To {
    Nobody,
    Client(BackChannel),
    /// With the capabilities of the client.
    Subscriber(Arc<dyn Subscriber>, Json),
}

/// Answers a call at a fake server.
type Runs = dyn Fn(Json, BackChannel) -> Given + Send + Sync;

/// Answers a side request at a fake server.
type SideRequests = dyn Fn(&str, Json, To) -> Given + Send + Sync;

/// Answers a list request at a fake server.
type Lists = dyn Fn(Listing) -> BoxFuture<'static, Arc<[Item]>> + Send + Sync;

/// A running gateway.
pub(crate) struct Harness {
    pub(crate) gateway: Arc<Gateway>,
    sent: Arc<Mutex<Vec<String>>>,
    log: Arc<AuditTrail>,
}

/// A scripted server.
pub(crate) struct Server {
    name: ServerName,
    about: About,
    lists: Box<Lists>,
    list_members: Option<Json>,
    runs: Box<Runs>,
    side_requests: Box<SideRequests>,
    sent: Arc<Mutex<Vec<String>>>,
}

/// The output of a request.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// The messages before the answer.
    pub(crate) messages: Vec<String>,
    pub(crate) answer: String,
}

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

/// Collects the output of a request.
pub(crate) async fn finish(exchange: Exchange) -> Transcript {
    follow(exchange, |_| {}).await
}

/// Collects the output of a request, and passes each message to `hear` as it arrives.
pub(crate) async fn follow(mut exchange: Exchange, mut hear: impl FnMut(&str)) -> Transcript {
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
                return Transcript { messages, answer: String::from_utf8(text).unwrap() };
            }
            None => return Transcript { messages, answer: String::new() },
        }
    }
}

/// Rules that allow everything to these servers.
pub(crate) fn allowing<'a>(servers: impl Iterator<Item = &'a ServerName>) -> PolicySource {
    allow_all(servers, Trust::default())
}

// === impl Harness ===

impl Harness {
    pub(crate) fn new(servers: Vec<Server>) -> Self {
        Self::with(servers, |_| {})
    }

    /// Starts a gateway whose hub is changed by `change` before.
    pub(crate) fn with(servers: Vec<Server>, change: impl FnOnce(&mut HubBuilder)) -> Self {
        let (sent, log) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AuditTrail>::default());
        let mut hub = HubBuilder::new(
            Arc::new(allowing(servers.iter().map(|server| &server.name)).compile()),
            Arc::<AuditTrail>::clone(&log),
            Arc::new(TestClock::default()),
        );
        for server in servers {
            hub.add(Arc::new(Running(Arc::new(Server { sent: Arc::clone(&sent), ..server }))));
        }
        change(&mut hub);
        Self { gateway: Gateway::new(Arc::new(hub.build())).unwrap(), sent, log }
    }

    /// The audit entries written so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.log.entries()
    }

    /// Initializes a client of 2025-11-25 with these capabilities.
    pub(crate) async fn legacy(&self, view: View, able: &str) -> Arc<Client> {
        self.of_revision("2025-11-25", view, able).await
    }

    /// Initializes a client of this revision.
    pub(crate) async fn of_revision(&self, version: &str, view: View, able: &str) -> Arc<Client> {
        self.greet(version, view, able).await.1
    }

    /// Initializes a client that declares this name.
    pub(crate) async fn named(&self, name: &str, view: View, able: &str) -> Arc<Client> {
        self.introduce(name, "2025-11-25", view, able).await.1
    }

    /// Initializes a client; returns the answer as well.
    pub(crate) async fn greet(
        &self,
        version: &str,
        view: View,
        able: &str,
    ) -> (String, Arc<Client>) {
        self.introduce("c", version, view, able).await
    }

    /// Initializes a client that access rules apply to, in this role.
    pub(crate) async fn bound(&self, role: &str) -> Arc<Client> {
        self.bound_in(role, View::All).await
    }

    /// Initializes a client that access rules apply to, and that is shown this server only.
    pub(crate) async fn bound_to(&self, server: &str) -> Arc<Client> {
        self.bound_in("none", View::One(server.parse().unwrap())).await
    }

    async fn bound_in(&self, role: &str, view: View) -> Arc<Client> {
        let caller = Caller::remote("someone", vec![role.to_owned()]);
        let context = self.gateway.session_context(Arc::new(caller), view);
        let params =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}"#;
        let id = RequestId::Number(0);
        self.gateway.initialize(&id, Some(&json(params)), context).await.1.unwrap()
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
        let context = self.gateway.session_context(caller("anonymous"), view);
        let id = RequestId::Number(0);
        let (answer, client) = self.gateway.initialize(&id, Some(&params), context).await;
        let mut text = Vec::new();
        answer.write_into(&mut text);
        (String::from_utf8(text).unwrap(), client.unwrap())
    }

    /// Sends a request and waits for all of its output.
    pub(crate) async fn ask(&self, client: &Arc<Client>, method: &str, params: &str) -> Transcript {
        finish(self.start(client, method, params)).await
    }

    /// Sends a request.
    pub(crate) fn start(&self, client: &Arc<Client>, method: &str, params: &str) -> Exchange {
        self.gateway.request(client, RequestId::Number(1), method, Some(json(params)))
    }

    /// Sends a request of a modern client with these capabilities, and waits for all of its output.
    pub(crate) async fn ask_modern(
        &self,
        view: View,
        able: &str,
        method: &str,
        params: &str,
    ) -> Transcript {
        finish(self.start_modern(view, able, method, params)).await
    }

    /// Sends a request of a modern client with these capabilities.
    pub(crate) fn start_modern(
        &self,
        view: View,
        able: &str,
        method: &str,
        params: &str,
    ) -> Exchange {
        self.start_as("anonymous", view, able, method, params)
    }

    /// Sends a request of this caller's modern client. Params may have a `_meta` of their own.
    pub(crate) fn start_as(
        &self,
        subject: &str,
        view: View,
        able: &str,
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
        let (id, context) =
            (RequestId::Number(1), self.gateway.stateless_context(caller(subject), view));
        let client = self.gateway.modern(&id, Some(&params), context).unwrap();
        self.gateway.request(&client, id, method, Some(params))
    }

    /// Makes the harness record the calls of a server.
    pub(crate) fn joins(&self, server: Server) -> Server {
        Server { sent: Arc::clone(&self.sent), ..server }
    }

    /// Takes the calls that reached servers since the last time, each with the server's name.
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
            list_members: None,
            runs: Box::new(runs),
            side_requests: Box::new(|_, _, _| ready(Ok(json("{}"))).boxed()),
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

    /// A server that describes itself in this way.
    pub(crate) fn describing(self, describe: impl FnOnce(&mut About)) -> Self {
        let mut about = self.about.clone();
        describe(&mut about);
        Self { about, ..self }
    }

    /// A server whose lists have these members besides their items.
    pub(crate) fn listing_with(self, members: &str) -> Self {
        Self { list_members: Some(json(members)), ..self }
    }

    pub(crate) fn running(
        self,
        runs: impl Fn(Json, BackChannel) -> Given + Send + Sync + 'static,
    ) -> Self {
        Self { runs: Box::new(runs), ..self }
    }

    pub(crate) fn answering(
        self,
        side_requests: impl Fn(&str, Json, To) -> Given + Send + Sync + 'static,
    ) -> Self {
        Self { side_requests: Box::new(side_requests), ..self }
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
        (self.side_requests)(method, params, to)
    }
}

impl FakeServer for Server {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn about(&self) -> Option<Arc<About>> {
        Some(Arc::new(self.about.clone()))
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        let none = String::new();
        let (method, text) = match system.message() {
            SystemMessage::Ping => return ready(Ok(())).boxed(),
            SystemMessage::Level(level) => ("logging/setLevel", level),
            SystemMessage::Unsubscribe(uri) => ("resources/unsubscribe", uri),
            SystemMessage::RootsChanged => ("roots/list_changed", &none),
        };
        self.side(method, compose::string(text), To::Nobody).map(|said| said.map(drop)).boxed()
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

    fn list_members(&self, _: Listing) -> Option<Json> {
        self.list_members.clone()
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
                SideOp::Complete(params)
                | SideOp::Extension { params, .. }
                | SideOp::Notify { params, .. } => {
                    let to = admission.back().cloned().map_or(To::Nobody, To::Client);
                    (admission.op().method(), params.clone(), to)
                }
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
