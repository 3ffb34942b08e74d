//! What a server may ask the operator while it works on a call.

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

/// One peer of several has this part of all questions that may be open.
const SHARES: usize = 4;

/// Stands between a server and the operator: lets through what the rules allow, so many at a
/// time, and answers no for an operator who does not answer in time.
pub struct Gate {
    operator: Arc<dyn Operator>,
    policy: Arc<Policy>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    open: Arc<OpenQuestions>,
    /// Whose questions go through.
    server: ServerName,
    /// Whether a large answer may be delivered while it comes.
    may_flow: bool,
}

/// Questions of servers that are open right now, by the peer that has to answer them.
#[derive(Debug, Default)]
pub struct OpenQuestions(Mutex<HashMap<u64, usize>>);

/// A place among the questions that are open; given back when dropped.
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

    /// A place for one more question; `None` when there is none, or this peer has its share.
    fn take_place(&self) -> Option<Place> {
        let (peer, most) = (self.operator.peer(), self.limits.max_questions);
        // Where there is one peer, everything is its share.
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

    /// Lets a question through; `None` when nobody gets to see it, or nobody answers in time.
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
    /// Whether a server may ask the other side of a front anything at all.
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
        // What may not be asked is answered here, and not handed out.
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
