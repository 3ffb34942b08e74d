//! The port for the other side of a front, and the questions and notices that it receives.

use std::sync::Arc;

use capstan_model::{By, Caller, Effect, ItemId, Kind, ServerName};
use capstan_wire::protocol::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};

use super::BoxFuture;
use crate::Ground;
use crate::approvals::Extent;

/// JSON-RPC error code: the user refused the request.
const REFUSED_BY_USER: i64 = -1;

/// The other side of a front for one call: a person, a client program, or neither.
pub trait Operator: Send + Sync {
    /// Decides on a call that a rule asks about. Without a person the answer is no.
    ///
    /// Dropping the future withdraws the question, because it was answered elsewhere.
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval>;

    /// Called when a call that was asked about may run, independent of how it was approved.
    fn allowed(&self) {}

    /// Receives a message of the hub itself.
    fn told(&self, _text: &str) {}

    /// Answers a question of the server. Without a person the answer is [`Reply::Decline`].
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply>;

    /// Answers any question of the server. A person only answers elicitations. A client program may
    /// answer more; its answer is forwarded without being read.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        Box::pin(async move {
            match (ask.asking, ask.elicitation()) {
                (Asking::Elicit, Some(elicitation)) => Ok(self.elicit(elicitation).await.to_json()),
                (Asking::Elicit, None) => Ok(Reply::Decline.to_json()),
                (Asking::Sample | Asking::Roots, _) => Err(Unanswered::not_offered(ask.asking)),
            }
        })
    }

    /// Receives progress and log messages of the call.
    fn notice(&self, notice: Notice);

    /// The client program's capabilities, unchanged; `None` for a person. The hub's own
    /// capabilities apply to a person.
    fn able(&self) -> Option<Json> {
        None
    }

    /// The client's preferences for how a call is sent.
    fn wishes(&self) -> Wishes {
        Wishes::default()
    }

    /// Identifies the client that this operator represents. A question that could belong to several
    /// calls is asked only if all of them have the same party.
    fn party(&self) -> u64 {
        0
    }

    /// Identifies the person behind the client, as far as the front can determine it. If it cannot,
    /// the number is unique. If it is unclear which call a question belongs to, only parties of the
    /// same person may receive each other's questions.
    fn person(&self) -> u64 {
        0
    }

    /// Identifies the peer that answers, across all of its calls. Its open questions are counted
    /// together. 0 if there is only one peer.
    fn peer(&self) -> u64 {
        0
    }

    /// True if the request is a subscription. It then takes part in no call: it receives the
    /// subscription's notifications and nothing else.
    fn is_subscriber(&self) -> bool {
        false
    }

    /// Receives the notifications of its subscription, in order. Must not block.
    fn hear(&self, _method: &str, _params: &Json) {}

    /// True if messages about the call can still be delivered after its answer. The call may have
    /// become a task.
    fn hears_on(&self) -> bool {
        false
    }
}

/// A client's preferences for how a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// True if it wants progress notifications.
    pub progress: bool,
    /// True if a result that asks for input is returned unchanged. The client can repeat the call
    /// with the input.
    pub input_required: bool,
    /// True if it accepts a large result as a stream.
    pub flow: bool,
}

/// A question of a server, as received.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The server that asks.
    pub server: ServerName,
    /// The kind of question.
    pub asking: Asking,
    /// The params of the request, unchanged.
    pub params: Json,
}

/// The three kinds of questions that a server may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asking {
    /// Input from a person: `elicitation/create`.
    Elicit,
    /// A completion by a model: `sampling/createMessage`.
    Sample,
    /// The folders to work in: `roots/list`.
    Roots,
}

/// The error for a question that gets no result.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswered {
    /// The JSON-RPC code.
    pub code: i64,
    /// The error message.
    pub message: String,
}

/// A call that a rule asks about.
#[derive(Clone, Debug)]
pub struct Question {
    /// The caller.
    pub caller: Arc<Caller>,
    /// The item to be called.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The arguments of the call.
    pub arguments: Json,
    /// The effect of the item.
    pub effect: Effect,
    /// The rule that asks.
    pub rule: String,
    /// A rule that matches the call, which asks every time, or the default.
    pub by: By,
    /// The extents that an approval may have. Never empty; the first is this one call.
    pub offers: Vec<Extent>,
    /// The id under which other shells can show and answer the question, if there are any.
    pub open: Option<String>,
}

/// The operator's decision and its ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Run the call; the extent says which later calls are approved too.
    Yes(Ground, Extent),
    /// Do not run it.
    No(Ground),
}

/// An elicitation: a server asks the operator for input.
#[derive(Clone, Debug)]
pub struct Elicitation {
    /// The server that asks. Always shown, so that no server can pose as another.
    pub server: ServerName,
    /// The server's message.
    pub message: String,
    /// The requested input.
    pub want: Want,
}

/// The input that an elicitation requests.
#[derive(Clone, Debug)]
pub enum Want {
    /// Values for a form. The schema is flat and unchanged.
    Form(Json),
    /// A visit to a web page. Capstan never opens or fetches it without consent.
    Visit(String),
}

/// The answer to an elicitation.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Accepted, with the values of the form.
    Accept(Option<Json>),
    /// Refused.
    Decline,
    /// Not answered: the operator closed the question.
    Cancel,
}

/// A progress or log message of a server while a call runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Progress of the call.
    Progress {
        /// The server that sent it.
        server: ServerName,
        /// Steps done so far.
        done: f64,
        /// The total number of steps, if known.
        total: Option<f64>,
        /// The current activity.
        message: Option<String>,
        /// The complete params, unchanged.
        params: Json,
    },
    /// A log message of the server.
    Log {
        /// The server that sent it.
        server: ServerName,
        /// The log level.
        level: String,
        /// The text of the message.
        text: String,
        /// The complete params, unchanged.
        params: Json,
    },
}

// === impl Approval ===

impl Approval {
    /// Approves this one call.
    pub fn once(ground: Ground) -> Self {
        Self::Yes(ground, Extent::Once)
    }
}

// === impl Wishes ===

impl Default for Wishes {
    /// The preferences of a person.
    fn default() -> Self {
        Self { progress: true, input_required: false, flow: false }
    }
}

// === impl Asking ===

impl Asking {
    /// Returns the kind of question that a method asks; `None` if it is none of the three.
    pub fn of_method(method: &str) -> Option<Self> {
        match method {
            "elicitation/create" => Some(Self::Elicit),
            "sampling/createMessage" => Some(Self::Sample),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// The method of the request.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capability that a client needs to answer.
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
    /// Returns the refusal of an unanswered question, in the form that its kind prescribes.
    ///
    /// # Errors
    /// Sampling and roots have no refusing result; they get an error.
    pub fn declined(asking: Asking) -> Result<Json, Self> {
        match asking {
            Asking::Elicit => Ok(Reply::Decline.to_json()),
            Asking::Sample | Asking::Roots => {
                let message = "the user declined the request".to_owned();
                Err(Self { code: REFUSED_BY_USER, message })
            }
        }
    }

    /// Returns the error for a question that is not supported here.
    pub fn not_offered(asking: Asking) -> Self {
        let message = format!("`{}` is not offered here", asking.method());
        Self { code: METHOD_NOT_FOUND, message }
    }
}

// === impl Ask ===

impl Ask {
    /// Returns the elicitation for a person; `None` if the params do not describe a valid one.
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
    /// Returns the reply in the protocol's format.
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
