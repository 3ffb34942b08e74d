//! A hub with one document behind it, whose interface is on the loopback.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{About, AuditLog, Backend, BoxFuture, Clock, Item, Listing};
use capstan_hub::{Call, Entry, Hub, HubBuilder, Requester};
use capstan_model::{CallError, Caller, Front, Secret, Target};
use capstan_openapi::{OpenApiServer, OpenApiSettings, Source};
use capstan_policy::{Pattern, PolicySource, Rule};
use capstan_wire::Json;
use futures::FutureExt;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::web::{Sent, Web, reply};

/// A hub with one server called `s`.
pub(crate) struct Scene {
    pub(crate) server: Arc<OpenApiServer>,
    pub(crate) web: Arc<Web>,
    hub: Hub,
}

struct Log;

struct Time(Instant);

/// A document of the tests.
pub(crate) fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name)
}

pub(crate) fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

// === impl Scene ===

impl Scene {
    /// An interface that takes everything; the document is on the web too.
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, |_| reply(200, "application/json", "{\"ok\":true}"), |_, _| {}).await
    }

    /// An interface that answers as it is told.
    pub(crate) async fn with(
        name: &str,
        answer: impl Fn(&Sent) -> String + Send + Sync + 'static,
        change: impl FnOnce(&mut OpenApiSettings, &str),
    ) -> Self {
        let text = std::fs::read_to_string(document(name)).unwrap();
        let answer = move |sent: &Sent| {
            let is_document = sent.line.starts_with("GET /docs/api ");
            if is_document { reply(200, "text/plain", &text) } else { answer(sent) }
        };
        let web = Arc::new(Web::start(Box::new(answer)).await);
        Self::of(web, change)
    }

    /// A server for an interface that is there.
    pub(crate) fn of(web: Arc<Web>, change: impl FnOnce(&mut OpenApiSettings, &str)) -> Self {
        let mut settings = OpenApiSettings {
            name: "s".parse().unwrap(),
            source: Source::Web(secret(&format!("{}/docs/api", web.origin))),
            base_url: None,
            headers: vec![("X-Api-Key".to_owned(), secret("hunter2hunter2"))],
            auth: Vec::new(),
            secrets: vec![secret("hunter2hunter2")],
            tags: None,
            only: None,
            except: Vec::new(),
            addresses: capstan_safety::address::AddressPolicy::default(),
            startup_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
            answer: 100_000,
            cache: None,
        };
        change(&mut settings, &web.origin);
        let server = Arc::new(OpenApiServer::new(settings));
        let mut policy = PolicySource::default();
        let all = Rule::new(Pattern::parse("*").unwrap(), "permissions.allow");
        policy.permissions.global.allow = vec![all];
        let mut hub = HubBuilder::new(
            Arc::new(policy.compile()),
            Arc::new(Log),
            Arc::new(Time(Instant::now())),
        );
        hub.add(Arc::clone(&server) as Arc<dyn Backend>);
        let hub = hub.build();
        Self { server, web, hub }
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

    pub(crate) async fn tools(&self) -> Result<Vec<String>, CallError> {
        let items = self.listing(Listing::Tools).await?;
        Ok(items.iter().map(|item| item.name.clone()).collect())
    }

    /// What a client is told of a tool.
    pub(crate) async fn tool(&self, name: &str) -> Value {
        let items = self.listing(Listing::Tools).await.unwrap();
        let item = items.iter().find(|item| item.name == name).unwrap();
        item.definition.read().unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, CallError> {
        let told = self.call_text(tool, &arguments.to_string()).await?;
        Ok(told.read().unwrap())
    }

    /// The same for arguments and an answer as they are written.
    pub(crate) async fn call_text(&self, tool: &str, arguments: &str) -> Result<Json, CallError> {
        let target = Target::tool(format!("s__{tool}"));
        let arguments = Json::parse(arguments.to_owned()).unwrap();
        let call = Call::new(Caller::operator(Front::Cli), target, Some(&arguments));
        let screened = self.hub.call(&self.hub.session(), call, Requester::unattended()).await?;
        Ok(screened.result().clone())
    }

    /// What was sent for a call that must work.
    pub(crate) async fn sends(&self, tool: &str, arguments: Value) -> Sent {
        self.sends_text(tool, &arguments.to_string()).await
    }

    /// The same for arguments as they are written.
    pub(crate) async fn sends_text(&self, tool: &str, arguments: &str) -> Sent {
        let told = self.call_text(tool, arguments).await;
        assert!(told.is_ok(), "{tool} {arguments}: {told:?}");
        self.web.last()
    }

    /// The state in one line.
    pub(crate) fn state(&self) -> String {
        let state = self.server.state();
        let reason = state.reason().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{}{reason}", state.name().as_str())
    }
}

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
