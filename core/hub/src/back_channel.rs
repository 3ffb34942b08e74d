//! The gate for questions that a server asks the operator during a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::{ServerName, Trust, Verdict};
use capstan_policy::Policy;
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::{Either, select};
use tracing::warn;

use crate::Limits;
use crate::hub::Hub;
use crate::ports::{
    Approval, Ask, BoxFuture, Clock, Elicitation, Notice, Operator, Question, Reply, Unanswered,
    Wishes,
};

/// If there are several peers, each may have this fraction (1/n) of the open questions.
const SHARES: usize = 4;

/// A gate between a server and the operator. It forwards the questions that the rules allow, up to
/// a limit of open questions, and declines those that are not answered before the deadline.
pub struct Gate {
    operator: Arc<dyn Operator>,
    policy: Arc<Policy>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    open: Arc<OpenQuestions>,
    /// The server whose questions are forwarded.
    server: ServerName,
    /// True if a large answer may be streamed.
    may_flow: bool,
}

/// The number of open questions of servers, by the peer that has to answer them.
#[derive(Debug, Default)]
pub struct OpenQuestions(Mutex<HashMap<u64, usize>>);

/// A place in the limit of open questions, released on drop.
struct Place {
    open: Arc<OpenQuestions>,
    peer: u64,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(hub: &Hub, server: &ServerName, operator: Arc<dyn Operator>) -> Self {
        Self {
            operator,
            policy: Arc::clone(&hub.policy),
            clock: Arc::clone(&hub.clock),
            limits: hub.limits,
            open: Arc::clone(&hub.open_questions),
            server: server.clone(),
            may_flow: !hub.audit.withholds(),
        }
    }

    fn forbids(&self, server: &ServerName) -> bool {
        forbids(&self.policy, &*self.clock, server)
    }

    /// Takes a place for a question; `None` if the limit or the peer's share is reached.
    fn take_place(&self) -> Option<Place> {
        let (peer, most) = (self.operator.peer(), self.limits.max_questions);
        // If there is only one peer, its share is the whole limit.
        let each = if peer == 0 { most } else { most.div_ceil(SHARES) };
        let mut open = self.open.counts();
        let of_peer = open.get(&peer).copied().unwrap_or_default();
        if open.values().sum::<usize>() >= most || of_peer >= each {
            return None;
        }
        open.insert(peer, of_peer + 1);
        drop(open);
        Some(Place { open: Arc::clone(&self.open), peer })
    }

    /// Forwards a question; `None` if it may not be asked or is not answered before the deadline.
    async fn pass<'a, T>(
        &self,
        server: &ServerName,
        ask: impl FnOnce() -> BoxFuture<'a, T>,
    ) -> Option<T> {
        if self.forbids(server) {
            return None;
        }
        let Some(_place) = self.take_place() else {
            let limit = self.limits.max_questions;
            warn!(%server, limit, "too many open questions; this one is declined");
            return None;
        };
        let too_late = self.clock.sleep(self.limits.question_wait);
        match select(ask(), too_late).await {
            Either::Left((reply, _)) => Some(reply),
            Either::Right(((), _)) => {
                warn!(%server, "nobody answered the server's question in time; it is declined");
                None
            }
        }
    }
}

impl Hub {
    /// True if a server may ask the other side of a front any questions.
    pub fn may_ask(&self, server: &ServerName) -> bool {
        !forbids(&self.policy, &*self.clock, server)
    }
}

fn forbids(policy: &Policy, clock: &dyn Clock, server: &ServerName) -> bool {
    let denied = policy
        .rule_on_elicitation(server, clock.now())
        .is_some_and(|ruling| ruling.verdict == Verdict::Deny);
    denied || policy.trust_of(server) == Trust::Sandboxed
}

impl Operator for Gate {
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval> {
        self.operator.approve(question)
    }

    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply> {
        async move {
            let server = elicitation.server.clone();
            let ask = || self.operator.elicit(elicitation);
            self.pass(&server, ask).await.unwrap_or(Reply::Decline)
        }
        .boxed()
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        async move {
            let (server, asking) = (ask.server.clone(), ask.asking);
            let answer = self.pass(&server, || self.operator.ask(ask)).await;
            answer.unwrap_or_else(|| Unanswered::declined(asking))
        }
        .boxed()
    }

    fn able(&self) -> Option<Json> {
        self.operator.able()
    }

    fn wishes(&self) -> Wishes {
        let wishes = self.operator.wishes();
        // A forbidden question is declined here and not passed to the client.
        let input_required = wishes.input_required && !self.forbids(&self.server);
        Wishes { input_required, flow: wishes.flow && self.may_flow, ..wishes }
    }

    fn party(&self) -> u64 {
        self.operator.party()
    }

    fn person(&self) -> u64 {
        self.operator.person()
    }

    fn peer(&self) -> u64 {
        self.operator.peer()
    }

    fn hears_on(&self) -> bool {
        self.operator.hears_on()
    }

    fn notice(&self, notice: Notice) {
        self.operator.notice(notice);
    }
}

// === impl OpenQuestions ===

impl OpenQuestions {
    fn counts(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.counts();
        if let Some(count) = open.get_mut(&self.peer) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}
