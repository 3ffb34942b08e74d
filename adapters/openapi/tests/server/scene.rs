//! A hub with one document behind it, whose interface is on the loopback.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{Listing, Reply};
use capstan_model::{CallError, Secret, Trust};
use capstan_openapi::{OpenApiServer, OpenApiSettings, Source};
use capstan_testkit::SingleServerHub;
use capstan_wire::Json;
use serde_json::Value;

use crate::web::{Sent, Web, reply};

/// A hub with one server called `s`.
pub(crate) struct Scene {
    inner: SingleServerHub<OpenApiServer>,
    pub(crate) web: Arc<Web>,
}

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
        let server = OpenApiServer::new(settings);
        Self { inner: SingleServerHub::new(server, Trust::default(), Reply::Decline), web }
    }

    pub(crate) async fn tools(&self) -> Result<Vec<String>, CallError> {
        self.names(Listing::Tools).await
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
        self.call_tool(tool, &Json::parse(arguments.to_owned()).unwrap()).await
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
}

impl Deref for Scene {
    type Target = SingleServerHub<OpenApiServer>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}
