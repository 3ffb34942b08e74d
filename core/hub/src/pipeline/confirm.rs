//! Step 6: gets the operator's approval if a rule says `ask`.

use capstan_model::{Binding, By, CallError, Unapproved};
use tracing::warn;

use super::continuation::Consent;
use super::permit::Permitted;
use super::record::Record;
use super::resolve::Resolved;
use crate::approvals::Decision;
use crate::hub::Hub;
use crate::ports::{Approval, Approver, Item, Question};
use crate::{Ground, Part, Session, Standing};

/// A call that the rules and the operator allow.
pub(super) struct Approved {
    pub(super) resolved: Resolved,
    pub(super) consent: Consent,
    /// The call is counted, unless it continues one that was.
    pub(super) count: Count,
}

/// A choice whether a call counts against quota and rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Yes,
    No,
}

pub(super) async fn confirm(
    hub: &Hub,
    session: &Session,
    approver: &dyn Approver,
    permitted: Permitted,
    record: &mut Record<'_>,
) -> Result<Approved, CallError> {
    let Permitted { resolved, question } = permitted;
    let before = match &resolved.call.part {
        Part::First => None,
        Part::Later(continuation) => continuation.claim(&resolved.id, &resolved.call.caller),
    };
    let count = if before.is_some() { Count::No } else { Count::Yes };
    let mut consent = Consent::NotAsked;
    if let Some(question) = question {
        // Approved before the server asked for input; it is still the same call. The pins ask about
        // the definition, which may have changed since.
        let is_approved = before == Some(Consent::Given) && question.by != By::Pins;
        let decision = if is_approved {
            Approval::once(Ground::Asked).into()
        } else {
            // Boxed because few calls are asked about, to keep the future of every call small.
            Box::pin(hub.approvals.decide(&session.memory, &question, approver)).await
        };
        Box::pin(apply(hub, &resolved, &question, decision, record)).await?;
        consent = Consent::Given;
    }
    Ok(Approved { resolved, consent, count })
}

/// Records the decision of the operator, and refuses the call if it is not approved.
async fn apply(
    hub: &Hub,
    resolved: &Resolved,
    question: &Question,
    decision: Decision,
    record: &mut Record<'_>,
) -> Result<(), CallError> {
    let Decision { approval, open, waited } = decision;
    match approval {
        Approval::Yes(ground, _) => {
            record.approved(ground);
            pin(hub, resolved, ground).await;
            Ok(())
        }
        Approval::No(ground) => {
            record.approved(ground);
            let (item, rule, by) = (resolved.id.clone(), question.rule.clone(), question.by);
            let why = match ground {
                Ground::Refused => {
                    return Err(CallError::Refused { item: item.to_string(), rule });
                }
                Ground::ClientDeclined => Unapproved::ClientDeclined,
                Ground::Nobody
                | Ground::ByHand
                | Ground::Asked
                | Ground::Remembered
                | Ground::ClientConfirms
                | Ground::OtherShell => match waited {
                    Some(waited) => Unapproved::Unanswered(waited),
                    None => Unapproved::Nobody,
                },
            };
            Err(CallError::NotApproved { item, rule, by, why, open })
        }
    }
}

/// Approves the definition of a new tool if the operator was asked and said yes. If a client
/// answers for the operator, its yes applies to this call only.
async fn pin(hub: &Hub, resolved: &Resolved, ground: Ground) {
    let Resolved { id, definition, standing, call, .. } = resolved;
    let was_asked = match ground {
        Ground::OtherShell => true,
        Ground::Asked => call.caller.binding == Binding::Free,
        Ground::ByHand
        | Ground::Remembered
        | Ground::ClientConfirms
        | Ground::Refused
        | Ground::ClientDeclined
        | Ground::Nobody => false,
    };
    if *standing != Standing::New || !was_asked {
        return;
    }
    let item = Item { name: id.item.clone(), definition: definition.clone() };
    if let Err(error) = hub.pins.approve(&id.server, [&item]).await {
        warn!(%error, tool = ?id.item, "the pin of an approved tool could not be saved");
    }
}
