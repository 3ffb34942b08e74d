//! The ports for the client side of a front, and the questions and notices that it receives.

use capstan_model::ServerName;
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};

use super::BoxFuture;

/// JSON-RPC error code: the user refused the request.
const REFUSED_BY_USER: i64 = -1;

/// The client side of a call: a client program, or the front of a person.
pub trait ClientSide: Send + Sync {
    /// Answers a question of the server. A client program gets the question unchanged, and its
    /// answer is forwarded without being read. For a person, see [`Ask::by_person`].
    ///
    /// Dropping the future withdraws the question.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>>;

    /// Receives progress and log messages of the call. Must not block.
    fn notice(&self, notice: Notice);

    /// The client program's capabilities, unchanged; `None` for a person. The hub's own
    /// capabilities apply to a person.
    fn capabilities(&self) -> Option<Json>;

    /// The client's preferences for how a call is sent.
    fn wishes(&self) -> Wishes;

    /// True if messages about the call can still be delivered after its answer. The call may have
    /// become a task.
    fn outlives_answer(&self) -> bool;
}

/// The receiver of a subscription's notifications.
pub trait Subscriber: Send + Sync {
    /// Receives the notifications of its subscription, in order. Must not block.
    fn notify(&self, method: &str, params: &Json);
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
    /// The log level for a server that expects one with every call, if the call names none. Without
    /// one, such a server sends no log messages.
    pub level: Option<&'static str>,
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

/// An elicitation: a server asks a person for input.
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
    /// Not answered: the person closed the question.
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
    /// Any other notification among the messages of the call: a changed list, or one of an
    /// extension.
    Other {
        /// The method of the notification.
        method: Box<str>,
        /// The complete params, unchanged.
        params: Option<Json>,
    },
}

// === impl Wishes ===

impl Wishes {
    /// The preferences of a person.
    pub const PERSON: Self =
        Self { progress: true, input_required: false, flow: false, level: None };
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

    /// Answers the question as a person does, who only answers elicitations.
    ///
    /// # Errors
    /// When it asks for something else. An invalid elicitation is declined.
    pub async fn by_person<F: Future<Output = Reply>>(
        self,
        answer: impl FnOnce(Elicitation) -> F,
    ) -> Result<Json, Unanswered> {
        match (self.asking, self.elicitation()) {
            (Asking::Elicit, Some(elicitation)) => Ok(answer(elicitation).await.to_json()),
            (Asking::Elicit, None) => Ok(Reply::Decline.to_json()),
            (Asking::Sample | Asking::Roots, _) => Err(Unanswered::not_offered(self.asking)),
        }
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
