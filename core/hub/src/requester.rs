//! The other side of a front for one call: what decides, answers and identifies.

use std::sync::{Arc, OnceLock};

use capstan_wire::Json;
use futures::FutureExt as _;
use futures::future::ready;

use crate::catalog::RepeatedArguments;
use crate::ports::{
    Approval, Approver, Ask, BoxFuture, ClientSide, Lane, Notice, OwnTools, Question, Reply,
    ResourceLists, Unanswered, Wishes,
};
use crate::{Continuation, Ground};

/// The requester of a call, as its front passes it to the pipeline.
pub struct Requester<'a> {
    /// Decides on the call if a rule asks.
    pub approver: &'a dyn Approver,
    /// Receives the server's questions and notices, through a [`BackChannel`](crate::BackChannel).
    pub client: Arc<dyn ClientSide>,
    /// Tells the client apart from others.
    pub identity: ClientIdentity,
    /// The lists in which a resource without a server is found by its URI. Without them, its name is
    /// `server:uri`.
    pub resources: Option<&'a dyn ResourceLists>,
    /// True if the client sees all servers as one. URIs in answers are then shown in the form that
    /// leads back to their server.
    pub merged: bool,
    /// The number of tokens above which this front shows an answer in pages, if the operator has set
    /// no other number.
    pub max_tokens: Option<u32>,
    /// The arguments that the request repeats beside its body; `None` where none need to be.
    pub repeated: Option<&'a RepeatedArguments>,
    /// Capstan's own tools, if the client has them.
    pub own_tools: Option<OwnTools<'a>>,
    /// The connections of servers that suit the client.
    pub lane: Lane,
    /// Receives the continuation of a call that fails because its client must do something first.
    pub continued: Option<&'a OnceLock<Continuation>>,
}

/// The numbers that tell the client of a call apart from others. The default is the only client of
/// a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The calls among which a question may belong to any.
    pub group: CallGroup,
    /// The person behind the client.
    pub person: PersonId,
    /// The client that answers, across all of its calls; `None` if there is only one. The open
    /// questions of one client are counted together.
    pub client: Option<ClientId>,
}

/// Identifies the calls of one connection. A question that could belong to several calls is asked
/// only if all of them are in the same group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallGroup(pub u64);

/// Identifies a person, as far as a front can determine it; otherwise it is unique. If it is unclear
/// which call a question belongs to, only clients of the same person may receive each other's
/// questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PersonId(pub u64);

/// Identifies a client across its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// A front without a person or a client that could answer: it approves nothing and declines every
/// question.
#[derive(Clone, Copy, Debug)]
pub struct Unattended;

// === impl Requester ===

impl<'a> Requester<'a> {
    /// Creates the requester of a front where one value decides and answers.
    pub fn new<T: Approver + ClientSide + 'static>(
        front: &'a Arc<T>,
        identity: ClientIdentity,
    ) -> Self {
        let client = Arc::<T>::clone(front);
        Self { client, identity, approver: &**front, ..Self::unattended() }
    }

    /// Creates the requester of an [`Unattended`] front.
    pub fn unattended() -> Self {
        let identity = ClientIdentity::default();
        let (approver, client) = (&Unattended, Arc::new(Unattended));
        Self {
            approver,
            client,
            identity,
            resources: None,
            merged: false,
            max_tokens: None,
            repeated: None,
            own_tools: None,
            lane: Lane::ANY,
            continued: None,
        }
    }
}

// === impl PersonId ===

impl PersonId {
    /// The person at this machine.
    pub const LOCAL: Self = Self(0);
}

// === impl Unattended ===

impl Approver for Unattended {
    fn approve<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Approval> {
        ready(Approval::No(Ground::Nobody)).boxed()
    }

    fn inform(&self, _: &str) {}
}

impl ClientSide for Unattended {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        ask.by_person(|_| ready(Reply::Decline)).boxed()
    }

    fn notice(&self, _: Notice) {}

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
