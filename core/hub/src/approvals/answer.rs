//! The operator's side: lists the pending approvals and answers them.

use std::time::Duration;

use capstan_model::{Effect, Kind};
use capstan_wire::Json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Approvals, Decision, Extent, GOOD_FOR, Layout, Masks, NoRule, Others, ShownArguments, Span,
};
use crate::Ground;
use crate::approvals::pending_approvals::Open;
use crate::ports::{Approval, Grant, KeptQuestion, NotSaved, Question, Store, StoreError};

/// Most unused approvals that are listed.
const MAX_GRANTS: u32 = 64;

/// Longest name of an item, or of a rule, that is shown, in bytes.
const MAX_NAME: usize = 500;

/// Longest arguments in the list of questions, in bytes.
const MAX_ARGUMENTS: usize = 500;

/// The operator's answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Run the call, and approve as much more as the extent says.
    Yes(Extent),
    /// Do not run the call.
    No,
}

/// The result of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// The call was still waiting and runs now.
    Runs,
    /// No call waits any more; the same call runs when it is made again.
    RunsWhenRepeated,
    /// The call does not run.
    Refused,
}

/// Why an answer is not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The question does not exist, or was answered already.
    #[error("there is no open question `{id}`")]
    Unknown {
        /// The id that was given.
        id: String,
    },
    /// An explicit rule asks, and asks again every time.
    #[error("the rule `{rule}` asks every time; only this one call can be approved")]
    AsksEveryTime {
        /// The rule.
        rule: String,
    },
    /// No rule can express an approval of this extent.
    #[error("the approval cannot have this scope: {0}")]
    NoRule(NoRule),
    /// The rule could not be written.
    #[error("the rule could not be written: {0}")]
    NotSaved(NotSaved),
    /// There is no configuration to write to.
    #[error("there is no configuration file for the rule")]
    NowhereToSave,
    /// The gateway of the question has ended, and only the one call can be approved.
    #[error("its gateway has ended; only this one call can be approved")]
    OnlyOnce,
    /// The approval could not be stored for a repeated call.
    #[error("the approval could not be saved")]
    Store(#[source] StoreError),
}

/// An open question, or an approval that has not been used yet, as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The id of the question.
    pub id: String,
    /// The subject of the caller.
    pub caller: String,
    /// The name that the caller's program gives itself.
    pub client: Option<String>,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The item.
    pub item: String,
    /// The server.
    pub server: String,
    /// The server's own name for the item.
    pub name: String,
    /// The arguments, shortened in a list. An approval that is already given has only their digest.
    pub arguments: ShownArguments,
    /// The arguments as they were sent, if a single question is shown. They may contain secrets.
    pub raw: Option<Json>,
    /// The effect of the item; `None` if it is already approved.
    pub effect: Option<Effect>,
    /// The rule that asks.
    pub rule: String,
    /// The state of the question.
    pub stands: Stands,
    /// How long ago it was asked.
    pub age: Duration,
    /// How much longer it can be answered, or used.
    pub expires: Duration,
}

/// The state of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stands {
    /// A call waits for the answer.
    Waiting,
    /// The call was refused; it may be made again.
    Open,
    /// The call is approved, and the approval is not used yet.
    Approved,
}

// === impl Approvals ===

impl Approvals {
    /// Lists open questions, oldest first, then unused approvals; with the revision of the list.
    pub async fn questions(&self) -> (u64, Vec<OpenQuestion>) {
        let Some(others) = &self.others else { return (0, Vec::new()) };
        let now = others.shells.clock.monotonic();
        others.pending.sweep(now.saturating_sub(GOOD_FOR));
        let (revision, seen) = others.pending.look(|open| Glimpse::from(open));
        let mut all: Vec<_> = seen.into_iter().map(|seen| seen.shown(now)).collect();
        all.extend(others.granted().await);
        (revision, all)
    }

    /// Returns one question with its arguments as they were sent, or one unused approval.
    ///
    /// # Errors
    /// Fails if there is none with this id.
    pub async fn question(&self, id: &str) -> Result<OpenQuestion, AnswerError> {
        let unknown = || AnswerError::Unknown { id: id.to_owned() };
        let others = self.others.as_ref().ok_or_else(unknown)?;
        let now = others.shells.clock.monotonic();
        others.pending.sweep(now.saturating_sub(GOOD_FOR));
        let glimpse = |open: &Open| (open.id == id).then(|| Glimpse::from(open));
        let (_, found) = others.pending.look(glimpse);
        match found.into_iter().flatten().next() {
            Some(seen) => {
                let raw = Some(seen.question.arguments.clone());
                Ok(OpenQuestion { raw, ..seen.shown(now) })
            }
            None => others.granted().await.into_iter().find(|it| it.id == id).ok_or_else(unknown),
        }
    }

    /// Waits until the revision of the list differs from this one.
    pub async fn changed(&self, revision: u64) {
        let Some(others) = &self.others else { return };
        if let Some(change) = others.pending.watch(revision) {
            // If the list is dropped, that counts as a change too.
            let _ = change.await;
        }
    }

    /// Answers a question. Returns the result, and where a rule was written.
    ///
    /// # Errors
    /// Fails if the question is not open, or if the answer cannot have its extent. In the latter
    /// case the question stays open.
    pub async fn answer(
        &self,
        id: &str,
        answer: Answer,
    ) -> Result<(Answered, Option<String>), AnswerError> {
        let unknown = || AnswerError::Unknown { id: id.to_owned() };
        let others = self.others.as_ref().ok_or_else(unknown)?;
        let now = others.shells.clock.monotonic();
        others.pending.sweep(now.saturating_sub(GOOD_FOR));
        let (_, found) = others.pending.look(|open| (open.id == id).then(|| open.question.clone()));
        let Some(question) = found.into_iter().flatten().next() else {
            let withdrawn = withdraw(&*others.shells.store, others.shells.clock.now(), id, answer);
            let withdrawn = withdrawn.await.map_err(AnswerError::Store)?;
            return withdrawn.map(|answered| (answered, None)).ok_or_else(unknown);
        };
        let extent = match answer {
            Answer::No if others.pending.refuse(id) => {
                others.forget(id).await;
                return Ok((Answered::Refused, None));
            }
            Answer::No => return Err(unknown()),
            Answer::Yes(extent) => extent,
        };
        if let Extent::Wider(width, span) = extent {
            self.offered(&question, width, span)?;
        }
        // Taken before anything is written: if two shells answer, the second gets an error.
        let open = others.pending.take(id).ok_or_else(unknown)?;
        let mut place = None;
        if let Extent::Wider(width, Span::Saved) = extent {
            match self.save(width, &question).await {
                Ok(saved) => place = Some(saved),
                Err(error) => {
                    others.pending.put_back(open);
                    return Err(error);
                }
            }
        }
        let answered = others.approve(open, extent).await?;
        others.forget(id).await;
        Ok((answered, place))
    }
}

/// Lists the questions of processes that have ended, which [`answer_kept`] answers.
///
/// # Errors
/// If the store cannot be read.
pub async fn kept_questions(
    store: &dyn Store,
    now: Timestamp,
) -> Result<Vec<OpenQuestion>, StoreError> {
    let kept = store.kept(now, MAX_GRANTS).await?;
    Ok(kept.iter().filter_map(|question| question.seen(now)).collect())
}

/// Answers a question of a process that has ended. `None` if it is not kept.
///
/// # Errors
/// If the store fails, or if the answer approves more than the one call: rules are checked by a
/// running gateway.
pub async fn answer_kept(
    store: &dyn Store,
    now: Timestamp,
    id: &str,
    answer: Answer,
) -> Result<Option<Answered>, AnswerError> {
    let kept = store.kept(now, MAX_GRANTS).await.map_err(AnswerError::Store)?;
    let Some(kept) = kept.into_iter().find(|kept| kept.grant.id == id) else {
        return withdraw(store, now, id, answer).await.map_err(AnswerError::Store);
    };
    if let Answer::Yes(Extent::Wider(..)) = answer {
        return Err(AnswerError::OnlyOnce);
    }
    // Deleted before anything is saved: if two shells answer, the second finds nothing.
    if !store.forget(id).await.map_err(AnswerError::Store)? {
        return Ok(None);
    }
    match answer {
        Answer::No => Ok(Some(Answered::Refused)),
        Answer::Yes(_) => {
            let expires_at = now.checked_add(GOOD_FOR).unwrap_or(now);
            let grant = Grant { expires_at, ..kept.grant };
            store.grant(&grant).await.map_err(AnswerError::Store)?;
            Ok(Some(Answered::RunsWhenRepeated))
        }
    }
}

/// Takes back an approval that is not used yet, if the answer is a no. `None` if there is none.
async fn withdraw(
    store: &dyn Store,
    now: Timestamp,
    id: &str,
    answer: Answer,
) -> Result<Option<Answered>, StoreError> {
    if answer != Answer::No {
        return Ok(None);
    }
    let grants = store.list(now, MAX_GRANTS).await?;
    let Some(grant) = grants.into_iter().find(|grant| grant.id == id) else { return Ok(None) };
    let taken = store.take(&grant.binding, now).await?;
    Ok(taken.then_some(Answered::Refused))
}

// === impl Others ===

impl Others {
    /// Returns the unused approvals.
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

    /// Saves an open question: a gateway on standard input ends with its client.
    pub(super) async fn keep(&self, id: &str) {
        let (now, clock) = (self.shells.clock.now(), self.shells.clock.monotonic());
        let kept = |open: &Open| {
            let found = (open.id == id).then(|| (Glimpse::from(open), open.binding.clone()));
            found.map(|(seen, binding)| {
                (OpenQuestion { stands: Stands::Open, ..seen.shown(clock) }, binding)
            })
        };
        let (_, found) = self.pending.look(kept);
        let Some((shown, binding)) = found.into_iter().flatten().next() else { return };
        let Ok(shown) = serde_json::to_string(&shown) else { return };
        let expires_at = now.checked_add(GOOD_FOR).unwrap_or(now);
        let grant = Grant { id: id.to_owned(), binding, expires_at };
        let store = &self.shells.store;
        let kept = match store.expire(now).await {
            Ok(_) => store.keep(&KeptQuestion { grant, shown }).await,
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            self.say_broken(&error);
        }
    }

    /// Deletes a saved question that was answered.
    async fn forget(&self, id: &str) {
        if let Err(error) = self.shells.store.forget(id).await {
            self.say_broken(&error);
        }
    }

    /// Lets the waiting call run, or the next identical one.
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
                self.pending.put_back(open);
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

/// Sends the answer to the waiting call. Returns the question if no call waits.
fn tell(mut open: Open, answer: Answer) -> Option<Open> {
    match open.waiting.take() {
        Some(waiting) => waiting.send(answer).is_err().then_some(open),
        None => Some(open),
    }
}

/// A copy of an open question, so that nothing is formatted while the list is locked.
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

// === impl KeptQuestion ===

impl KeptQuestion {
    /// The question as the operator sees it; `None` if a newer version wrote it.
    fn seen(&self, now: Timestamp) -> Option<OpenQuestion> {
        let shown: OpenQuestion = serde_json::from_str(&self.shown).ok()?;
        let left = self.grant.expires_at.duration_since(now);
        let expires = Duration::try_from(left).unwrap_or_default().min(GOOD_FOR);
        Some(OpenQuestion { expires, age: GOOD_FOR.saturating_sub(expires), ..shown })
    }
}

// === impl OpenQuestion ===

impl OpenQuestion {
    /// Returns the question with all of its arguments laid out, if they are available.
    #[must_use]
    pub fn in_full(mut self, masks: Masks) -> Self {
        if let Some(raw) = &self.raw {
            let sha256 = self.arguments.sha256;
            self.arguments = ShownArguments::of(raw, sha256, Layout::Full, masks);
        }
        self
    }
}

/// Cuts a text to [`MAX_NAME`] bytes, which is far more than fits into a line of a table.
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
    /// The state's word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Open => "open",
            Self::Approved => "approved",
        }
    }
}
