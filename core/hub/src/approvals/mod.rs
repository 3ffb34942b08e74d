//! Who may say yes to a call that a rule asks about, and for how long.
//!
//! Read in this order: `extent` says how far a yes reaches, `memory` what is remembered of
//! earlier ones, `desk` where questions lie open for other shells, `rule` what a saved yes
//! becomes, `digest` what binds an approval to its arguments, `arguments` how a person sees them; here is the order in which they
//! are asked. `answer` is the other end: the operator who looks at the desk.
//!
//! **Invariant:** an approval runs one call at most, and nothing but a yes to the very question
//! lifts a rule that asks.

mod extent;
mod memory;
mod digest;
mod arguments;
mod rule;
mod desk;
mod answer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capstan_model::{By, Caller};
use futures::FutureExt as _;
use futures::future::{Either, select};
use tracing::{debug, warn};

pub use answer::{Answer, AnswerError, Answered, OpenQuestion, Stands};
pub use arguments::{Layout, Masks, ShownArguments};
pub use desk::{MAX_OPEN, MAX_OWN};
pub(crate) use digest::{digest, hex};
pub use digest::{digest_of, policy_version};
pub use extent::{Extent, Span, Width};
pub(crate) use memory::Memory;
pub use rule::NoRule;

use desk::{Desk, Waiting};

use crate::Ground;
use crate::ports::{
    Approval, Binding, Clock, NewRule, Operator, Question, RuleBook, Store, StoreError,
};

/// How long a question can be answered, and how long its approval is good when nobody waits.
pub const GOOD_FOR: Duration = Duration::from_mins(10);

/// Decides on calls that a rule asks about.
#[derive(Default)]
pub struct Approvals {
    /// How long what the front's operator says may hold.
    spans: Vec<Span>,
    /// Where a yes for ever is written.
    rules: Option<Arc<dyn RuleBook>>,
    /// What was said yes to for ever since this process began; the rules know it after a restart.
    saved: Arc<Memory>,
    others: Option<Others>,
}

/// How the operator is reached who is not at the front.
pub struct OtherShells {
    /// Where approvals are kept that nobody waits for.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which policy is in force.
    pub policy: String,
    /// How long a call waits when nobody is at the front.
    pub wait: Duration,
    /// Makes the names of questions unlike those of other processes.
    pub seed: u64,
}

/// What became of a question.
pub(crate) struct Decision {
    pub(crate) approval: Approval,
    /// The name of the question, where it can still be answered.
    pub(crate) open: Option<String>,
}

struct Others {
    shells: OtherShells,
    /// Shared by all approvals that came after each other: a question stays open.
    desk: Arc<Desk>,
    /// Whether somebody was told that the store does not work.
    is_told: AtomicBool,
}

// === impl Approvals ===

impl Approvals {
    /// Only the front's operator is asked; what they say may hold for so long.
    pub fn at_the_front(spans: Vec<Span>, rules: Arc<dyn RuleBook>) -> Self {
        Self { spans, rules: Some(rules), ..Self::default() }
    }

    /// The operator can be asked in other shells too.
    #[must_use]
    pub fn and_elsewhere(self, shells: OtherShells) -> Self {
        let desk = Arc::new(Desk::new(shells.seed));
        Self { others: Some(Others { shells, desk, is_told: AtomicBool::new(false) }), ..self }
    }

    /// These take the place of others: if the policy is still the same, questions that lie open there
    /// lie open here, and what was said yes to holds on.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        if let (Some(others), Some(known)) = (&mut self.others, &before.others) {
            others.shells.store = Arc::clone(&known.shells.store);
            // Under another policy nobody can say yes to what was asked under the one before.
            if others.shells.policy == known.shells.policy {
                others.desk = Arc::clone(&known.desk);
                self.saved = Arc::clone(&before.saved);
            }
        }
        self
    }

    /// Decides on a call, asking whoever can be asked.
    pub(crate) async fn decide(
        &self,
        session: &Arc<Memory>,
        question: &Question,
        operator: &dyn Operator,
    ) -> Decision {
        if let Some(others) = &self.others {
            session.under(&others.shells.policy);
        }
        if self.remember(session, question) {
            return Approval::once(Ground::Remembered).into();
        }
        let question = Question { offers: self.offers(question, &self.spans), ..question.clone() };
        let Some(others) = &self.others else {
            let approval = operator.approve(&question).await;
            return self.settle(session, &question, approval, operator).await.into();
        };
        let binding = others.binding(&question);
        if others.has_approval(&binding).await {
            return Approval::once(Ground::OtherShell).into();
        }
        let asked = others.shells.clock.monotonic();
        let Some(waiting) = others.desk.open(&question, binding, session, asked) else {
            say_full();
            let approval = operator.approve(&question).await;
            return self.settle(session, &question, approval, operator).await.into();
        };
        let question = Question { open: Some(waiting.id.clone()), ..question };
        let Decision { approval, open } = others.ask(waiting, &question, operator).await;
        // What was said elsewhere is settled there.
        let approval = match approval {
            Approval::Yes(Ground::OtherShell, _) | Approval::No(_) => approval,
            Approval::Yes(..) => self.settle(session, &question, approval, operator).await,
        };
        Decision { approval, open }
    }

    /// Whether somebody has said yes to this for longer than one call.
    pub(crate) fn remember(&self, session: &Memory, question: &Question) -> bool {
        session.answers(question) || self.saved.answers(question)
    }

    /// How far a yes may reach: further than this call only where no rule of its own asks.
    fn offers(&self, question: &Question, spans: &[Span]) -> Vec<Extent> {
        let mut offers = vec![Extent::Once];
        for span in spans {
            let widths = Width::ALL.into_iter();
            let fitting = widths.filter(|width| self.offered(question, *width, *span).is_ok());
            offers.extend(fitting.map(|width| Extent::Wider(width, *span)));
        }
        offers
    }

    /// Why a yes may not reach that far, when it may not.
    fn offered(&self, question: &Question, width: Width, span: Span) -> Result<(), AnswerError> {
        if question.by == By::Rule {
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

    /// Keeps what the operator at the front said yes to.
    async fn settle(
        &self,
        session: &Memory,
        question: &Question,
        approval: Approval,
        operator: &dyn Operator,
    ) -> Approval {
        let Approval::Yes(ground, extent @ Extent::Wider(width, span)) = approval else {
            return approval;
        };
        // What was not offered was not agreed to; the yes to the call itself stands.
        if !question.offers.contains(&extent) {
            return Approval::once(ground);
        }
        match span {
            Span::Session => session.keep(width, question),
            Span::Saved => match self.save(width, question).await {
                Ok(place) => operator.told(&format!("allowed from now on by {place}")),
                Err(error) => {
                    let text = format!("the answer could not be saved: {error}");
                    warn!("{text}");
                    operator.told(&text);
                    session.keep(width, question);
                }
            },
        }
        approval
    }

    /// Writes a yes into the rules; where.
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
        Self { approval, open: None }
    }
}

// === impl Others ===

impl Others {
    fn binding(&self, question: &Question) -> Binding {
        // Whoever comes by another door is somebody else, also under the same name.
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

    /// Uses up an approval that was given for this call while nobody waited for it.
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

    /// Says what is wrong with the store, once for as long as that lasts. Whoever can be asked is
    /// asked all the same.
    fn say_broken(&self, error: &StoreError) {
        let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = "approvals that were given in other shells cannot be looked up";
        if self.is_told.swap(true, Ordering::Relaxed) {
            debug!(%error, cause, "{text}");
        } else {
            warn!(%error, cause, "{text}");
        }
    }

    /// Asks at the front and elsewhere at the same time. The first answer counts, and the other
    /// is no longer asked. Of two that are there at once a no counts.
    async fn ask(
        &self,
        mut waiting: Waiting<'_>,
        question: &Question,
        operator: &dyn Operator,
    ) -> Decision {
        let clock = &self.shells.clock;
        let began = clock.monotonic();
        match select(&mut waiting.answer, operator.approve(question)).await {
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
            Either::Right((approval, _)) => {
                return if waiting.withdraw() { Answer::No.into() } else { approval.into() };
            }
        }
        let left = self.shells.wait.saturating_sub(clock.monotonic().saturating_sub(began));
        announce(&waiting.id, question, operator, left);
        let answered = select(&mut waiting.answer, clock.sleep(left)).await;
        match answered {
            Either::Left((Ok(answer), _)) => answer.into(),
            Either::Left((Err(_), _)) => Approval::No(Ground::Nobody).into(),
            Either::Right(((), _)) => {
                let open = Some(waiting.id.clone());
                Decision { approval: Approval::No(Ground::Nobody), open }
            }
        }
    }
}

/// Says that somebody is wanted: in the log, and to a client that wants to know.
fn announce(id: &str, question: &Question, operator: &dyn Operator, left: Duration) {
    let Question { id: item, caller, effect, rule, .. } = question;
    let what = if left.is_zero() { "refused without an approval" } else { "waiting for approval" };
    warn!(
        "{what} {id}: `{}` for {:?} ({}, {rule}); answer with: capstan approvals yes {id}",
        item.to_string().escape_debug(),
        caller.subject,
        effect.as_str(),
    );
    // One that is refused at once learns it from the refusal.
    if !left.is_zero() {
        operator.told(&format!("{what}: `{item}` (question {id})"));
    }
}

fn say_full() {
    warn!("too many questions are open; only the client itself is asked");
}
