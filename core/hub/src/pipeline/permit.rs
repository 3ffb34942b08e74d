//! Step 5: checks that the rules allow the call. The only step that asks them about the item.

use std::sync::Arc;

use capstan_model::{CallError, Front, Ruling, Verdict};
use capstan_policy::combine::{Tie, tighten};
use capstan_policy::{Arguments, Asked, DefaultRule, Tags};

use super::record::Record;
use super::resolve::Resolved;
use super::settle::Settled;
use crate::approvals::Extent;
use crate::hub::Hub;
use crate::ports::Question;
use crate::{Part, Session};

/// A call that no rule denies.
pub(super) struct Permitted {
    pub(super) resolved: Resolved,
    /// The question for the operator, if a rule says `ask`.
    pub(super) question: Option<Box<Question>>,
}

pub(super) fn permit(
    hub: &Hub,
    session: &Session,
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
    resolved.tags = tags(hub, &resolved);
    // A caller who may not use the item at all learns nothing from a flow.
    let flow = (ruling.verdict != Verdict::Deny).then(|| by_flows(hub, session, &resolved));
    let flow = flow.flatten();
    let is_flow_denied = flow.as_ref().is_some_and(|flow| flow.verdict == Verdict::Deny);
    let ruling = tighten(ruling, flow, Tie::KeepsRule);
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
        Verdict::Deny if is_flow_denied => {
            let (item, rule) = (resolved.id.to_string(), ruling.rule);
            return Err(CallError::FlowBlocked { item, rule });
        }
        Verdict::Deny => {
            return Err(CallError::Denied { item: resolved.id.to_string(), rule: ruling.rule });
        }
    };
    Ok(Permitted { resolved, question })
}

/// The tags of the item; none if no rule is about flows.
fn tags(hub: &Hub, resolved: &Resolved) -> Tags {
    if !hub.policy.flows().are_on() {
        return Tags::NONE;
    }
    let Resolved { id, definition, effect, call, .. } = resolved;
    let judge = || hub.policy.tags_of(id, call.target.kind, definition, *effect);
    resolved.fact.as_ref().map_or_else(judge, |fact| fact.tags(judge))
}

/// The ruling of the rules about flows, by the answers that this conversation has received.
fn by_flows(hub: &Hub, session: &Session, resolved: &Resolved) -> Option<Ruling> {
    let is_continued = match &resolved.call.part {
        Part::First => false,
        // The same call, which was decided on before its own first answer.
        Part::Later(made) => made.is_open_for(&resolved.id, &resolved.call.caller),
    };
    let rules = hub.policy.flows();
    let met = rules.ending_with(resolved.tags).filter(|_| !is_continued);
    let rulings = met.filter_map(|(flow, verdict)| {
        let source = session.taint.source(flow.begins_with())?;
        Some(flow.ruling(verdict, &source))
    });
    rulings.max_by_key(|ruling| ruling.verdict)
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
