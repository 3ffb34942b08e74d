//! An OpenAPI document as a server: it is read on first use, and each call is one request.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use capstan_http::{Client, Credentials, HttpError, PlainRequest, PlainResponse};
use capstan_hub::catalog::InputSchema;
use capstan_hub::ports::About;
use capstan_hub::{Answer, BackChannel, Ticket};
use capstan_lazy::{Attempt, AttemptError, CLOSED, Offer, Outcome, ToolServer, ToolSource};
use capstan_model::{CallError, Effect, Secret, ServerName};
use capstan_wire::{Json, object};
use serde_json::json;
use tokio::time::timeout;
use tracing::{debug, info};

use crate::auth::{Auth, CallCredentials, Means, wants};
use crate::document::load::{Loaded, load};
use crate::document::{Document, Object};
use crate::operation::{self, Found, Operation};
use crate::request::answer::{answer, masked, refusal};
use crate::request::arguments::Arguments;
use crate::request::base::Base;
use crate::settings::{OpenApiSettings, Source};

/// The number of omitted operations that are logged.
const MAX_TOLD: usize = 20;

/// An OpenAPI document as a server.
pub type OpenApiServer = ToolServer<OpenApiSource>;

/// An OpenAPI document as a source of tools.
pub struct OpenApiSource {
    settings: Arc<OpenApiSettings>,
}

/// The loaded interface.
pub struct Known {
    client: Client,
    base: Base,
    offered: HashMap<String, Offered>,
    offer: Offer,
}

/// An operation, with the credentials and the schema of its calls.
struct Offered {
    operation: Operation,
    means: Means,
    schema: OnceLock<Result<InputSchema, String>>,
}

// === impl OpenApiSource ===

impl From<OpenApiSettings> for OpenApiSource {
    fn from(settings: OpenApiSettings) -> Self {
        Self { settings: Arc::new(settings) }
    }
}

impl ToolSource for OpenApiSource {
    type Known = Known;

    fn name(&self) -> &ServerName {
        &self.settings.name
    }

    fn read(&self) -> impl Future<Output = Outcome<Known>> + Send + 'static {
        know(Arc::clone(&self.settings))
    }

    async fn call<'a>(
        &'a self,
        known: &'a Known,
        ticket: &'a Ticket,
        _: &'a BackChannel,
        closing: &'a Attempt<Known>,
    ) -> Result<Answer, CallError> {
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
            Arguments::read(&given).map_err(|_| invalid("they are not an object".to_owned()))?;
        let request = operation.request(&known.base, &arguments).map_err(invalid)?;
        debug!(server = %self.settings.name, tool = operation.name, "sending a request");
        let credentials = offered.means.for_call();
        let sent = self.exchange(ticket, known, &credentials, request, closing).await?;
        let secrets: Vec<_> =
            self.settings.secrets.iter().cloned().chain(credentials.secrets()).collect();
        let response = match sent {
            Ok(response) => response,
            Err(error) => return self.failed(ticket, error, &secrets),
        };
        if !response.whole && response.status < 400 {
            let limit = self.settings.answer;
            return Err(CallError::AnswerTooLarge { item, size: limit.saturating_add(1), limit });
        }
        let hint =
            offered.means.lacking.as_deref().filter(|_| matches!(response.status, 401 | 403));
        Ok(Answer::Whole(answer(operation, &response, &secrets, hint)))
    }

    /// Checks that a server responds at the address; any response counts.
    async fn ping<'a>(
        &'a self,
        known: impl Future<Output = Result<Arc<Known>, CallError>> + Send + 'a,
    ) -> Result<(), CallError> {
        let known = known.await?;
        let path = known.base.address().path().to_owned();
        let request = PlainRequest { method: "HEAD", path, ..PlainRequest::default() };
        let wait = self.settings.startup_timeout;
        let reason = match timeout(wait, known.client.send(request, 0)).await {
            Ok(Err(HttpError::NotSent(reason) | HttpError::Lost(reason))) => reason,
            Ok(Ok(_) | Err(HttpError::Unfit(_) | HttpError::Redirected { .. })) => {
                return Ok(());
            }
            Ok(Err(HttpError::NeedsLogin(reason))) => {
                let server = self.settings.name.clone();
                return Err(CallError::NeedsLogin { server, reason });
            }
            Ok(Err(HttpError::Blocked(reason))) => {
                let server = self.settings.name.clone();
                return Err(CallError::AddressBlocked { server, reason });
            }
            Ok(Err(HttpError::Elsewhere(reason))) => {
                let server = self.settings.name.clone();
                return Err(CallError::LedElsewhere { server, reason });
            }
            Err(_) => format!("no answer within {wait:?}"),
        };
        let origin = known.base.address().origin();
        Err(self.unreachable(format!("cannot reach {origin}: {reason}")))
    }

    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }
}

impl OpenApiSource {
    fn unreachable(&self, reason: String) -> CallError {
        CallError::Unreachable { server: self.settings.name.clone(), reason }
    }

    /// Sends a request with the credentials of the call.
    async fn exchange(
        &self,
        ticket: &Ticket,
        known: &Known,
        credentials: &Arc<CallCredentials>,
        request: PlainRequest,
        closing: &Attempt<Known>,
    ) -> Result<Result<PlainResponse, HttpError>, CallError> {
        let (limit, server) = (self.settings.timeout, self.settings.name.clone());
        let client = known.client.with(Arc::clone(credentials) as Arc<dyn Credentials>);
        let sent = tokio::select! {
            biased;
            () = closing.closed() => {
                let reason = CLOSED.to_owned();
                let was_sent = credentials.are_applied();
                return Ok(Err(if was_sent { HttpError::Lost(reason) } else { HttpError::NotSent(reason) }));
            }
            sent = timeout(limit, client.send(request, self.settings.answer)) => sent,
        };
        sent.map_err(|_| {
            let may_have_run = ticket.effect() != Effect::Read && credentials.are_applied();
            CallError::TimedOut { server, limit, may_have_run }
        })
    }

    /// Converts a failed request into the answer or the error of its call.
    fn failed(
        &self,
        ticket: &Ticket,
        error: HttpError,
        secrets: &[Secret<String>],
    ) -> Result<Answer, CallError> {
        let reads = ticket.effect() == Effect::Read;
        match error {
            HttpError::Redirected { status, .. } => {
                let words = masked(&error.to_string(), secrets);
                Ok(Answer::Whole(refusal(status, &words, None)))
            }
            HttpError::Lost(reason) if !reads => {
                Err(CallError::OutcomeUnknown { server: self.settings.name.clone(), reason })
            }
            HttpError::Blocked(reason) => {
                let (server, reason) = (self.settings.name.clone(), masked(&reason, secrets));
                Err(CallError::AddressBlocked { server, reason })
            }
            HttpError::Elsewhere(reason) => {
                let (server, reason) = (self.settings.name.clone(), masked(&reason, secrets));
                Err(CallError::LedElsewhere { server, reason })
            }
            HttpError::NeedsLogin(reason) => {
                let (server, reason) = (self.settings.name.clone(), masked(&reason, secrets));
                Err(CallError::NeedsLogin { server, reason })
            }
            HttpError::NotSent(reason) | HttpError::Lost(reason) => Err(self.unreachable(reason)),
            other @ HttpError::Unfit(_) => {
                let (item, problem) = (ticket.id().to_string(), other.to_string());
                Err(CallError::InvalidArguments { item, problem })
            }
        }
    }
}

// === impl Known ===

impl AsRef<Offer> for Known {
    fn as_ref(&self) -> &Offer {
        &self.offer
    }
}

// === impl Offered ===

impl Offered {
    /// Checks arguments against the schema that callers were given. Nothing else can be sent.
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

/// Loads and reads the document.
async fn know(settings: Arc<OpenApiSettings>) -> Result<Arc<Known>, AttemptError> {
    let wait = settings.startup_timeout;
    let loading = timeout(wait, load(&settings)).await;
    let late = || format!("its document was not read within {wait:?}; raise `startup_timeout`");
    let Loaded { text, home, stale } = loading.map_err(|_| late())??;
    let reading = Arc::clone(&settings);
    // On a blocking thread, because parsing a large document takes a while.
    let read = tokio::task::spawn_blocking(move || {
        let mut document = Document::parse(&text)?;
        let file = match &reading.source {
            Source::File(path) => Some(path.as_path()),
            Source::Web(_) => None,
        };
        let astray = document.take_in(file);
        let given = reading.base_url.as_ref().map(|base| base.reveal().as_str());
        let base = Base::choose(&document, given, home.as_ref(), &reading.addresses)?;
        let base = base.entrusted(&reading, home.as_ref())?;
        let auth = Auth::read(&document, &reading, &base, home.as_ref());
        let found = operation::read(&document, &reading, &base, &auth);
        let items = found.operations.iter().filter_map(Operation::item).collect::<Vec<_>>();
        Ok::<_, AttemptError>((document, astray, base, auth, found, items))
    });
    let (document, astray, base, auth, found, items) =
        timeout(wait, read).await.map_err(|_| late())?.map_err(|error| error.to_string())??;
    for line in found.left_out.iter().take(MAX_TOLD) {
        info!(server = %settings.name, "an operation is left out: {line}");
    }
    if found.operations.is_empty() {
        return Err(nothing(&found).into());
    }
    info!(server = %settings.name, tools = found.operations.len(), "its document is read");
    let about = About {
        protocol: "openapi".to_owned(),
        title: document.info("title"),
        version: document.info("version"),
        capabilities: Json::from_value(&json!({ "tools": {} })).ok(),
        ..About::default()
    };
    let lacking = auth.problem().or(stale).or_else(|| left_out(&found)).or(astray);
    let silent = settings.headers.is_empty() && base.query().is_none();
    let keyless = || auth.means(&wants(&Object::new(), &document)).lacking.filter(|_| silent);
    let lacking = lacking.or_else(keyless);
    let client = settings.client(base.address(), &settings.headers)?;
    let hold = |operation: Operation| {
        let means = auth.means(&operation.wants);
        Offered { operation, means, schema: OnceLock::new() }
    };
    let offered = found.operations.into_iter().map(|one| (one.name.clone(), hold(one))).collect();
    let offer = Offer { items: items.into(), about: Arc::new(about), lacking };
    Ok(Arc::new(Known { client, base, offered, offer }))
}

fn nothing(found: &Found) -> String {
    match (found.left_out.first(), found.all) {
        (Some(first), _) => format!("none of its operations can be offered: {first}"),
        (None, 0) => "its document has no operations".to_owned(),
        (None, all) => {
            format!("`tags`, `only` and `except` exclude all of its {all} operations")
        }
    }
}

/// Describes the wanted operations that cannot be offered.
fn left_out(found: &Found) -> Option<String> {
    let first = found.left_out.first()?;
    Some(match found.left_out.len() {
        1 => format!("an operation is left out: {first}"),
        more => format!("{more} operations are left out: {first}, and others"),
    })
}
