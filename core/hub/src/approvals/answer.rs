//! The other end of the desk: the operator looks at open questions, and answers them.

use std::time::Duration;

use capstan_model::{Effect, Kind};
use capstan_wire::Json;
use jiff::Timestamp;

use super::{
    Approvals, Decision, Extent, GOOD_FOR, Layout, Masks, NoRule, Others, ShownArguments, Span,
};
use crate::Ground;
use crate::approvals::desk::Open;
use crate::ports::{Approval, Grant, NotSaved, Question, StoreError};

/// Most unused approvals that are shown.
const MAX_GRANTS: u32 = 64;

/// The longest name of an item, or of a rule, that is shown.
const MAX_NAME: usize = 500;

/// The longest arguments in the list of questions, in bytes.
const MAX_ARGUMENTS: usize = 500;

/// What the operator says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Run it, and so much more.
    Yes(Extent),
    /// Do not run it.
    No,
}

/// What an answer has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The call was still waiting and runs now.
    Runs,
    /// Nobody waits any more; the same call runs when it is made again.
    RunsWhenRepeated,
    /// It does not run.
    Refused,
}

/// Why an answer is not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such question, or somebody was faster.
    #[error("there is no open question `{id}`")]
    Unknown {
        /// The name.
        id: String,
    },
    /// A rule of its own asks, and goes on asking.
    #[error("the rule `{rule}` asks every time; only this one call can be approved")]
    AsksEveryTime {
        /// The rule.
        rule: String,
    },
    /// There is no rule for a yes that reaches so far.
    #[error("that far the answer cannot reach: {0}")]
    NoRule(NoRule),
    /// The rule could not be written.
    #[error("the rule was not written: {0}")]
    NotSaved(NotSaved),
    /// There is no configuration to write to.
    #[error("there is no configuration to save it in")]
    NowhereToSave,
    /// The approval could not be kept for a call that comes again.
    #[error("the approval could not be kept")]
    Store(#[source] StoreError),
}

/// An open question, or an approval that has not been used yet, as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its name.
    pub id: String,
    /// Who asks.
    pub caller: String,
    /// What the caller's program calls itself.
    pub client: Option<String>,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The item.
    pub item: String,
    /// The server.
    pub server: String,
    /// The item as its server calls it.
    pub name: String,
    /// Its arguments, shortened in a list; for what is approved already only their digest.
    pub arguments: ShownArguments,
    /// All of its arguments as they were sent, where one question is shown. They may hold secrets.
    pub raw: Option<Json>,
    /// What it does; `None` for what is approved already.
    pub effect: Option<Effect>,
    /// The rule that asks.
    pub rule: String,
    /// How it stands.
    pub stands: Stands,
    /// How long ago it was asked.
    pub age: Duration,
    /// How long it can still be answered, or used.
    pub expires: Duration,
}

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// A call waits for the answer.
    Waiting,
    /// The call was refused; it may come again.
    Open,
    /// Approved, and not used yet.
    Approved,
}

// === impl Approvals ===

impl Approvals {
    /// What can be answered, oldest first, then what is approved and not used; with the number of
    /// the list's state.
    pub async fn questions(&self) -> (u64, Vec<OpenQuestion>) {
        let Some(others) = &self.others else { return (0, Vec::new()) };
        let now = others.shells.clock.monotonic();
        others.desk.sweep(now.saturating_sub(GOOD_FOR));
        let (revision, seen) = others.desk.look(|open| Glimpse::from(open));
        let mut all: Vec<_> = seen.into_iter().map(|seen| seen.shown(now)).collect();
        all.extend(others.granted().await);
        (revision, all)
    }

    /// One question with all of its arguments as they were sent, or an approval that is not used yet.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn question(&self, id: &str) -> Result<OpenQuestion, AnswerError> {
        let unknown = || AnswerError::Unknown { id: id.to_owned() };
        let others = self.others.as_ref().ok_or_else(unknown)?;
        let now = others.shells.clock.monotonic();
        others.desk.sweep(now.saturating_sub(GOOD_FOR));
        let glimpse = |open: &Open| (open.id == id).then(|| Glimpse::from(open));
        let (_, found) = others.desk.look(glimpse);
        match found.into_iter().flatten().next() {
            Some(seen) => {
                let raw = Some(seen.question.arguments.clone());
                Ok(OpenQuestion { raw, ..seen.shown(now) })
            }
            None => others.granted().await.into_iter().find(|it| it.id == id).ok_or_else(unknown),
        }
    }

    /// Waits until the list is no longer the one of that number.
    pub async fn changed(&self, revision: u64) {
        let Some(others) = &self.others else { return };
        if let Some(change) = others.desk.watch(revision) {
            // That the desk is gone is a change too.
            let _ = change.await;
        }
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When it is not open, or when the answer cannot reach as far as it says; it stays open then.
    pub async fn answer(
        &self,
        id: &str,
        answer: Answer,
    ) -> Result<(Answered, Option<String>), AnswerError> {
        let unknown = || AnswerError::Unknown { id: id.to_owned() };
        let others = self.others.as_ref().ok_or_else(unknown)?;
        let now = others.shells.clock.monotonic();
        others.desk.sweep(now.saturating_sub(GOOD_FOR));
        let (_, found) = others.desk.look(|open| (open.id == id).then(|| open.question.clone()));
        let question = found.into_iter().flatten().next().ok_or_else(unknown)?;
        let extent = match answer {
            Answer::No if others.desk.refuse(id) => return Ok((Answered::Refused, None)),
            Answer::No => return Err(unknown()),
            Answer::Yes(extent) => extent,
        };
        if let Extent::Wider(width, span) = extent {
            self.offered(&question, width, span)?;
        }
        // Taken before anything is written: of two who answer, one is told that it was too late.
        let open = others.desk.take(id).ok_or_else(unknown)?;
        let mut place = None;
        if let Extent::Wider(width, Span::Saved) = extent {
            match self.save(width, &question).await {
                Ok(saved) => place = Some(saved),
                Err(error) => {
                    others.desk.put_back(open);
                    return Err(error);
                }
            }
        }
        Ok((others.approve(open, extent).await?, place))
    }
}

// === impl Others ===

impl Others {
    /// The approvals that are not used yet.
    async fn granted(&self) -> Vec<OpenQuestion> {
        let now = self.shells.clock.now();
        match self.shells.store.list(now, MAX_GRANTS).await {
            Ok(grants) => grants.into_iter().map(|grant| approved(grant, now)).collect(),
            Err(error) => {
                self.say_broken(&error);
                Vec::new()
            }
        }
    }

    /// Lets the waiting call run, or the next one like it.
    async fn approve(&self, open: Open, extent: Extent) -> Result<Answered, AnswerError> {
        let remembered = match (extent, open.memory.upgrade()) {
            (Extent::Wider(width, Span::Session), Some(memory)) => {
                memory.keep(width, &open.question);
                true
            }
            (Extent::Wider(_, Span::Saved), _) => true,
            (Extent::Once | Extent::Wider(_, Span::Session), _) => false,
        };
        let Some(open) = tell(open, Answer::Yes(extent)) else { return Ok(Answered::Runs) };
        if remembered {
            return Ok(Answered::RunsWhenRepeated);
        }
        let now = self.shells.clock.now();
        let expires_at = now.checked_add(GOOD_FOR).unwrap_or(now);
        let grant = Grant { id: open.id.clone(), binding: open.binding.clone(), expires_at };
        let kept = match self.shells.store.expire(now).await {
            Ok(_) => self.shells.store.grant(&grant).await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(()) => Ok(Answered::RunsWhenRepeated),
            Err(error) => {
                self.desk.put_back(open);
                Err(AnswerError::Store(error))
            }
        }
    }
}

// === impl Decision ===

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Yes(extent) => Approval::Yes(Ground::OtherShell, extent).into(),
            Answer::No => Approval::No(Ground::Refused).into(),
        }
    }
}

/// Gives the answer to the call that waits for it; the question back when none does.
fn tell(mut open: Open, answer: Answer) -> Option<Open> {
    match open.waiting.take() {
        Some(waiting) => waiting.send(answer).is_err().then_some(open),
        None => Some(open),
    }
}

/// A question as it lay open, so that nothing is written while the desk is locked.
struct Glimpse {
    id: String,
    question: Question,
    sha256: String,
    stands: Stands,
    asked: Duration,
}

// === impl Glimpse ===

impl From<&Open> for Glimpse {
    fn from(open: &Open) -> Self {
        Self {
            id: open.id.clone(),
            question: open.question.clone(),
            sha256: open.binding.arguments.clone(),
            stands: if open.waiting.is_some() { Stands::Waiting } else { Stands::Open },
            asked: open.asked,
        }
    }
}

impl Glimpse {
    fn shown(self, now: Duration) -> OpenQuestion {
        let Question { caller, id, kind, effect, rule, arguments, .. } = self.question;
        let layout = Layout::Line(MAX_ARGUMENTS);
        let age = now.saturating_sub(self.asked);
        OpenQuestion {
            id: self.id,
            caller: caller.subject.clone(),
            client: caller.client.clone(),
            kind,
            item: clipped(id.to_string()),
            server: id.server.to_string(),
            name: clipped(id.item),
            arguments: ShownArguments::of(&arguments, self.sha256, layout, Masks::Secrets),
            raw: None,
            effect: Some(effect),
            rule: clipped(rule),
            stands: self.stands,
            age,
            expires: GOOD_FOR.saturating_sub(age),
        }
    }
}

// === impl OpenQuestion ===

impl OpenQuestion {
    /// The question with all of its arguments laid out, where they are at hand.
    #[must_use]
    pub fn in_full(mut self, masks: Masks) -> Self {
        if let Some(raw) = &self.raw {
            let sha256 = self.arguments.sha256;
            self.arguments = ShownArguments::of(raw, sha256, Layout::Full, masks);
        }
        self
    }
}

/// No longer than fits into a line of a table, many times over.
fn clipped(mut text: String) -> String {
    if text.len() > MAX_NAME {
        text.truncate(text.floor_char_boundary(MAX_NAME));
        text.push('…');
    }
    text
}

fn approved(grant: Grant, now: Timestamp) -> OpenQuestion {
    let Grant { id, binding, expires_at } = grant;
    let sha256 = binding.arguments;
    OpenQuestion {
        id,
        caller: binding.subject,
        client: None,
        kind: binding.kind,
        item: clipped(binding.item),
        server: String::new(),
        name: String::new(),
        arguments: ShownArguments { sha256, ..ShownArguments::default() },
        raw: None,
        effect: None,
        rule: String::new(),
        stands: Stands::Approved,
        age: Duration::ZERO,
        expires: Duration::try_from(expires_at.duration_since(now)).unwrap_or_default(),
    }
}

// === impl Stands ===

impl Stands {
    /// The word for it in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Open => "open",
            Self::Approved => "approved",
        }
    }
}
