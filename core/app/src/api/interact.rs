//! Events and questions that a running operation sends to its front.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use capstan_config::Problem;
use capstan_hub::approvals::Extent;
pub use capstan_hub::catalog::Need;
use capstan_hub::ports::{
    Approval, Approver, Ask as ServerQuestion, BoxFuture, ClientSide, Elicitation, Notice,
    Question, Reply, Unanswered, Want, Wishes,
};
use capstan_hub::{CallGroup, ClientIdentity, Ground, Requester};
use capstan_model::{By, Caller, Effect, Front, ItemId, Kind, ServerName};
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

use super::Missing;

/// The front of a running operation.
pub trait Interact: Send + Sync {
    /// Receives an event; must not block.
    fn event(&self, event: Event);

    /// Answers a question of the operation.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer>;

    /// Receives a description of what the operation now waits for.
    fn status(&self, text: &str) {
        self.event(Event::Status { text: text.to_owned() });
    }
}

/// Something that happens while an operation runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The configuration has a problem that stops a single server at most.
    Problem {
        /// The problem.
        problem: Problem,
    },
    /// The operation now waits for something else.
    Status {
        /// The wait, in words.
        text: String,
    },
    /// The server reports progress.
    Progress {
        /// Steps done.
        done: f64,
        /// Steps in total, if known.
        total: Option<f64>,
        /// The current step.
        message: Option<String>,
    },
    /// The server logs a message.
    Log {
        /// The server.
        server: ServerName,
        /// The level, in the server's words.
        level: String,
        /// The message.
        text: String,
    },
    /// Servers are missing from a list that was searched.
    Missing {
        /// The servers.
        missing: Missing,
    },
    /// The hub adds a note about the call.
    Note {
        /// The note.
        text: String,
    },
}

/// A question that an operation asks its front.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The arguments of a tool, now that its schema is known.
    Arguments {
        /// The schema, as the server wrote it.
        schema: Json,
    },
    /// The values of a prompt's arguments or a template's placeholders.
    Values {
        /// The declared slots.
        slots: Vec<Slot>,
    },
    /// A decision about a call that a rule asks about.
    Approve {
        /// The call.
        question: CallQuestion,
    },
    /// An answer to a question of a server.
    Elicit {
        /// The server's question.
        form: Form,
    },
}

/// The front's answer. An answer that does not fit the question counts as a refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The arguments of a tool.
    Arguments {
        /// An object.
        arguments: Json,
    },
    /// The values of slots.
    Values {
        /// Names with values.
        values: Vec<(String, String)>,
    },
    /// The arguments that were typed do not fit.
    Misfit(Misfit),
    /// The person who typed the command approves the call, unless an explicit rule asks.
    Believed,
    /// A person was asked and approves the call.
    Approved {
        /// The extent of the approval.
        extent: Extent,
    },
    /// A person was asked and refuses, or closed the question.
    Refused,
    /// No person can be asked.
    Nobody,
    /// The values of a form, or consent to open a page.
    Accepted {
        /// The values.
        content: Option<Json>,
    },
    /// The question of the server is declined.
    Declined,
}

/// Arguments that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// The problem, in one clause.
    pub problem: String,
    /// The remedy, if one is known.
    pub hint: Option<String>,
}

/// An argument of a prompt or a placeholder of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The name.
    pub name: String,
    /// Required or optional.
    pub need: Need,
    /// The server's description.
    pub description: Option<String>,
}

/// A call that a rule asks about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallQuestion {
    /// The item.
    pub id: ItemId,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The arguments.
    pub arguments: Json,
    /// The effect of the item.
    pub effect: Effect,
    /// The rule that asks.
    pub rule: String,
    /// An explicit rule, or the default.
    pub by: By,
    /// The extents that an approval may have; never empty, and the first is this one call.
    pub offers: Vec<Extent>,
    /// The id under which other shells can answer the question, if they can.
    pub open: Option<String>,
}

/// A question of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// The server, always shown.
    pub server: ServerName,
    /// The server's message.
    pub message: String,
    /// The schema of the values; `None` if a page is to be visited.
    pub schema: Option<Json>,
    /// The page to be visited.
    pub url: Option<String>,
}

/// The front as the requester of one call: a person.
pub(crate) struct Asker {
    front: Arc<dyn Interact>,
    /// Distinguishes calls of different fronts in one gateway.
    group: CallGroup,
}

// === impl CallQuestion ===

impl From<&Question> for CallQuestion {
    fn from(question: &Question) -> Self {
        Self {
            id: question.id.clone(),
            kind: question.kind,
            arguments: question.arguments.clone(),
            effect: question.effect,
            rule: question.rule.clone(),
            by: question.by,
            offers: question.offers.clone(),
            open: question.open.clone(),
        }
    }
}

impl From<CallQuestion> for Question {
    fn from(question: CallQuestion) -> Self {
        let CallQuestion { id, kind, arguments, effect, rule, by, offers, open } = question;
        let caller = Arc::new(Caller::operator(Front::Cli));
        Self { caller, id, kind, arguments, effect, rule, by, offers, open }
    }
}

// === impl Form ===

impl From<Elicitation> for Form {
    fn from(elicitation: Elicitation) -> Self {
        let Elicitation { server, message, want } = elicitation;
        match want {
            Want::Form(schema) => Self { server, message, schema: Some(schema), url: None },
            Want::Visit(url) => Self { server, message, schema: None, url: Some(url) },
        }
    }
}

impl From<Form> for Elicitation {
    fn from(form: Form) -> Self {
        let Form { server, message, schema, url } = form;
        let want = match url {
            Some(url) => Want::Visit(url),
            None => Want::Form(schema.unwrap_or_else(Json::empty_object)),
        };
        Self { server, message, want }
    }
}

// === impl Asker ===

impl Asker {
    pub(crate) fn new(front: &Arc<dyn Interact>) -> Arc<Self> {
        // Clients of a gateway are numbered from one; these start higher to avoid collisions.
        static NUMBERS: AtomicU64 = AtomicU64::new(1 << 48);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { front: Arc::clone(front), group: CallGroup(number) })
    }

    /// The requester of a call.
    pub(crate) fn requester(self: &Arc<Self>) -> Requester<'_> {
        Requester::new(self, ClientIdentity { group: self.group, ..ClientIdentity::default() })
    }
}

impl Approver for Asker {
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            match self.front.ask(Ask::Approve { question: question.into() }).await {
                Answer::Believed => match question.by {
                    By::Default => Approval::once(Ground::ByHand),
                    // A program can type a command too; a rule that asks wants a person.
                    By::Rule | By::Pins => Approval::No(Ground::Nobody),
                },
                // An extent that was not offered is not granted.
                Answer::Approved { extent } if question.offers.contains(&extent) => {
                    Approval::Yes(Ground::Asked, extent)
                }
                Answer::Nobody => Approval::No(Ground::Nobody),
                Answer::Approved { .. }
                | Answer::Refused
                | Answer::Arguments { .. }
                | Answer::Values { .. }
                | Answer::Misfit(_)
                | Answer::Accepted { .. }
                | Answer::Declined => Approval::No(Ground::Refused),
            }
        })
    }

    fn inform(&self, text: &str) {
        self.front.event(Event::Note { text: text.to_owned() });
    }
}

impl ClientSide for Asker {
    fn ask(&self, ask: ServerQuestion) -> BoxFuture<'_, Result<Json, Unanswered>> {
        Box::pin(ask.by_person(move |elicitation| async move {
            match self.front.ask(Ask::Elicit { form: elicitation.into() }).await {
                Answer::Accepted { content } => Reply::Accept(content),
                Answer::Declined | Answer::Nobody => Reply::Decline,
                Answer::Refused
                | Answer::Believed
                | Answer::Approved { .. }
                | Answer::Arguments { .. }
                | Answer::Values { .. }
                | Answer::Misfit(_) => Reply::Cancel,
            }
        }))
    }

    fn notice(&self, notice: Notice) {
        self.front.event(match notice {
            Notice::Progress { done, total, message, .. } => {
                Event::Progress { done, total, message }
            }
            Notice::Log { server, level, text, .. } => Event::Log { server, level, text },
            // A person has no list that could be outdated, and no extensions.
            Notice::Other { .. } => return,
        });
    }

    fn capabilities(&self) -> Option<Json> {
        None
    }

    fn wishes(&self) -> Wishes {
        Wishes::PERSON
    }

    fn outlives_answer(&self) -> bool {
        false
    }
}

/// Asks the front for the arguments of a tool.
pub(super) async fn arguments(front: &dyn Interact, schema: Json) -> Result<Json, Misfit> {
    let answer = front.ask(Ask::Arguments { schema }).await;
    if let Answer::Arguments { arguments } = answer { Ok(arguments) } else { Err(misfit(answer)) }
}

/// Asks the front for the values of slots.
pub(super) async fn values(
    front: &dyn Interact,
    slots: Vec<Slot>,
) -> Result<Vec<(String, String)>, Misfit> {
    let answer = front.ask(Ask::Values { slots }).await;
    if let Answer::Values { values } = answer { Ok(values) } else { Err(misfit(answer)) }
}

fn misfit(answer: Answer) -> Misfit {
    if let Answer::Misfit(misfit) = answer {
        return misfit;
    }
    Misfit { problem: "no arguments were given".to_owned(), hint: None }
}
