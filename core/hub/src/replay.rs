//! Replays past calls against the current rules to find those that would be decided differently.
//!
//! Caller, front, item and effect are taken from the audit entry. Rules and time are the current
//! ones, so that a rule that has expired since does not match.

use capstan_model::secret::MASK;
use capstan_model::{Effect, ItemId, Kind, Ruling, Verdict};
use capstan_policy::{Flow, Policy};
use capstan_wire::Json;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::explain::{DescribedCall, EntryPoint, Explanation};

/// A past call, as read from its audit entry.
#[derive(Clone, Debug)]
pub struct Past {
    /// The call. Its arguments are empty unless the entry has all of them.
    pub told: DescribedCall,
    /// The part of the arguments that is known.
    pub kept: KnownArguments,
    /// The verdict at the time.
    pub verdict: Verdict,
    /// The rule that led to it.
    pub rule: String,
}

/// The part of a past call's arguments that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownArguments {
    /// All of them.
    Whole,
    /// Some were masked, or the end was cut off.
    InPart,
    /// None of them.
    No,
}

/// The current decision about a past call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Neither the verdict nor its rule differs.
    Same,
    /// Only the rule differs, not the verdict.
    SameByOther(Ruling),
    /// Another verdict.
    Changed(Ruling),
    /// Cannot be determined.
    Unknown(Reason),
}

/// The reason that the current decision cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule examines arguments, and they were not stored, or not completely.
    Arguments {
        /// The rule.
        rule: String,
    },
    /// A rule about flows decided, by the answers that the conversation had received.
    Conversation {
        /// The rule.
        rule: String,
    },
    /// Its server is no longer configured, or its entry is broken.
    NoServer,
}

/// The reason that an entry is not a past decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPast {
    /// It records damage to the log.
    Break,
    /// The call ended before the rules were applied: the item was unknown or not reached.
    Undecided,
    /// It contains values that this version does not support.
    Unreadable,
}

// === impl Past ===

impl Past {
    /// Reads an entry from the fields of the audit log.
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
            // Over stdio, or written before access rules existed.
            Some("gateway") if row.get("bound") != Some(&Value::Bool(true)) => {
                Some(EntryPoint::Stdio)
            }
            front => EntryPoint::ALL.into_iter().find(|door| Some(door.as_str()) == front),
        };
        let caller = door.ok_or(unreadable)?.caller(text("caller"), roles(row));
        let server = text("server").and_then(|name| name.parse().ok()).ok_or(unreadable)?;
        let item = text("item").ok_or(unreadable)?.to_owned();
        let told = DescribedCall::new(caller, ItemId { server, item }, kind);
        let told = DescribedCall { effect: effect.unwrap_or(told.effect), ..told };
        let (told, kept) = with_arguments(told, text("arguments"));
        let rule = text("rule").unwrap_or_default().to_owned();
        Ok(Self { told, kept, verdict: verdict.ok_or(unreadable)?, rule })
    }

    /// Returns the decision of these rules, compared with the past one.
    pub fn judge(&self, policy: &Policy, now: Timestamp) -> Judged {
        if !policy.servers().contains_key(&self.told.id.server) {
            return Judged::Unknown(Reason::NoServer);
        }
        if Flow::is_rule(&self.rule) {
            return Judged::Unknown(Reason::Conversation { rule: self.rule.clone() });
        }
        let Explanation { ruling, by_arguments, .. } = self.told.clone().explain(policy, now);
        if let (KnownArguments::InPart | KnownArguments::No, Some(step)) =
            (self.kept, by_arguments.into_iter().next())
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

/// Adds the stored arguments. Those of a resource are its URI, which every entry has.
fn with_arguments(told: DescribedCall, kept: Option<&str>) -> (DescribedCall, KnownArguments) {
    let read = |text: &str| Json::parse(text.to_owned()).ok();
    match (told.kind, kept) {
        (Kind::Resource, _) => (told, KnownArguments::Whole),
        (Kind::Tool | Kind::Prompt, None) => (told, KnownArguments::No),
        (Kind::Tool | Kind::Prompt, Some(text)) => match read(text) {
            Some(arguments) if !text.contains(MASK) => {
                (DescribedCall { arguments, ..told }, KnownArguments::Whole)
            }
            Some(_) | None => (told, KnownArguments::InPart),
        },
    }
}

fn roles(row: &Map<String, Value>) -> Vec<String> {
    let roles = row.get("roles").and_then(Value::as_array).into_iter().flatten();
    roles.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// True if the rule in an entry is this one. Long rules are truncated in entries.
fn is_same_rule(written: &str, rule: &str) -> bool {
    written == rule || written.strip_suffix('…').is_some_and(|start| rule.starts_with(start))
}
