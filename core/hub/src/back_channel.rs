//! The way back from a server to the client of a call, with a gate for the server's questions.
//!
//! An adapter gets a [`BackChannel`] with each call and cannot reach the client without it:
//!
//! ```compile_fail,E0616
//! fn bypass(back: &capstan_hub::BackChannel) {
//!     let _ = back.0.client.wishes();
//! }
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::{ServerName, Trust, Verdict};
use capstan_policy::Policy;
use capstan_wire::Json;
use futures::future::{Either, select};
use tracing::warn;

use crate::catalog::Screens;
use crate::hub::{Hub, Limits};
use crate::ports::{Ask, Asking, AuditLog, ClientSide, Clock, Notice, Unanswered, Wishes};
use crate::requester::{CallGroup, ClientId, ClientIdentity, PersonId};

/// If there are several clients, each may have this fraction (1/n) of the open questions.
const SHARES: usize = 4;

/// The way back from a server to the client of one call.
///
/// It forwards the questions that the rules allow, up to a limit of open questions, and declines
/// those that are not answered before the deadline. Clones share the same client.
#[derive(Clone)]
pub struct BackChannel(Arc<Route>);

struct Route {
    gate: Arc<QuestionGate>,
    client: Arc<dyn ClientSide>,
    identity: ClientIdentity,
    /// The server whose questions are forwarded.
    server: ServerName,
}

/// The rules and limits for questions of servers.
pub(crate) struct QuestionGate {
    pub(crate) policy: Arc<Policy>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audit: Arc<dyn AuditLog>,
    pub(crate) limits: Limits,
    pub(crate) open: Arc<OpenQuestions>,
    pub(crate) screens: Arc<Screens>,
}

/// The number of open questions of servers, by the client that has to answer them.
#[derive(Debug, Default)]
pub struct OpenQuestions(Mutex<HashMap<Option<ClientId>, usize>>);

/// A place in the limit of open questions, released on drop.
struct Place<'a> {
    open: &'a OpenQuestions,
    client: Option<ClientId>,
}

// === impl BackChannel ===

impl BackChannel {
    /// Creates the way back from a server to a client.
    pub fn new(
        hub: &Hub,
        server: &ServerName,
        client: Arc<dyn ClientSide>,
        identity: ClientIdentity,
    ) -> Self {
        let (gate, server) = (Arc::clone(&hub.gate), server.clone());
        Self(Arc::new(Route { gate, client, identity, server }))
    }

    /// Asks the client a question of the server.
    ///
    /// # Errors
    /// When the client answers with an error. A question that may not be asked, or is not answered
    /// before the deadline, is declined.
    pub async fn ask(&self, asking: Asking, params: Json) -> Result<Json, Unanswered> {
        let Route { gate, client, identity, server } = &*self.0;
        if gate.forbids(server) {
            return Unanswered::declined(asking);
        }
        let Some(_place) = gate.open.take(identity.client, gate.limits.max_questions) else {
            let limit = gate.limits.max_questions;
            warn!(%server, limit, "too many open questions; this one is declined");
            return Unanswered::declined(asking);
        };
        let too_late = gate.clock.sleep(gate.limits.question_wait);
        let question = client.ask(Ask { server: server.clone(), asking, params });
        match select(question, too_late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => {
                warn!(%server, "the server's question was not answered in time; it is declined");
                Unanswered::declined(asking)
            }
        }
    }

    /// Forwards a progress or log message of the call.
    pub fn notice(&self, notice: Notice) {
        self.0.client.notice(notice);
    }

    /// The client program's capabilities, unchanged; `None` for a person.
    pub fn capabilities(&self) -> Option<Json> {
        self.0.client.capabilities()
    }

    /// The client's preferences for how the call is sent, as far as they can be granted.
    pub fn wishes(&self) -> Wishes {
        let Route { gate, client, server, .. } = &*self.0;
        let wishes = client.wishes();
        // A forbidden question is declined here and not passed to the client.
        let input_required = wishes.input_required && !gate.forbids(server);
        // An answer that waits for its audit entry, may become pages, or may be masked or blocked,
        // is not streamed.
        let flow = wishes.flow
            && !gate.audit.withholds()
            && gate.limits.max_tokens.is_none()
            && !gate.screens.needs_whole(server);
        Wishes { input_required, flow, ..wishes }
    }

    /// The calls among which a question may belong to any.
    pub fn group(&self) -> CallGroup {
        self.0.identity.group
    }

    /// The person behind the client.
    pub fn person(&self) -> PersonId {
        self.0.identity.person
    }

    /// True if messages about the call can still be delivered after its answer.
    pub fn outlives_answer(&self) -> bool {
        self.0.client.outlives_answer()
    }
}

// === impl QuestionGate ===

impl QuestionGate {
    /// True if a server may ask no questions.
    fn forbids(&self, server: &ServerName) -> bool {
        let denied = self
            .policy
            .rule_on_elicitation(server, self.clock.now())
            .is_some_and(|ruling| ruling.verdict == Verdict::Deny);
        denied || self.policy.trust_of(server) == Trust::Sandboxed
    }
}

impl Hub {
    /// True if a server may ask the other side of a front any questions.
    pub fn may_ask(&self, server: &ServerName) -> bool {
        !self.gate.forbids(server)
    }
}

// === impl OpenQuestions ===

impl OpenQuestions {
    /// Takes a place for a question; `None` if the limit or the client's share is reached.
    fn take(&self, client: Option<ClientId>, limit: usize) -> Option<Place<'_>> {
        // If there is only one client, its share is the whole limit.
        let share = if client.is_none() { limit } else { limit.div_ceil(SHARES) };
        let mut counts = self.counts();
        let of_client = counts.get(&client).copied().unwrap_or_default();
        if counts.values().sum::<usize>() >= limit || of_client >= share {
            return None;
        }
        counts.insert(client, of_client + 1);
        drop(counts);
        Some(Place { open: self, client })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Option<ClientId>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Place ===

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut counts = self.open.counts();
        if let Some(count) = counts.get_mut(&self.client) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}
