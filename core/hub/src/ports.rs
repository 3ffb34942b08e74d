//! What the road needs from outside, as traits.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use capstan_model::{CallError, Effect, ItemId, Kind, ServerName, ServerState};
use capstan_wire::protocol::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};
use jiff::Timestamp;

use crate::catalog::Typing;
use crate::pipeline::Ticket;
use crate::{Answer, Entry, Ground};

/// A boxed future; the price of keeping these traits usable as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One server, whatever its transport.
pub trait Backend: Send + Sync {
    /// The server's name.
    fn name(&self) -> &ServerName;

    /// How it is right now.
    fn state(&self) -> ServerState;

    /// Connects if need be and says who the server is.
    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>>;

    /// Connects if need be and says what the server offers, from memory until it changes.
    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>>;

    /// Does what the ticket says.
    ///
    /// The ticket is the proof that the call was resolved, permitted, approved and admitted.
    /// What the server asks back while it works goes to `operator`.
    fn run<'a>(
        &'a self,
        ticket: &'a Ticket,
        operator: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>>;

    /// Connects if need be and says what a value that is being typed could become.
    ///
    /// Nothing, unless the server declares that it can say.
    fn complete<'a>(
        &'a self,
        _typing: &'a Typing,
    ) -> BoxFuture<'a, Result<Vec<String>, CallError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Connects if need be and asks something that is neither a call nor a list.
    ///
    /// Nothing is offered by default, which is what a server without the capability says.
    fn errand<'a>(&'a self, errand: &'a Errand) -> BoxFuture<'a, Result<Json, CallError>> {
        let (server, code) = (self.name().clone(), METHOD_NOT_FOUND);
        let message = format!("`{}` is not offered", errand.method());
        let error = CallError::Server { server, code, message, whole: None };
        Box::pin(std::future::ready(Err(error)))
    }

    /// The last lines that the server wrote to its stderr, oldest first.
    fn stderr(&self) -> Vec<String>;

    /// Ends the connection and everything behind it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// What a front asks of a server beside calls and lists.
#[derive(Clone, Debug, PartialEq)]
pub enum Errand {
    /// What a value that is being typed could become; the params as the client wrote them.
    Complete(Json),
    /// Tell when this resource changes.
    Subscribe(String),
    /// No longer tell when this resource changes.
    Unsubscribe(String),
    /// Tell this much about what goes on; the protocol's word for the level.
    Level(String),
    /// Something about a task that a call has started: the method, and the params as the client
    /// wrote them.
    Task(String, Json),
}

/// Who a connected server is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The protocol revision spoken with it.
    pub protocol: String,
    /// What it calls itself; shown, never decided upon.
    pub title: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its instructions, as it wrote them.
    pub instructions: Option<String>,
    /// Its capabilities, as it wrote them.
    pub capabilities: Option<Json>,
}

/// The four lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// Its resource templates.
    Templates,
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name, URI or URI template by which it is asked for.
    pub name: String,
    /// Everything the server says of it, as it was written.
    pub definition: Json,
}

/// Whoever is on the other side of a front, for the length of one call: a person, or nobody.
pub trait Operator: Send + Sync {
    /// Decides on a call that a rule asks about. Without a person the answer is no.
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval>;

    /// Answers a question of the server. Without a person the answer is [`Reply::Decline`].
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply>;

    /// Answers whatever the server asks. For a person that is an elicitation and nothing else; a
    /// program on the other side may take more, and its answer is the protocol's, unread.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        Box::pin(async move {
            match (ask.asking, ask.elicitation()) {
                (Asking::Elicit, Some(elicitation)) => Ok(self.elicit(elicitation).await.to_json()),
                (Asking::Elicit, None) => Ok(Reply::Decline.to_json()),
                (Asking::Sample | Asking::Roots, _) => Err(Unanswered::not_offered(ask.asking)),
            }
        })
    }

    /// Is told how the call goes.
    fn notice(&self, notice: Notice);

    /// What the program on the other side says it can do, as it wrote it; `None` for a person,
    /// for whom the hub speaks.
    fn able(&self) -> Option<Json> {
        None
    }

    /// What the other side wants of the way a call is sent.
    fn wishes(&self) -> Wishes {
        Wishes::default()
    }

    /// Whom this operator speaks for. A question that could belong to any of several calls is
    /// asked only when all of them are of the same party.
    fn party(&self) -> u64 {
        0
    }
}

/// What the other side wants of the way a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Whether it wants to know how far the call has come.
    pub progress: bool,
    /// Whether a result that asks for input is handed out as it is: the other side knows how to
    /// come back with it.
    pub input_required: bool,
}

/// A question of a server, unread.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Who asks.
    pub server: ServerName,
    /// For what.
    pub asking: Asking,
    /// The params of its request, as it wrote them.
    pub params: Json,
}

/// The three things a server may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asking {
    /// Something of a person: `elicitation/create`.
    Elicit,
    /// Something of a model: `sampling/createMessage`.
    Sample,
    /// The folders to work in: `roots/list`.
    Roots,
}

/// Why a question of a server has no result.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswered {
    /// The JSON-RPC code.
    pub code: i64,
    /// In words.
    pub message: String,
}

/// Is told what servers say that belongs to no call.
pub trait Listener: Send + Sync {
    /// A list of the server may have changed.
    fn list_changed(&self, server: &ServerName, listing: Listing);

    /// A resource that somebody subscribed to has changed; the params as the server wrote them.
    fn resource_updated(&self, server: &ServerName, params: &Json);

    /// Something else that the server tells to whom it may concern.
    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>);
}

/// Passes on what servers say to whoever listens; servers are made before the listener is.
#[derive(Default)]
pub struct Changes(OnceLock<Arc<dyn Listener>>);

/// A call that a rule asks about.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is to be done.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// With which arguments.
    pub arguments: Json,
    /// What it does.
    pub effect: Effect,
    /// The rule that asks.
    pub rule: String,
}

/// The operator's decision, and on what ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Run this one call.
    Yes(Ground),
    /// Do not run it.
    No(Ground),
}

/// A question of a server to the operator.
#[derive(Clone, Debug)]
pub struct Elicitation {
    /// Who asks. Always shown, so that no server can pose as another.
    pub server: ServerName,
    /// What it says.
    pub message: String,
    /// What it wants.
    pub want: Want,
}

/// What an elicitation wants.
#[derive(Clone, Debug)]
pub enum Want {
    /// Values for a form; the schema is flat and as the server wrote it.
    Form(Json),
    /// A visit to a page. Never opened or fetched by us without a yes.
    Visit(String),
}

/// The answer to an elicitation.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Yes, with the values of the form.
    Accept(Option<Json>),
    /// No.
    Decline,
    /// No answer at all: the operator closed the question.
    Cancel,
}

/// What happens while a call runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// How far the server has come.
    Progress {
        /// Who says so.
        server: ServerName,
        /// Steps done.
        done: f64,
        /// Steps in all, where known.
        total: Option<f64>,
        /// What it is doing.
        message: Option<String>,
        /// All that it says, as it wrote it.
        params: Json,
    },
    /// A log message of the server.
    Log {
        /// Who says so.
        server: ServerName,
        /// How serious it is.
        level: String,
        /// What it says.
        text: String,
        /// All that it says, as it wrote it.
        params: Json,
    },
}

/// Where finished calls are written down.
pub trait AuditLog: Send + Sync {
    /// Records one call. Called exactly once for every call, whatever became of it.
    fn record(&self, entry: Entry);
}

/// The time.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, which never jumps.
    fn monotonic(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

// === impl Errand ===

impl Errand {
    /// The method by which it is asked, in the older revisions.
    pub fn method(&self) -> &str {
        match self {
            Self::Complete(_) => "completion/complete",
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::Level(_) => "logging/setLevel",
            Self::Task(method, _) => method,
        }
    }
}

// === impl Wishes ===

impl Default for Wishes {
    /// Those of a person.
    fn default() -> Self {
        Self { progress: true, input_required: false }
    }
}

// === impl Asking ===

impl Asking {
    /// What a request of a server asks for; `None` when nobody can be asked that.
    pub fn of_method(method: &str) -> Option<Self> {
        match method {
            "elicitation/create" => Some(Self::Elicit),
            "sampling/createMessage" => Some(Self::Sample),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// The method that asks.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capability of whoever can be asked.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation",
            Self::Sample => "sampling",
            Self::Roots => "roots",
        }
    }
}

// === impl Unanswered ===

impl Unanswered {
    /// Nobody said that this may be asked.
    pub fn not_offered(asking: Asking) -> Self {
        let message = format!("`{}` is not offered here", asking.method());
        Self { code: METHOD_NOT_FOUND, message }
    }
}

// === impl Ask ===

impl Ask {
    /// The question as a person can be asked it; `None` when it is none, or makes no sense.
    pub fn elicitation(&self) -> Option<Elicitation> {
        let text = |key| object::get_string(&self.params, key);
        let want = match (text("mode").as_deref(), text("url")) {
            (Some("url"), Some(url)) => Want::Visit(url),
            (Some("form") | None, _) => Want::Form(object::get(&self.params, "requestedSchema")?),
            _ => return None,
        };
        let message = text("message").unwrap_or_default();
        Some(Elicitation { server: self.server.clone(), message, want })
    }
}

// === impl Reply ===

impl Reply {
    /// The answer as the protocol spells it.
    pub fn to_json(&self) -> Json {
        let action = |word| compose::string(word);
        match self {
            Self::Accept(Some(content)) => {
                compose::object(&[("action", &action("accept")), ("content", content)])
            }
            Self::Accept(None) => compose::object(&[("action", &action("accept"))]),
            Self::Decline => compose::object(&[("action", &action("decline"))]),
            Self::Cancel => compose::object(&[("action", &action("cancel"))]),
        }
    }
}

// === impl Changes ===

impl Changes {
    /// Sets who listens. Only the first does.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        drop(self.0.set(listener));
    }
}

impl Listener for Changes {
    fn list_changed(&self, server: &ServerName, listing: Listing) {
        if let Some(listener) = self.0.get() {
            listener.list_changed(server, listing);
        }
    }

    fn resource_updated(&self, server: &ServerName, params: &Json) {
        if let Some(listener) = self.0.get() {
            listener.resource_updated(server, params);
        }
    }

    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        if let Some(listener) = self.0.get() {
            listener.told(server, method, params);
        }
    }
}

// === impl Listing ===

impl Listing {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The method that lists.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of the result that holds the list.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item by which it is asked for.
    pub fn name_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The capability that a server with such a list declares.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }
}
