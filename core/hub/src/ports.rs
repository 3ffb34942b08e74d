//! What the road needs from outside, as traits.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, Effect, ItemId, Kind, ServerName, ServerState};
use capstan_wire::Json;
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

    /// The last lines that the server wrote to its stderr, oldest first.
    fn stderr(&self) -> Vec<String>;

    /// Ends the connection and everything behind it.
    fn close(&self) -> BoxFuture<'_, ()>;
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

    /// Is told how the call goes.
    fn notice(&self, notice: Notice);
}

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
    },
    /// A log message of the server.
    Log {
        /// Who says so.
        server: ServerName,
        /// How serious it is.
        level: String,
        /// What it says.
        text: String,
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

// === impl Listing ===

impl Listing {
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
