//! A hub with one real server behind it, and an operator who does as told.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use capstan_hub::ports::{Backend as _, Reply};
use capstan_hub::{ApprovalFrom, Call, SideOp};
use capstan_mcp::Others;
use capstan_mcp::settings::{Elicitation as Switch, max_message};
use capstan_mcp::{Era, StdioServer, StdioSettings};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, Secret, Target, Trust};
pub(crate) use capstan_testkit::until;
use capstan_testkit::{SingleServerHub, binary};
use capstan_wire::{Json, object};
use tempfile::TempDir;

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
    inner: SingleServerHub<StdioServer>,
    folder: TempDir,
}

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
        withheld: capstan_mcp::settings::Withheld::default(),
        cwd: None,
        startup_timeout: LIMIT,
        timeout: LIMIT,
        max_message: max_message(0),
        era: Era::Auto,
        roots: Vec::new(),
        elicitation: Switch::Offered,
        others: Others::default(),
        keeper: PathBuf::from(env!("CARGO_BIN_EXE_capstan-stand-in")),
        sandbox: None,
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
        let inner = SingleServerHub::new(StdioServer::new(settings), Trust::Trusted, reply);
        Self { inner, folder }
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
        Ok(self.call_tool(tool, &json(arguments)).await?.to_string())
    }

    /// Calls a tool with params of the caller's own.
    pub(crate) async fn call_with(&self, tool: &str, params: &str) -> Result<String, CallError> {
        let target = Target::tool(format!("s__{tool}"));
        let caller = Caller::operator(Front::Cli);
        let call = Call { params: json(params), ..Call::new(caller, target, None) };
        Ok(self.send(call).await?.to_string())
    }

    /// The text of a tool's answer.
    pub(crate) async fn text(&self, tool: &str, arguments: &str) -> String {
        let answer = json(&self.call(tool, arguments).await.unwrap());
        let content = object::items(&object::get(&answer, "content").unwrap()).unwrap();
        object::get_string(content.first().unwrap(), "text").unwrap()
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
}

impl Deref for Scene {
    type Target = SingleServerHub<StdioServer>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}
