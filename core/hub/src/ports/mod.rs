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
use jiff::Timestamp;

use crate::Answer;
use crate::pipeline::{Outgoing, System};

/// A boxed future; the price of keeping these traits usable as `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One server, whatever its transport.
pub trait Backend: Send + Sync {
    /// The server's name.
    fn name(&self) -> &ServerName;

    /// Its state now.
    fn state(&self) -> ServerState;

    /// Who the server is, as far as that is known; starts nothing.
    fn about(&self) -> Option<Arc<About>>;

    /// The connection in use, where there is one: most calls find it so.
    fn connected(self: Arc<Self>) -> Option<Arc<dyn Connection>>;

    /// Connects if need be. Concurrent callers share one attempt.
    fn connect(self: Arc<Self>) -> BoxFuture<'static, Result<Arc<dyn Connection>, CallError>>;

    /// Lets go of the connection and of what is behind it; requests under way end on it.
    fn disconnect(&self);

    /// Sends a message of our own to a server that is connected; starts nothing. A level and the end
    /// of a subscription hold for later connections too.
    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>>;

    /// The memory and processor time of its processes, where it has any.
    fn footprint(&self) -> Option<Footprint>;

    /// The last lines that the server wrote to its stderr, oldest first.
    fn stderr(&self) -> Vec<String>;

    /// Ends the connection and everything behind it, for good.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// One connection to a server. What is listed and sent here never goes to another one.
pub trait Connection: Send + Sync {
    /// A list that is at hand: nothing has to be waited for.
    fn listed(&self, listing: Listing) -> Option<Arc<[Item]>>;

    /// A list of the server, from memory until the server says that it changed.
    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>>;

    /// Sends what the pipeline let through. The server's questions and notices about a call or a task
    /// go to `operator` meanwhile.
    fn send<'a>(
        &'a self,
        outgoing: Outgoing<'a>,
        operator: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>>;
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
