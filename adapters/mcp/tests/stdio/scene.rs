//! A hub with one real server behind it, and an operator who does as told.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{
    About, Ask, AuditLog, Backend, BoxFuture, ClientSide, Clock, Elicitation, Item, Listing,
    Notice, Reply, Unanswered, Wishes,
};
use capstan_hub::{ApprovalFrom, Call, Entry, Hub, HubBuilder, Requester, SideOp};
use capstan_mcp::Others;
use capstan_mcp::settings::{Elicitation as Switch, max_message};
use capstan_mcp::{Era, StdioServer, StdioSettings};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, Secret, Target, Trust};
use capstan_policy::{Pattern, Policy, PolicySource, Rule, ServerPolicy};
use capstan_testkit::binary;
use capstan_wire::{Json, object};
use futures::FutureExt;
use futures::future::ready;
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// What a `sh` server needs: `answer RESULT` answers the request in `$line`. The words in
/// `$HELLO` are the answer to `initialize`; the version in them is the process id.
const PRELUDE: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
HELLO='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"'$$'"}}'
TOOLS='{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}'
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
"#;

/// A hub with one server called `s`.
pub(crate) struct Scene {
    pub(crate) server: Arc<StdioServer>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) person: Arc<Person>,
    folder: TempDir,
}

/// An operator who gives one answer to all questions.
pub(crate) struct Person {
    reply: Reply,
    /// Everything that was shown, a line each.
    seen: Mutex<Vec<String>>,
}

struct Log;

struct Time(Instant);

/// JSON, as it is written.
pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

/// The settings of the fixture with these arguments.
pub(crate) fn fixture(args: &[&str]) -> StdioSettings {
    settings(binary("capstan-fixture").to_str().unwrap(), args)
}

/// The settings of a server in `sh`, which speaks the legacy era; `arms` are those of a `case`
/// over the line that it received.
pub(crate) fn shell(arms: &str) -> StdioSettings {
    let script = format!("{PRELUDE}{arms}\n*'\"initialize\"'*) answer \"$HELLO\" ;;\nesac; done");
    StdioSettings { era: Era::Legacy, ..settings("sh", &["-c", &script]) }
}

pub(crate) fn settings(command: &str, args: &[&str]) -> StdioSettings {
    StdioSettings {
        name: "s".parse().unwrap(),
        command: command.to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        environment: [("PATH".to_owned(), Secret::new("/usr/bin:/bin".to_owned()))].into(),
        secrets: Vec::new(),
        cwd: None,
        startup_timeout: LIMIT,
        timeout: LIMIT,
        max_message: max_message(0),
        era: Era::Auto,
        roots: Vec::new(),
        elicitation: Switch::Offered,
        others: Others::default(),
        keeper: PathBuf::from(env!("CARGO_BIN_EXE_capstan-stand-in")),
    }
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let end = Instant::now() + LIMIT;
        while !condition() {
            assert!(Instant::now() < end, "{caller}: did not come true in time");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

// === impl Scene ===

impl Scene {
    /// A fixture with these arguments.
    pub(crate) fn new(args: &[&str]) -> Self {
        Self::of(fixture(args))
    }

    /// A server with these settings and an operator who declines everything. A fixture traces what
    /// it receives.
    pub(crate) fn of(settings: StdioSettings) -> Self {
        Self::with_reply(settings, Reply::Decline)
    }

    pub(crate) fn with_reply(mut settings: StdioSettings, reply: Reply) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if settings.command.ends_with("capstan-fixture") {
            let trace = folder.path().join("trace").display().to_string();
            settings.args.extend(["--trace".to_owned(), trace]);
        }
        let server = Arc::new(StdioServer::new(settings));
        let mut hub =
            HubBuilder::new(Arc::new(all_allowed()), Arc::new(Log), Arc::new(Time(Instant::now())));
        hub.add(Arc::clone(&server) as Arc<dyn Backend>);
        let hub = hub.build();
        let person = Arc::new(Person { reply, seen: Mutex::default() });
        Self { server, hub: Arc::new(hub), person, folder }
    }

    /// Connects if need be; who the server is.
    pub(crate) async fn about(&self) -> Result<Arc<About>, CallError> {
        Arc::clone(&self.server).connect().await?;
        Ok(self.server.about().unwrap())
    }

    /// Connects if need be; one of the server's lists.
    pub(crate) async fn listing(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        Arc::clone(&self.server).connect().await?.list(listing).await
    }

    /// Subscribes to a resource.
    pub(crate) async fn subscribe(&self, uri: &str) {
        let id = ItemId { server: self.server.name().clone(), item: uri.to_owned() };
        let target = Target::exact(Kind::Resource, id);
        let call = Call::new(Caller::operator(Front::Cli), target, None);
        let (attempt, session) = (self.hub.begin(&call), self.hub.session());
        attempt.side(&session, call, SideOp::Subscribe, ApprovalFrom::Memory, None).await.unwrap();
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<String, CallError> {
        let target = Target::tool(format!("s__{tool}"));
        let caller = Caller::operator(Front::Cli);
        self.send(Call::new(caller, target, Some(&json(arguments)))).await
    }

    /// Calls a tool with params of the caller's own.
    pub(crate) async fn call_with(&self, tool: &str, params: &str) -> Result<String, CallError> {
        let target = Target::tool(format!("s__{tool}"));
        let caller = Caller::operator(Front::Cli);
        self.send(Call { params: json(params), ..Call::new(caller, target, None) }).await
    }

    pub(crate) async fn send(&self, call: Call) -> Result<String, CallError> {
        let client = Arc::<Person>::clone(&self.person);
        let requester = Requester { client, ..Requester::unattended() };
        let screened = self.hub.call(&self.hub.session(), call, requester).await?;
        Ok(screened.result().to_string())
    }

    /// The text of a tool's answer.
    pub(crate) async fn text(&self, tool: &str, arguments: &str) -> String {
        let answer = json(&self.call(tool, arguments).await.unwrap());
        let content = object::items(&object::get(&answer, "content").unwrap()).unwrap();
        object::get_string(content.first().unwrap(), "text").unwrap()
    }

    /// The names in a list.
    pub(crate) async fn list(&self, listing: Listing) -> Result<Vec<String>, CallError> {
        let items = self.listing(listing).await?;
        Ok(items.iter().map(|item| item.name.clone()).collect())
    }

    /// What the server received so far that has this in it.
    pub(crate) fn received(&self, part: &str) -> Vec<String> {
        let trace = fs::read_to_string(self.folder.path().join("trace")).unwrap_or_default();
        trace.lines().filter(|line| line.contains(part)).map(ToOwned::to_owned).collect()
    }

    /// How often the server received a request or notification.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.received(&format!(r#""method":"{method}""#)).len()
    }

    /// Waits until the server has received something with this in it.
    pub(crate) async fn receives(&self, part: &str) {
        until(|| !self.received(part).is_empty()).await;
    }

    /// The process id of a server in `sh`.
    pub(crate) async fn pid(&self) -> u32 {
        let about = self.about().await.unwrap();
        about.version.as_ref().unwrap().parse().unwrap()
    }

    /// The state in one line.
    pub(crate) fn state(&self) -> String {
        let state = self.server.state();
        let mut line = state.name().as_str().to_owned();
        if let Some(reason) = state.reason() {
            write!(line, ": {reason}").unwrap();
        }
        line
    }
}

/// Everything is allowed, and the server is believed about what its tools do.
fn all_allowed() -> Policy {
    let mut policy = PolicySource::default();
    let believed = ServerPolicy { trust: Trust::Trusted, ..ServerPolicy::default() };
    policy.servers.insert("s".parse().unwrap(), believed);
    let all = Rule::new(Pattern::parse("*").unwrap(), "permissions.allow");
    policy.permissions.global.allow = vec![all];
    policy.compile()
}

// === impl Person ===

impl Person {
    /// Everything that was shown, a line each.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn see(&self, line: String) {
        self.seen.lock().unwrap().push(line);
    }
}

impl ClientSide for Person {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        let answer = move |elicitation| {
            let Elicitation { server, message, want } = elicitation;
            self.see(format!("{server} asks: {message} {want:?}"));
            ready(self.reply.clone())
        };
        ask.by_person(answer).boxed()
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Progress { server, done, total, message, .. } => {
                self.see(format!("{server}: {done} of {total:?}, {message:?}"));
            }
            Notice::Log { server, level, text, .. } => {
                self.see(format!("{server}: {level} {text}"));
            }
        }
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

// === impl Log, Time ===

impl AuditLog for Log {
    fn record(&self, _: Entry) {}
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}
