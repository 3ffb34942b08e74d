//! A document as a server: it is read on first use, each call is one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use capstan_backend::plain::{Plain, PlainError};
use capstan_hub::catalog::InputSchema;
use capstan_hub::ports::{About, Backend, BoxFuture, Item, Listing, Operator};
use capstan_hub::{Answer, Ticket};
use capstan_model::{CallError, Effect, ServerName, ServerState};
use capstan_wire::{Json, object};
use futures::FutureExt;
use futures::future::Shared;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, info};

use crate::answer::{answer, masked, refusal};
use crate::arguments::Arguments;
use crate::base::Base;
use crate::document::Document;
use crate::load::{Loaded, load};
use crate::operation::{self, Found, Operation};
use crate::settings::OpenApiSettings;

/// How long a failure to read the document is believed before it is tried again.
const BELIEVED: Duration = Duration::from_secs(5);

/// How many operations that are left out are told of.
const MAX_TOLD: usize = 20;

/// An OpenAPI document as a server.
pub struct OpenApiServer {
    settings: Arc<OpenApiSettings>,
    link: Mutex<Option<(Link, Instant)>>,
    closing: watch::Sender<bool>,
}

/// What is known of the interface, shared by all who wait for it.
type Link = Shared<BoxFuture<'static, Result<Arc<Known>, String>>>;

struct Known {
    plain: Plain,
    base: Base,
    offered: HashMap<String, Offered>,
    items: Arc<[Item]>,
    about: Arc<About>,
    /// What is not as it should be.
    lacking: Option<String>,
}

/// An operation, with what its calls are held to.
struct Offered {
    operation: Operation,
    schema: OnceLock<Result<InputSchema, String>>,
}

// === impl OpenApiServer ===

impl OpenApiServer {
    /// A server whose document has not been looked at yet.
    pub fn new(settings: OpenApiSettings) -> Self {
        let (settings, closing) = (Arc::new(settings), watch::Sender::new(false));
        Self { settings, link: Mutex::new(None), closing }
    }

    async fn known(&self) -> Result<Arc<Known>, CallError> {
        self.link().await.map_err(|reason| self.unreachable(reason))
    }

    fn unreachable(&self, reason: String) -> CallError {
        CallError::Unreachable { server: self.settings.name.clone(), reason }
    }

    /// What is known, or the attempt to find out; one for all who wait.
    fn link(&self) -> Link {
        let mut known = lock(&self.link);
        if let Some((link, since)) = known.as_ref() {
            let failed = matches!(link.peek(), Some(Err(_)));
            if !failed || since.elapsed() < BELIEVED {
                return link.clone();
            }
        }
        let mut closing = self.closing.subscribe();
        let settings = Arc::clone(&self.settings);
        let link: Link = async move {
            tokio::select! {
                biased;
                _ = closing.wait_for(is_set) => Err("it was closed".to_owned()),
                known = know(settings) => known,
            }
        }
        .boxed()
        .shared();
        *known = Some((link.clone(), Instant::now()));
        drop(known);
        // Driven by a task of its own, so that a caller who goes away does not stop it for others.
        tokio::spawn(link.clone());
        link
    }

    async fn call(&self, ticket: &Ticket) -> Result<Answer, CallError> {
        let known = self.known().await?;
        let item = ticket.id().to_string();
        let Some(offered) = known.offered.get(&ticket.id().item) else {
            return Err(CallError::Unknown {
                kind: ticket.kind(),
                name: item,
                nearest: Vec::new(),
            });
        };
        let operation = &offered.operation;
        let invalid = |problem| CallError::InvalidArguments { item: item.clone(), problem };
        let given = object::get(ticket.params(), "arguments").unwrap_or_else(Json::empty_object);
        offered.check(&given).map_err(invalid)?;
        let arguments =
            Arguments::read(&given).map_err(|_| invalid("they are no object".to_owned()))?;
        let request = operation.request(&known.base, &arguments).map_err(invalid)?;
        debug!(server = %self.settings.name, tool = operation.name, "sending a request");
        let limit = self.settings.timeout;
        let mut closing = self.closing.subscribe();
        let sent = tokio::select! {
            biased;
            _ = closing.wait_for(is_set) => Err(PlainError::Lost("it was closed".to_owned())),
            sent = timeout(limit, known.plain.send(request, self.settings.answer)) => {
                let server = self.settings.name.clone();
                let may_have_run = ticket.effect() != Effect::Read;
                sent.map_err(|_| CallError::TimedOut { server, limit, may_have_run })?
            }
        };
        let response = match sent {
            Ok(response) => response,
            Err(error) => return self.failed(ticket, error),
        };
        if !response.whole && response.status < 400 {
            let limit = self.settings.answer;
            return Err(CallError::AnswerTooLarge { item, size: limit.saturating_add(1), limit });
        }
        Ok(Answer::Whole(answer(operation, &response, &self.settings.secrets)))
    }

    /// What it means to whoever called that nothing came back.
    fn failed(&self, ticket: &Ticket, error: PlainError) -> Result<Answer, CallError> {
        let reads = ticket.effect() == Effect::Read;
        match error {
            PlainError::Redirected { status, words } => {
                Ok(Answer::Whole(refusal(status, &masked(&words, &self.settings.secrets))))
            }
            PlainError::Lost(reason) if !reads => {
                Err(CallError::OutcomeUnknown { server: self.settings.name.clone(), reason })
            }
            PlainError::NotSent(reason) | PlainError::Lost(reason) => Err(self.unreachable(reason)),
            other @ PlainError::Unfit(_) => {
                let (item, problem) = (ticket.id().to_string(), other.to_string());
                Err(CallError::InvalidArguments { item, problem })
            }
        }
    }
}

impl Backend for OpenApiServer {
    fn name(&self) -> &ServerName {
        &self.settings.name
    }

    fn state(&self) -> ServerState {
        let link = lock(&self.link);
        match link.as_ref().map(|(link, _)| link.peek()) {
            None => ServerState::Idle,
            Some(None) => ServerState::Connecting,
            Some(Some(Ok(known))) => match &known.lacking {
                Some(lacking) => ServerState::Degraded(lacking.clone()),
                None => ServerState::Connected,
            },
            Some(Some(Err(reason))) => ServerState::Failed(reason.clone()),
        }
    }

    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>> {
        async { Ok(Arc::clone(&self.known().await?.about)) }.boxed()
    }

    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        async move {
            let known = self.known().await?;
            Ok(match listing {
                Listing::Tools => Arc::clone(&known.items),
                Listing::Prompts | Listing::Resources | Listing::Templates => Arc::new([]),
            })
        }
        .boxed()
    }

    fn run<'a>(
        &'a self,
        ticket: &'a Ticket,
        _: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.call(ticket).boxed()
    }

    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.send_replace(true);
        futures::future::ready(()).boxed()
    }
}

impl Drop for OpenApiServer {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

// === impl Offered ===

impl Offered {
    /// Holds arguments to the schema that callers were given, so that nothing else can be sent.
    fn check(&self, arguments: &Json) -> Result<(), String> {
        let schema = self.schema.get_or_init(|| {
            let schema = Json::from_value(&self.operation.input_schema());
            let schema = schema.map_err(|error| error.to_string())?;
            InputSchema::compile(&schema).map_err(|bad| bad.to_string())
        });
        let schema = schema.as_ref().map_err(Clone::clone)?;
        schema.check(arguments).map_err(|misfit| misfit.to_string())
    }
}

/// Reads the document.
async fn know(settings: Arc<OpenApiSettings>) -> Result<Arc<Known>, String> {
    let wait = settings.startup_timeout;
    let loading = timeout(wait, load(&settings)).await;
    let Loaded { text, home, stale } = loading.map_err(|_| {
        format!("its document did not come within {wait:?}; raise `startup_timeout`")
    })??;
    let reading = Arc::clone(&settings);
    // A large document takes a while to read.
    let read = tokio::task::spawn_blocking(move || {
        let document = Document::parse(&text)?;
        let given = reading.base_url.as_ref().map(|base| base.reveal().as_str());
        let base = Base::choose(&document, given, home.as_ref())?;
        let found = operation::read(&document, &reading, &base);
        let items = found.operations.iter().filter_map(Operation::item).collect::<Vec<_>>();
        Ok::<_, String>((document, base, found, items))
    });
    let (document, base, found, items) = read.await.map_err(|error| error.to_string())??;
    for line in found.left_out.iter().take(MAX_TOLD) {
        info!(server = %settings.name, "an operation is left out: {line}");
    }
    if found.operations.is_empty() {
        return Err(nothing(&found));
    }
    info!(server = %settings.name, tools = found.operations.len(), "its document is read");
    let about = About {
        protocol: "openapi".to_owned(),
        title: document.info("title"),
        version: document.info("version"),
        capabilities: Json::from_value(&json!({ "tools": {} })).ok(),
        ..About::default()
    };
    let lacking =
        stale.or_else(|| left_out(&found)).or_else(|| keyless(&document, &settings, &base));
    let plain = Plain::new(base.address(), &settings.headers, &settings.secrets)?;
    let offer = |operation| Offered { operation, schema: OnceLock::new() };
    let offered = found.operations.into_iter().map(|one| (one.name.clone(), offer(one))).collect();
    let about = Arc::new(about);
    Ok(Arc::new(Known { plain, base, offered, items: items.into(), about, lacking }))
}

fn nothing(found: &Found) -> String {
    match (found.left_out.first(), found.all) {
        (Some(first), _) => format!("none of its operations can be offered: {first}"),
        (None, 0) => "its document has no operations".to_owned(),
        (None, all) => {
            format!("`tags`, `only` and `except` leave none of its {all} operations")
        }
    }
}

/// What is wanted and cannot be offered.
fn left_out(found: &Found) -> Option<String> {
    let first = found.left_out.first()?;
    Some(match found.left_out.len() {
        1 => format!("an operation is left out: {first}"),
        more => format!("{more} operations are left out: {first}, and others"),
    })
}

/// What the interface wants to know us by, where the configuration says nothing of the kind.
fn keyless(document: &Document, settings: &OpenApiSettings, base: &Base) -> Option<String> {
    let wanted = document.root.get("security")?.as_array()?;
    let silent = settings.headers.is_empty() && base.query().is_none();
    let names = wanted.iter().map(|one| one.as_object().and_then(|one| one.keys().next()));
    let name = names.collect::<Option<Vec<_>>>()?.into_iter().next().filter(|_| silent)?;
    let schemes = document.root.pointer("/components/securitySchemes");
    let schemes = schemes.or_else(|| document.root.get("securityDefinitions"))?;
    let scheme = document.object(schemes.get(name)?)?;
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(match (text("type"), text("in"), text("name")) {
        ("apiKey", "query", key) => {
            format!("it wants `{key}` in the query: add `?{key}=…` to `base_url`")
        }
        ("apiKey", "header", key) => format!("it wants a header `{key}`: set it under `headers`"),
        ("apiKey", "cookie", key) => {
            format!("it wants a cookie `{key}`: set `Cookie` under `headers`")
        }
        _ => "it wants a login: set `Authorization` under `headers`".to_owned(),
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "whoever waits for it passes a reference")]
fn is_set(closing: &bool) -> bool {
    *closing
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
