//! What the road needs from outside, as traits: servers and the clock here, people and programs in
//! `operator`, what servers say unasked in `listener`, what is written down in `audit`, what is
//! kept in `store`, `pins` and `rules`, what the life of servers needs in `life`.

mod audit;
mod life;
mod listener;
mod operator;
mod pins;
mod rules;
mod store;

pub use audit::{AuditLog, Settling, Unwritten};
pub use life::{Footprint, Manifests, Pace, UsageLog, UsageRow};
pub use listener::{Changes, Listener};
pub use operator::{
    Approval, Ask, Asking, Elicitation, Notice, Operator, Question, Reply, Unanswered, Want, Wishes,
};
pub use pins::{Approved, Newcomer, Pin, PinOwner, PinStore};
pub use rules::{NewRule, NotSaved, RuleBook};
pub use store::{Binding, Grant, Store, StoreError};

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::Json;
use capstan_wire::protocol::METHOD_NOT_FOUND;
use jiff::Timestamp;

use crate::Answer;
use crate::catalog::Typing;
use crate::pipeline::Ticket;

/// A boxed future; the price of keeping these traits usable as `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One server, whatever its transport.
pub trait Backend: Send + Sync {
    /// The server's name.
    fn name(&self) -> &ServerName;

    /// How it is right now.
    fn state(&self) -> ServerState;

    /// Connects if need be and says who the server is.
    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>>;

    /// Who the server is, as far as that is known; starts nothing.
    fn known(&self) -> Option<Arc<About>> {
        None
    }

    /// Says what the server offers, from memory until it changes; connects if it is not known.
    fn list(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>>;

    /// The same, on nobody's behalf: a server that starts when a client lists is not started for it.
    ///
    /// # Errors
    /// As for a list, and when nothing is known of such a server.
    fn glance(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        self.list(listing)
    }

    /// Connects if need be and says what the server itself offers now. What is decided about a
    /// call is decided on this.
    fn current(&self, listing: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        self.list(listing)
    }

    /// The same, where nothing has to be waited for to know it: most calls find it so.
    fn at_hand(&self, _listing: Listing) -> Option<Arc<[Item]>> {
        None
    }

    /// Connects if need be.
    fn wake(&self) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async { self.about().await.map(drop) })
    }

    /// Lets go of the connection and of what is behind it; whatever is asked next connects again.
    ///
    /// For when nothing is under way. What is, ends on the old connection.
    fn rest(&self) {}

    /// Asks a server that is connected whether it is still there.
    ///
    /// # Errors
    /// When it does not answer.
    fn check(&self) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How it is used, where that is counted.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// What its processes use up, where it has any.
    fn footprint(&self) -> Option<Footprint> {
        None
    }

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
    /// What the server asks or tells meanwhile goes to `operator`, where there is one. Nothing is
    /// offered by default, which is what a server without the capability says.
    fn errand<'a>(
        &'a self,
        errand: &'a Errand,
        _operator: Option<Arc<dyn Operator>>,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
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
    /// Tell how these tasks go, for as long as somebody waits for the end of it.
    Follow(Vec<String>),
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
    /// The method by which it is asked, in the older revisions where they have it.
    pub fn method(&self) -> &str {
        match self {
            Self::Complete(_) => "completion/complete",
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::Level(_) => "logging/setLevel",
            Self::Task(method, _) => method,
            Self::Follow(_) => "subscriptions/listen",
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
