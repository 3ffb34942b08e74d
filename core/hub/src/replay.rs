//! Past calls against the rules of now: which would be decided differently.
//!
//! What a call was is taken from its entry: caller, front, item, effect. What counts now is the rules
//! and the time, so that a rule which has expired since no longer speaks.

use capstan_model::secret::MASK;
use capstan_model::{Effect, ItemId, Kind, Ruling, Verdict};
use capstan_policy::Policy;
use capstan_wire::Json;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::told::{Door, Explained, Told};

/// A past call, as its entry tells it.
#[derive(Clone, Debug)]
pub struct Past {
    /// The call; its arguments are empty unless they were kept whole.
    pub told: Told,
    /// How far the arguments are known.
    pub kept: Kept,
    /// What was decided then.
    pub verdict: Verdict,
    /// The rule that said it.
    pub rule: String,
}

/// How far the arguments of a past call are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All of them.
    Whole,
    /// Some were masked, or the end was cut off.
    InPart,
    /// Not at all.
    No,
}

/// What the rules of now say of a past call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The same, by the same rule.
    Same,
    /// The same, by another rule.
    SameByOther(Ruling),
    /// Something else.
    Changed(Ruling),
    /// That cannot be told.
    Unknown(Reason),
}

/// Why it cannot be told what is decided about a past call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule looks at arguments, and they were not kept, or not whole.
    Arguments {
        /// The rule.
        rule: String,
    },
    /// Its server is no longer configured, or its entry is broken.
    NoServer,
}

/// What an entry is that is no past decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPast {
    /// It tells of damage to the log.
    Break,
    /// The call ended before the rules were asked: there was no such item, or it was not reached.
    Undecided,
    /// It has words that this version does not know.
    Unreadable,
}

// === impl Past ===

impl Past {
    /// Reads an entry, field by field as the audit log has it.
    pub fn read(row: &Map<String, Value>) -> Result<Self, NoPast> {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        let kinds = [Kind::Tool, Kind::Resource, Kind::Prompt];
        let verdicts = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
        let effects = [Effect::Read, Effect::Write, Effect::Unknown];
        if text("kind") == Some("break") {
            return Err(NoPast::Break);
        }
        let Some(said) = text("verdict") else { return Err(NoPast::Undecided) };
        let unreadable = NoPast::Unreadable;
        let verdict = verdicts.into_iter().find(|verdict| verdict.as_str() == said);
        let kind = kinds.into_iter().find(|kind| Some(kind.as_str()) == text("kind"));
        let kind = kind.ok_or(unreadable)?;
        let effect = effects.into_iter().find(|effect| Some(effect.as_str()) == text("effect"));
        let door = match text("front") {
            // Over standard input and output, or from before there were access rules.
            Some("gateway") if row.get("bound") != Some(&Value::Bool(true)) => Some(Door::Stdio),
            front => Door::ALL.into_iter().find(|door| Some(door.as_str()) == front),
        };
        let caller = door.ok_or(unreadable)?.caller(text("caller"), roles(row));
        let server = text("server").and_then(|name| name.parse().ok()).ok_or(unreadable)?;
        let item = text("item").ok_or(unreadable)?.to_owned();
        let told = Told::new(caller, ItemId { server, item }, kind);
        let told = Told { effect: effect.unwrap_or(told.effect), ..told };
        let (told, kept) = with_arguments(told, text("arguments"));
        let rule = text("rule").unwrap_or_default().to_owned();
        Ok(Self { told, kept, verdict: verdict.ok_or(unreadable)?, rule })
    }

    /// What these rules say of it.
    pub fn judge(&self, policy: &Policy, now: Timestamp) -> Judged {
        if !policy.servers().contains_key(&self.told.id.server) {
            return Judged::Unknown(Reason::NoServer);
        }
        let Explained { ruling, by_arguments, .. } = self.told.clone().explain(policy, now);
        if let (Kept::InPart | Kept::No, Some(step)) = (self.kept, by_arguments.into_iter().next())
        {
            return Judged::Unknown(Reason::Arguments { rule: step.rule });
        }
        match (ruling.verdict == self.verdict, is_same_rule(&self.rule, &ruling.rule)) {
            (true, true) => Judged::Same,
            (true, false) => Judged::SameByOther(ruling),
            (false, _) => Judged::Changed(ruling),
        }
    }
}

/// Adds the arguments that were kept. A resource's are its address, which always is.
fn with_arguments(told: Told, kept: Option<&str>) -> (Told, Kept) {
    let read = |text: &str| Json::parse(text.to_owned()).ok();
    match (told.kind, kept) {
        (Kind::Resource, _) => (told, Kept::Whole),
        (Kind::Tool | Kind::Prompt, None) => (told, Kept::No),
        (Kind::Tool | Kind::Prompt, Some(text)) => match read(text) {
            Some(arguments) if !text.contains(MASK) => (Told { arguments, ..told }, Kept::Whole),
            Some(_) | None => (told, Kept::InPart),
        },
    }
}

fn roles(row: &Map<String, Value>) -> Vec<String> {
    let roles = row.get("roles").and_then(Value::as_array).into_iter().flatten();
    roles.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Whether a rule in an entry is this one; a long one was cut off there.
fn is_same_rule(written: &str, rule: &str) -> bool {
    written == rule || written.strip_suffix('…').is_some_and(|start| rule.starts_with(start))
}
