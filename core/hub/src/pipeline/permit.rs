//! Step 5: checks that the rules allow the call. The only step that asks them about the item.

use std::sync::Arc;

use capstan_model::{CallError, Front, Verdict};
use capstan_policy::{Arguments, Asked, DefaultRule};

use super::record::Record;
use super::resolve::Resolved;
use super::settle::Settled;
use crate::approvals::Extent;
use crate::hub::Hub;
use crate::ports::Question;

/// A call that no rule denies.
pub(super) struct Permitted {
    pub(super) resolved: Resolved,
    /// The question for the operator, if a rule says `ask`.
    pub(super) question: Option<Box<Question>>,
}

pub(super) fn permit(
    hub: &Hub,
    settled: Settled,
    record: &mut Record<'_>,
) -> Result<Permitted, CallError> {
    let mut resolved = settled.into_resolved();
    let decide = || {
        let arguments = resolved.call.arguments();
        hub.policy.decide(&asked(hub, &resolved, Arguments::These(&arguments)))
    };
    let caller = &resolved.call.caller;
    let ruling = match &resolved.fact {
        // A cached ruling is valid for all callers that access rules do not bind.
        Some(fact) if !hub.policy.binds(caller) => fact.ruling(caller.front, decide),
        Some(_) | None => decide(),
    };
    let ruling = hub.pins.tighten(&resolved.id, resolved.standing, ruling);
    record.ruled(&ruling);
    if ruling.verdict != Verdict::Deny
        && let Some(problem) = resolved.problem.take()
    {
        return Err(*problem);
    }
    let question = match ruling.verdict {
        Verdict::Allow => None,
        Verdict::Ask => Some(Box::new(Question {
            caller: Arc::clone(&resolved.call.caller),
            id: resolved.id.clone(),
            kind: resolved.call.target.kind,
            arguments: resolved.call.arguments(),
            effect: resolved.effect,
            rule: ruling.rule,
            by: ruling.by,
            offers: vec![Extent::Once],
            open: None,
        })),
        Verdict::Deny => {
            return Err(CallError::Denied { item: resolved.id.to_string(), rule: ruling.rule });
        }
    };
    Ok(Permitted { resolved, question })
}

fn asked<'a>(hub: &Hub, resolved: &'a Resolved, arguments: Arguments<'a>) -> Asked<'a> {
    Asked {
        caller: &resolved.call.caller,
        id: &resolved.id,
        kind: resolved.call.target.kind,
        arguments,
        effect: resolved.effect,
        now: hub.clock.now(),
        fallback: fallback(resolved.call.caller.front),
    }
}

/// Returns the rule for calls that no other rule matches, by front.
pub(crate) fn fallback(front: Front) -> DefaultRule {
    match front {
        Front::Cli | Front::Terminal => DefaultRule::Always(Verdict::Ask),
        Front::Gateway => DefaultRule::AskWrites,
    }
}
