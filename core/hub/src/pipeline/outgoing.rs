//! The sealed message types that reach a server.
//!
//! Only this crate creates an [`Outgoing`] and its contents: a [`Ticket`] by `admit`, an
//! [`Admission`] by the steps of a side request, a [`TaskRequest`] and a [`TaskSubscription`] from
//! the handles that `screen` created. It also creates the [`System`] messages, from a fixed list. None of them can be forged
//! elsewhere:
//!
//! ```compile_fail,E0423
//! fn forge<'a>(message: capstan_hub::Message<'a>) -> capstan_hub::Outgoing<'a> {
//!     capstan_hub::Outgoing(message)
//! }
//! ```
//! ```compile_fail,E0451
//! fn any<T>() -> T { loop {} }
//! let forged = capstan_hub::Admission { id: any(), op: any(), lane: any(), back: any() };
//! ```
//! ```compile_fail,E0451
//! fn any<T>() -> T { loop {} }
//! let forged = capstan_hub::TaskHandle {
//!     of: any(), kind: any(), owner: any(), id: any(), lane: any(),
//! };
//! ```
//! ```compile_fail,E0451
//! fn any<T>() -> T { loop {} }
//! let forged = capstan_hub::TaskRequest { op: any(), ids: any(), params: any() };
//! ```
//! ```compile_fail,E0451
//! fn any<T>() -> T { loop {} }
//! let forged =
//!     capstan_hub::TaskSubscription { ids: any(), capabilities: any(), subscriber: any() };
//! ```
//! ```compile_fail,E0423
//! fn forge(message: capstan_hub::SystemMessage) -> capstan_hub::System {
//!     capstan_hub::System(message)
//! }
//! ```

use std::sync::Arc;

use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_model::{CallError, Effect, ServerName};
use capstan_wire::Json;

use super::admit::Ticket;
use super::side::{Admission, SideOp};
use crate::BackChannel;
use crate::ports::Subscriber;

/// A message that may be sent to a server.
#[derive(Clone, Copy)]
pub struct Outgoing<'a>(Message<'a>);

/// The content of an [`Outgoing`], for the adapter that sends it.
#[derive(Clone, Copy)]
pub enum Message<'a> {
    /// A call, and the way back to its client.
    Call(&'a Ticket, &'a BackChannel),
    /// A request about an item.
    Side(&'a Admission),
    /// An operation on tasks of one owner, and the way back to the client.
    Task(&'a TaskRequest, &'a BackChannel),
    /// A subscription to tasks of one owner.
    Follow(&'a TaskSubscription),
}

/// An operation on tasks, for their owner.
#[derive(Debug)]
pub struct TaskRequest {
    op: TaskOp,
    ids: Vec<String>,
    params: Json,
}

/// The operations on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOp {
    /// Reads its state.
    Get,
    /// Reads its result.
    Result,
    /// Answers the questions that it asks.
    Update,
    /// Cancels it.
    Cancel,
}

/// A subscription to notifications about tasks, for their owner. It lasts as long as the request.
pub struct TaskSubscription {
    ids: Vec<String>,
    capabilities: Json,
    subscriber: Arc<dyn Subscriber>,
}

/// A system message: it informs a server or reduces what it does, and starts nothing.
#[derive(Debug)]
pub struct System(SystemMessage);

/// The content of a [`System`] message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemMessage {
    /// Checks that the server still answers.
    Ping,
    /// Sets the log level, in the protocol's spelling.
    Level(String),
    /// Ends the notifications about this resource.
    Unsubscribe(String),
    /// Says that the folders of the client have changed. The server may ask for them again.
    RootsChanged,
}

// === impl Outgoing ===

impl<'a> Outgoing<'a> {
    pub(super) fn call(ticket: &'a Ticket, back: &'a BackChannel) -> Self {
        Self(Message::Call(ticket, back))
    }

    pub(super) fn side(admission: &'a Admission) -> Self {
        Self(Message::Side(admission))
    }

    pub(super) fn task(request: &'a TaskRequest, back: &'a BackChannel) -> Self {
        Self(Message::Task(request, back))
    }

    pub(super) fn follow(subscription: &'a TaskSubscription) -> Self {
        Self(Message::Follow(subscription))
    }

    /// The content of the message.
    pub fn message(&self) -> Message<'a> {
        self.0
    }

    /// Returns the error for a server that does not support the method.
    pub fn not_offered(&self, server: &ServerName) -> CallError {
        let method = match self.0 {
            Message::Call(ticket, _) => ticket.kind().method(),
            Message::Side(admission) => admission.op().method(),
            Message::Task(request, _) => request.op().method(),
            Message::Follow(_) => TaskSubscription::METHOD,
        };
        let message = format!("`{method}` is not offered");
        let (server, code) = (server.clone(), METHOD_NOT_FOUND);
        CallError::Server { server, code, message, whole: None, is_modern: false }
    }
}

// === impl TaskRequest ===

impl TaskRequest {
    pub(crate) fn new(op: TaskOp, ids: Vec<String>, params: Json) -> Self {
        Self { op, ids, params }
    }

    /// The operation.
    pub fn op(&self) -> TaskOp {
        self.op
    }

    /// The tasks, by the server's ids.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// The params of the request, which name the task.
    pub fn params(&self) -> &Json {
        &self.params
    }
}

// === impl TaskSubscription ===

impl TaskSubscription {
    /// The method.
    pub const METHOD: &'static str = "subscriptions/listen";

    pub(super) fn new(
        ids: Vec<String>,
        capabilities: Json,
        subscriber: Arc<dyn Subscriber>,
    ) -> Self {
        Self { ids, capabilities, subscriber }
    }

    /// The tasks, by the server's ids.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// The capabilities of the client that subscribes.
    pub fn capabilities(&self) -> &Json {
        &self.capabilities
    }

    /// The receiver of the notifications.
    pub fn subscriber(&self) -> &Arc<dyn Subscriber> {
        &self.subscriber
    }
}

// === impl TaskOp ===

impl TaskOp {
    /// The method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "tasks/get",
            Self::Result => "tasks/result",
            Self::Update => "tasks/update",
            Self::Cancel => "tasks/cancel",
        }
    }

    /// The effect that the operation can have. To cancel twice is to cancel once.
    pub fn effect(self) -> Effect {
        match self {
            Self::Get | Self::Result | Self::Cancel => Effect::Read,
            Self::Update => Effect::Write,
        }
    }
}

// === impl SideOp ===

impl SideOp {
    /// The method that completes a value.
    pub const COMPLETE: &'static str = "completion/complete";

    /// The method that subscribes, in the revisions before 2026-07-28.
    pub const SUBSCRIBE: &'static str = "resources/subscribe";

    /// The method.
    pub fn method(&self) -> &str {
        match self {
            Self::Complete(_) => Self::COMPLETE,
            Self::Subscribe => Self::SUBSCRIBE,
            Self::Extension { method, .. } => method.as_str(),
            Self::Notify { method, .. } => method.as_str(),
        }
    }

    /// The method in the audit entry. A method of an extension is in the name of its item.
    pub fn recorded_method(&self) -> &'static str {
        match self {
            Self::Complete(_) => Self::COMPLETE,
            Self::Subscribe => Self::SUBSCRIBE,
            Self::Extension { .. } | Self::Notify { .. } => "extension",
        }
    }

    /// The name of the item that the operation is by itself, for rules; `None` if it is about another
    /// item.
    pub fn own_item(&self) -> Option<String> {
        match self {
            Self::Complete(_) | Self::Subscribe => None,
            Self::Extension { method, .. } => Some(method.item()),
            Self::Notify { method, .. } => Some(method.item()),
        }
    }

    /// The effect that the operation can have.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Complete(_) | Self::Subscribe => Effect::Read,
            Self::Extension { method, .. } if method.reads() => Effect::Read,
            Self::Extension { .. } | Self::Notify { .. } => Effect::Unknown,
        }
    }
}

// === impl System ===

impl System {
    pub(crate) fn ping() -> Self {
        Self(SystemMessage::Ping)
    }

    pub(crate) fn level(word: String) -> Self {
        Self(SystemMessage::Level(word))
    }

    pub(crate) fn unsubscribe(uri: String) -> Self {
        Self(SystemMessage::Unsubscribe(uri))
    }

    pub(crate) fn roots_changed() -> Self {
        Self(SystemMessage::RootsChanged)
    }

    /// The content of the message.
    pub fn message(&self) -> &SystemMessage {
        &self.0
    }
}
