//! The ports: traits through which core uses servers, people, models, storage and the clock.
//!
//! Servers and the clock are defined here, the connections of a server in `lane`, the client of a call in `client`, the resources that it
//! sees in `resources`, decisions on calls in `approver`, messages that belong to no call in `listener`, the audit log in `audit`, storage in
//! `store`, `pins`, `rules`, `answers` and `access_tokens`, secrets in `vault`, the state of the authorization server in `authorization`,
//! manifests and usage of servers in `life`, tool search in `search`, and language models in `chat`.

mod access_tokens;
mod answers;
mod approver;
mod audit;
mod authorization;
mod chat;
mod client;
mod lane;
mod life;
mod listener;
mod pins;
mod own_tools;
mod resources;
mod rules;
mod search;
mod store;
mod login;
mod vault;

pub use access_tokens::{AccessToken, AccessTokens};
pub use answers::{AnswerFiles, AnswerOwner, ListedAnswer, SavedAnswer};
pub use approver::{Approval, Approver, Question};
pub use audit::{AuditLog, Settling, Unwritten};
pub use authorization::{
    AuthorizationStore, ClientSource, ClientStore, GrantStore, KeyStore, StoredClient, StoredCode,
    StoredGrant, StoredKey, StoredToken, StoredUser, TakenCode, UserStore,
};
pub use chat::{
    ChatEnd, ChatError, ChatEvent, ChatMessage, ChatModel, ChatPart, ChatRequest, ImagePart,
    ProviderData, Role, Stop, TokenCount, ToolCall, ToolOffer, ToolResult,
};
pub use client::{
    Ask, Asking, ClientSide, Elicitation, Notice, Reply, Subscriber, Unanswered, Want, Wishes,
};
pub use lane::{Connected, Era, Lane, Principal, PrincipalId};
pub use life::{Footprint, Manifests, Pace, SavedText, UsageLog, UsageRow};
pub use listener::{Changes, Listener};
pub use login::{CallerLogins, LoginPerson, LoginStep, PendingLogin};
pub use own_tools::{OwnTools, ToolLists};
pub use pins::{Approved, Newcomer, Pin, PinOwner, PinStore};
pub use resources::ResourceLists;
pub use rules::{NewRule, NotSaved, RuleBook};
pub use search::{IndexedTools, Score, Scores, SearchedTool, Slot, ToolIndex, Wanted};
pub use store::{Binding, Grant, KeptQuestion, Store, StoreError};
pub use vault::{Vault, VaultError, VaultKey, VaultKind, VaultLock, VaultPlace};

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{CallError, ServerName, ServerState};
use capstan_wire::{Json, object};
use jiff::Timestamp;

use crate::Answer;
use crate::pipeline::{Outgoing, System};

/// A boxed future. The traits return it so that they can be used as `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A server, independent of its transport.
pub trait Backend: Send + Sync {
    /// The server's name.
    fn name(&self) -> &ServerName;

    /// The current state of the server.
    fn state(&self) -> ServerState;

    /// The server's identity, if it is known. Starts nothing.
    fn about(&self) -> Option<Arc<About>>;

    /// Returns the open connections of a lane, if none is missing. For most calls none is.
    fn connected(self: Arc<Self>, lane: Lane) -> Option<Connected>;

    /// Opens the connections of a lane that are missing. Concurrent callers share one attempt
    /// (single-flight).
    fn connect(self: Arc<Self>, lane: Lane) -> BoxFuture<'static, Result<Connected, CallError>>;

    /// True if callers of one era may get a connection of their own.
    fn may_have_lanes(&self) -> bool {
        false
    }

    /// Releases all connections and what is behind them. Requests in flight still finish on them.
    fn disconnect(&self);

    /// Releases the connections that only calls of a lane use, in the same way. Returns true if
    /// there was one.
    fn disconnect_lanes(&self) -> bool;

    /// Sends a system message to a connected server. Starts nothing. A log level and the end of a
    /// subscription also apply to later connections.
    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>>;

    /// The memory and processor time of the server's processes, if it has any.
    fn footprint(&self) -> Option<Footprint>;

    /// The last lines that the server wrote to its stderr, oldest first.
    fn stderr(&self) -> Vec<String>;

    /// Closes the connection and everything behind it permanently.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A connection to a server. Lists and messages of one value never use another connection.
pub trait Connection: Send + Sync {
    /// The server's identity on this connection; `None` if the [server](Backend::about) has only one.
    fn identity(&self) -> Option<Arc<About>> {
        None
    }

    /// Returns a list that is in memory, without waiting.
    fn listed(&self, listing: Listing) -> Option<Arc<[Item]>>;

    /// Returns a list of the server, from memory until the server reports a change.
    fn list(
        self: Arc<Self>,
        listing: Listing,
    ) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>>;

    /// Returns the members of a list's result besides its items, as the server sent them: `_meta`,
    /// caching, and unknown ones. `None` if the list was not read, or has none.
    fn list_members(&self, _: Listing) -> Option<Json> {
        None
    }

    /// Sends a message that the pipeline admitted. The server's questions and notices about a call
    /// or a task go to the back channel in the message until the answer arrives.
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>>;
}

/// The identity of a connected server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The protocol revision in use.
    pub protocol: String,
    /// The name that the server reports. It is displayed and never used in a decision.
    pub title: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its instructions, unchanged.
    pub instructions: Option<String>,
    /// Its capabilities, unchanged.
    pub capabilities: Option<Json>,
    /// Its description of itself (`serverInfo`), unchanged.
    pub info: Option<Json>,
    /// How long its description may be cached; only modern servers say.
    pub caching: Option<Caching>,
}

/// How long a server allows a result to be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// The time in milliseconds.
    pub ttl_ms: u64,
    /// True if the result may be shared by clients of several callers.
    pub is_public: bool,
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

/// An entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name, URI or URI template that requests use.
    pub name: String,
    /// The complete definition, byte for byte as the server sent it.
    pub definition: Json,
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// The time since a fixed moment. It never jumps.
    fn monotonic(&self) -> Duration;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

// === impl Caching ===

impl Caching {
    /// Reads what a result says; `None` if it does not say how long.
    pub fn of(result: &Json) -> Option<Self> {
        let [ttl, scope] = object::peek(result, ["ttlMs", "cacheScope"]);
        let ttl_ms = ttl?.read().ok()?;
        Some(Self { ttl_ms, is_public: scope.is_some_and(|it| it.as_bytes() == b"\"public\"") })
    }
}

// === impl Listing ===

impl Listing {
    /// All four lists.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The method that requests the list.
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

    /// The member of an item that holds its [`name`](Item::name).
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
