//! What a server may ask the operator while it works on a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_model::{ServerName, Trust, Verdict};
use capstan_policy::Policy;
use futures::FutureExt;
use futures::future::{Either, select};
use tracing::warn;

use crate::Limits;
use crate::hub::Hub;
use crate::ports::{Approval, BoxFuture, Clock, Elicitation, Notice, Operator, Question, Reply};

/// Stands between a server and the operator: lets through what the rules allow, so many at a
/// time, and answers no for an operator who does not answer in time.
pub struct Gate {
    operator: Arc<dyn Operator>,
    policy: Arc<Policy>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    open: Arc<AtomicUsize>,
}

/// A place among the questions that are open; given back when dropped.
struct Place(Arc<AtomicUsize>);

// === impl Gate ===

impl Gate {
    pub(crate) fn new(hub: &Hub, operator: Arc<dyn Operator>) -> Self {
        Self {
            operator,
            policy: Arc::clone(&hub.policy),
            clock: Arc::clone(&hub.clock),
            limits: hub.limits,
            open: Arc::clone(&hub.open_questions),
        }
    }

    fn forbids(&self, server: &ServerName) -> bool {
        let denied = self
            .policy
            .rule_on_elicitation(server, self.clock.now())
            .is_some_and(|ruling| ruling.verdict == Verdict::Deny);
        denied || self.policy.trust_of(server) == Trust::Sandboxed
    }

    fn take_place(&self) -> Option<Place> {
        let next = |open: usize| (open < self.limits.max_questions).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        Some(Place(Arc::clone(&self.open)))
    }

    async fn ask(&self, elicitation: Elicitation) -> Reply {
        let server = elicitation.server.clone();
        if self.forbids(&server) {
            return Reply::Decline;
        }
        let Some(_place) = self.take_place() else {
            let limit = self.limits.max_questions;
            warn!(%server, limit, "too many open questions; this one is declined");
            return Reply::Decline;
        };
        let answer = self.operator.elicit(elicitation);
        let too_late = self.clock.sleep(self.limits.question_wait);
        match select(answer, too_late).await {
            Either::Left((reply, _)) => reply,
            Either::Right(((), _)) => {
                warn!(%server, "nobody answered the server's question in time; it is declined");
                Reply::Decline
            }
        }
    }
}

impl Operator for Gate {
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval> {
        self.operator.approve(question)
    }

    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, Reply> {
        self.ask(elicitation).boxed()
    }

    fn notice(&self, notice: Notice) {
        self.operator.notice(notice);
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
