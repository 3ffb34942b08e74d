//! Whoever is on the other side of a front, and what passes between them and a server.

use std::sync::Arc;

use capstan_model::{By, Caller, Effect, ItemId, Kind, ServerName};
use capstan_wire::protocol::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose, object};

use super::BoxFuture;
use crate::Ground;
use crate::approvals::Extent;

/// JSON-RPC: a person said no.
const REFUSED_BY_USER: i64 = -1;

/// Whoever is on the other side of a front, for the length of one call: a person, or nobody.
pub trait Operator: Send + Sync {
    /// Decides on a call that a rule asks about. Without a person the answer is no.
    ///
    /// Dropping the future withdraws the question: somebody else has answered it.
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval>;

    /// Is told that a call that was asked about may run, whoever said so.
    fn allowed(&self) {}

    /// Is told something by the hub itself.
    fn told(&self, _text: &str) {}

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

    /// Who is behind it, as far as the front can tell; where it cannot, nobody else has that number.
    /// Where it is not clear whose question it is, only parties of one person may be taken for each
    /// other.
    fn person(&self) -> u64 {
        0
    }

    /// Who has to answer, over all of its calls: its open questions are counted together. 0 where
    /// there is only one.
    fn peer(&self) -> u64 {
        0
    }

    /// Whether its request is a subscription. Then it is a party to no call: it hears what comes
    /// there, and nothing else.
    fn is_subscriber(&self) -> bool {
        false
    }

    /// Is told what comes on its subscription, in order; must not wait.
    fn hear(&self, _method: &str, _params: &Json) {}

    /// Whether what a server says of the call reaches anybody once it is answered: it may have
    /// become a task.
    fn hears_on(&self) -> bool {
        false
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
    /// Whether it takes a large result while that is still coming.
    pub flow: bool,
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

/// A call that a rule asks about.
#[derive(Clone, Debug)]
pub struct Question {
    /// On whose behalf.
    pub caller: Arc<Caller>,
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
    /// Whether that is a rule of its own, which asks every time, or only the default.
    pub by: By,
    /// How far a yes may reach here; never empty, and the first is this one call.
    pub offers: Vec<Extent>,
    /// The name under which other shells can show and answer it, where there are any.
    pub open: Option<String>,
}

/// The operator's decision, and on what ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Run it, and so much more.
    Yes(Ground, Extent),
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

// === impl Approval ===

impl Approval {
    /// Run this one call.
    pub fn once(ground: Ground) -> Self {
        Self::Yes(ground, Extent::Once)
    }
}

// === impl Wishes ===

impl Default for Wishes {
    /// Those of a person.
    fn default() -> Self {
        Self { progress: true, input_required: false, flow: false }
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
    /// What a server is told whose question nobody answers: no, in the words of what it asked.
    ///
    /// # Errors
    /// For what has no word for no.
    pub fn declined(asking: Asking) -> Result<Json, Self> {
        match asking {
            Asking::Elicit => Ok(Reply::Decline.to_json()),
            Asking::Sample | Asking::Roots => {
                let message = "the user declined the request".to_owned();
                Err(Self { code: REFUSED_BY_USER, message })
            }
        }
    }

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
