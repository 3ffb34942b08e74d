//! Decides on calls that a rule asks about: who can approve them, and for how long.
//!
//! Read in this order: `extent` defines how much an approval covers, `memory` caches earlier
//! approvals, `pending_approvals` keeps open questions for the operator's other shells, `rule`
//! turns a saved approval into a rule, `digest` binds an approval to its arguments, `arguments`
//! formats them for a person. This file defines the order in which these are consulted. `answer` is the operator's
//! side of the pending approvals.
//!
//! **Invariant:** an approval runs at most one call, and only a yes to exactly this question
//! overrides a rule that asks.

mod extent;
mod memory;
mod digest;
mod arguments;
mod rule;
mod pending_approvals;
mod answer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capstan_model::{By, Caller, Front};
use futures::FutureExt as _;
use futures::future::{Either, select};
use tracing::{debug, warn};

pub use answer::{
    Answer, AnswerError, Answered, OpenQuestion, Stands, answer_kept, kept_questions,
};
pub use arguments::{Layout, Masks, ShownArguments};
pub(crate) use digest::{digest, hex};
pub use digest::{digest_of, policy_version};
pub use extent::{Extent, Span, Width};
pub(crate) use memory::Memory;
pub use pending_approvals::{MAX_OPEN, MAX_OWN};
pub use rule::NoRule;

use pending_approvals::{PendingApprovals, Waiting};

use crate::Ground;
use crate::ports::{
    Approval, Approver, Binding, Clock, NewRule, Question, RuleBook, Store, StoreError,
};

/// How long a question can be answered, and how long an approval is valid if no call waits for it.
pub const GOOD_FOR: Duration = Duration::from_mins(10);

/// Decides on calls that a rule asks about.
#[derive(Default)]
pub struct Approvals {
    /// How long an approval by the front's operator may last.
    spans: Vec<Span>,
    /// Saves permanent approvals as rules.
    rules: Option<Arc<dyn RuleBook>>,
    /// Permanent approvals since this process started; after a restart, they are rules.
    saved: Arc<Memory>,
    others: Option<Others>,
    defaults: DefaultAsks,
}

/// The party that is asked about a client's call that only the default asks about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DefaultAsks {
    /// The operator, as about all other calls.
    #[default]
    Operator,
    /// The client's own dialog, which has asked before the call arrives.
    Client,
}

/// Settings for asking the operator in other shells, away from the front.
pub struct OtherShells {
    /// Keeps approvals for which no call is waiting.
    pub store: Arc<dyn Store>,
    /// The clock for waiting and expiry.
    pub clock: Arc<dyn Clock>,
    /// The version of the policy that is in force.
    pub policy: String,
    /// How long a call waits for an answer from another shell if the front has no operator. `None`
    /// asks no other shell: only approvals that were given before count.
    pub wait: Option<Duration>,
    /// Makes the ids of questions differ from those of other processes.
    pub seed: u64,
}

/// The outcome of a question.
pub(crate) struct Decision {
    pub(crate) approval: Approval,
    /// The id of the question, if it can still be answered.
    pub(crate) open: Option<String>,
    /// The time for which an answer was awaited in vain.
    pub(crate) waited: Option<Duration>,
}

struct Others {
    shells: OtherShells,
    /// Shared with later `Approvals` under the same policy, so that questions stay open over a
    /// reload.
    pending: Arc<PendingApprovals>,
    /// True if the log already has a warning that the store is broken.
    is_told: AtomicBool,
}

// === impl Approvals ===

impl Approvals {
    /// Asks only the front's operator, whose approvals may last for these spans.
    pub fn at_the_front(spans: Vec<Span>, rules: Arc<dyn RuleBook>) -> Self {
        Self { spans, rules: Some(rules), ..Self::default() }
    }

    /// Adds the operator's other shells as a place to ask.
    #[must_use]
    pub fn and_elsewhere(self, shells: OtherShells) -> Self {
        let pending = Arc::new(PendingApprovals::new(shells.seed));
        Self { others: Some(Others { shells, pending, is_told: AtomicBool::new(false) }), ..self }
    }

    /// Leaves calls of clients that only the default asks about to the client's own dialog.
    ///
    /// Rules that ask, and pins, still ask the operator.
    #[must_use]
    pub fn leaving_defaults_to_the_client(self) -> Self {
        Self { defaults: DefaultAsks::Client, ..self }
    }

    /// Takes over the state of the `Approvals` that this one replaces.
    ///
    /// If the policy is unchanged, open questions stay open and permanent approvals stay valid.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        if let (Some(others), Some(known)) = (&mut self.others, &before.others) {
            others.shells.store = Arc::clone(&known.shells.store);
            // Questions that were asked under another policy cannot be answered.
            if others.shells.policy == known.shells.policy {
                others.pending = Arc::clone(&known.pending);
                self.saved = Arc::clone(&before.saved);
            }
        }
        self
    }

    /// Decides on a call. Asks the front's operator and the other shells if necessary.
    pub(crate) async fn decide(
        &self,
        session: &Arc<Memory>,
        question: &Question,
        approver: &dyn Approver,
    ) -> Decision {
        if let Some(others) = &self.others {
            session.under(&others.shells.policy);
        }
        if self.remember(session, question) {
            return Approval::once(Ground::Remembered).into();
        }
        if self.is_confirmed_by_client(question) {
            return Approval::once(Ground::ClientConfirms).into();
        }
        let question = Question { offers: self.offers(question, &self.spans), ..question.clone() };
        let Some(others) = &self.others else {
            let approval = approver.approve(&question).await;
            return self.settle(session, &question, approval, approver).await.into();
        };
        let binding = others.binding(&question);
        // Where no other shell is asked, the operator types the call, which answers the default.
        let counts = others.shells.wait.is_some() || question.by != By::Default;
        if counts && others.has_approval(&binding).await {
            return Approval::once(Ground::OtherShell).into();
        }
        let opened = others.shells.wait.and_then(|wait| {
            let asked = others.shells.clock.monotonic();
            let waiting = others.pending.open(&question, binding, session, asked);
            if waiting.is_none() {
                say_full();
            }
            Some((waiting?, wait))
        });
        let Some((waiting, wait)) = opened else {
            let approval = approver.approve(&question).await;
            return self.settle(session, &question, approval, approver).await.into();
        };
        let question = Question { open: Some(waiting.id.clone()), ..question };
        let Decision { approval, open, waited } =
            others.ask(waiting, wait, &question, approver).await;
        if let Some(id) = &open {
            others.keep(id).await;
        }
        // An answer from another shell was saved there.
        let approval = match approval {
            Approval::Yes(Ground::OtherShell, _) | Approval::No(_) => approval,
            Approval::Yes(..) => self.settle(session, &question, approval, approver).await,
        };
        Decision { approval, open, waited }
    }

    /// True if the client's own dialog asks about this call, and nothing but the default does here.
    fn is_confirmed_by_client(&self, question: &Question) -> bool {
        let is_default = match question.by {
            By::Default => true,
            By::Rule | By::Pins => false,
        };
        let is_client = match question.caller.front {
            Front::Gateway => true,
            Front::Cli | Front::Terminal => false,
        };
        self.defaults == DefaultAsks::Client && is_default && is_client
    }

    /// True if an earlier approval that covers more than one call covers this question.
    pub(crate) fn remember(&self, session: &Memory, question: &Question) -> bool {
        session.answers(question) || self.saved.answers(question)
    }

    /// Returns the extents that an approval may have: beyond this call only if no explicit rule
    /// asks.
    fn offers(&self, question: &Question, spans: &[Span]) -> Vec<Extent> {
        let mut offers = vec![Extent::Once];
        for span in spans {
            let widths = Width::ALL.into_iter();
            let fitting = widths.filter(|width| self.offered(question, *width, *span).is_ok());
            offers.extend(fitting.map(|width| Extent::Wider(width, *span)));
        }
        offers
    }

    /// Checks that an approval may have this extent, and says why if not.
    fn offered(&self, question: &Question, width: Width, span: Span) -> Result<(), AnswerError> {
        if question.by != By::Default {
            return Err(AnswerError::AsksEveryTime { rule: question.rule.clone() });
        }
        match (span, &self.rules) {
            (Span::Session, _) if width == Width::ServerReads => {
                rule::rule_for(question, width).map(drop).map_err(AnswerError::NoRule)
            }
            (Span::Session, _) => Ok(()),
            (Span::Saved, Some(_)) => {
                rule::rule_for(question, width).map(drop).map_err(AnswerError::NoRule)
            }
            (Span::Saved, None) => Err(AnswerError::NowhereToSave),
        }
    }

    /// Saves an approval by the operator at the front.
    async fn settle(
        &self,
        session: &Memory,
        question: &Question,
        approval: Approval,
        approver: &dyn Approver,
    ) -> Approval {
        let Approval::Yes(ground, extent @ Extent::Wider(width, span)) = approval else {
            return approval;
        };
        // An extent that was not offered is ignored; the yes to the call itself counts.
        if !question.offers.contains(&extent) {
            return Approval::once(ground);
        }
        match span {
            Span::Session => session.keep(width, question),
            Span::Saved => match self.save(width, question).await {
                Ok(place) => approver.inform(&format!("allowed from now on by {place}")),
                Err(error) => {
                    let text = format!("the answer could not be saved: {error}");
                    warn!("{text}");
                    approver.inform(&text);
                    session.keep(width, question);
                }
            },
        }
        approval
    }

    /// Saves an approval as a rule. Returns where the rule was written.
    async fn save(&self, width: Width, question: &Question) -> Result<String, AnswerError> {
        let rules = self.rules.as_ref().ok_or(AnswerError::NowhereToSave)?;
        let rule: NewRule = rule::rule_for(question, width).map_err(AnswerError::NoRule)?;
        let place = rules.allow(&rule).await.map_err(AnswerError::NotSaved)?;
        self.saved.keep(width, question);
        Ok(place)
    }
}

// === impl Decision ===

impl From<Approval> for Decision {
    fn from(approval: Approval) -> Self {
        Self { approval, open: None, waited: None }
    }
}

// === impl Others ===

impl Others {
    fn binding(&self, question: &Question) -> Binding {
        // A remote caller differs from a local one, even with the same name.
        let Caller { subject, binding, .. } = &*question.caller;
        Binding {
            subject: match binding {
                capstan_model::Binding::Access => subject.clone(),
                capstan_model::Binding::Free => format!("{subject} (local)"),
            },
            kind: question.kind,
            item: question.id.to_string(),
            arguments: digest(&question.arguments),
            policy: self.shells.policy.clone(),
        }
    }

    /// Uses up an approval that was given for this call while no call was waiting.
    async fn has_approval(&self, binding: &Binding) -> bool {
        match self.shells.store.take(binding, self.shells.clock.now()).await {
            Ok(taken) => {
                self.is_told.store(false, Ordering::Relaxed);
                taken
            }
            Err(error) => {
                self.say_broken(&error);
                false
            }
        }
    }

    /// Logs that the store is broken, as a warning only once per outage.
    ///
    /// The operator at the front and in other shells is still asked.
    fn say_broken(&self, error: &StoreError) {
        let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = "approvals from other shells cannot be read";
        if self.is_told.swap(true, Ordering::Relaxed) {
            debug!(%error, cause, "{text}");
        } else {
            warn!(%error, cause, "{text}");
        }
    }

    /// Asks at the front and in other shells at the same time.
    ///
    /// The first answer counts, and the other question is withdrawn. If both answers are there at
    /// once, a no counts.
    async fn ask(
        &self,
        mut waiting: Waiting<'_>,
        wait: Duration,
        question: &Question,
        approver: &dyn Approver,
    ) -> Decision {
        let clock = &self.shells.clock;
        let began = clock.monotonic();
        match select(&mut waiting.answer, approver.approve(question)).await {
            Either::Left((Ok(answer), at_the_front)) => {
                return match (answer, at_the_front.now_or_never()) {
                    (Answer::Yes(_), Some(no @ Approval::No(ground)))
                        if ground != Ground::Nobody =>
                    {
                        no.into()
                    }
                    (Answer::Yes(_) | Answer::No, _) => answer.into(),
                };
            }
            Either::Left((Err(_), _)) => return Approval::No(Ground::Nobody).into(),
            Either::Right((Approval::No(Ground::Nobody), _)) => {}
            // The client may have declined without its user; the operator can still say yes.
            Either::Right((approval @ Approval::No(Ground::ClientDeclined), _)) => {
                return match waiting.answer.try_recv() {
                    Ok(Some(Answer::No)) => Answer::No.into(),
                    Ok(Some(Answer::Yes(_))) | Err(_) => approval.into(),
                    Ok(None) => Decision { approval, open: Some(waiting.id.clone()), waited: None },
                };
            }
            Either::Right((approval, _)) => {
                return if waiting.withdraw() { Answer::No.into() } else { approval.into() };
            }
        }
        let left = wait.saturating_sub(clock.monotonic().saturating_sub(began));
        announce(&waiting.id, question, approver, left);
        let answered = select(&mut waiting.answer, clock.sleep(left)).await;
        match answered {
            Either::Left((Ok(answer), _)) => answer.into(),
            Either::Left((Err(_), _)) => Approval::No(Ground::Nobody).into(),
            Either::Right(((), _)) => {
                let waited = clock.monotonic().saturating_sub(began);
                Decision {
                    approval: Approval::No(Ground::Nobody),
                    open: Some(waiting.id.clone()),
                    waited: (waited.as_secs() > 0).then_some(waited),
                }
            }
        }
    }
}

/// Announces that a call waits for approval: in the log, and to the client.
fn announce(id: &str, question: &Question, approver: &dyn Approver, left: Duration) {
    let Question { id: item, caller, effect, rule, .. } = question;
    let what = if left.is_zero() { "refused without an approval" } else { "waiting for approval" };
    warn!(
        "{what} {id}: `{}` for {:?} ({}, {rule}); answer with: capstan approvals yes {id}",
        item.to_string().escape_debug(),
        caller.subject,
        effect.as_str(),
    );
    // A call that is refused at once gets this information from the error.
    if !left.is_zero() {
        approver.inform(&format!("{what}: `{item}` (question {id})"));
    }
}

fn say_full() {
    warn!("too many open questions; only the client is asked");
}
