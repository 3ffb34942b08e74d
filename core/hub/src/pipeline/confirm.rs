//! Step 6: gets the operator's approval if a rule says `ask`.

use capstan_model::{Binding, CallError, Unapproved};
use tracing::warn;

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
}

pub(super) async fn confirm(
    hub: &Hub,
    session: &Session,
    approver: &dyn Approver,
    permitted: Permitted,
    record: &mut Record<'_>,
) -> Result<Approved, CallError> {
    let Permitted { resolved, question } = permitted;
    if let Some(question) = question {
        // Boxed because few calls are asked about, to keep the future of every call small.
        Box::pin(ask((hub, session), approver, (&resolved, &question), record)).await?;
    }
    Ok(Approved { resolved })
}

async fn ask(
    (hub, session): (&Hub, &Session),
    approver: &dyn Approver,
    (resolved, question): (&Resolved, &Question),
    record: &mut Record<'_>,
) -> Result<(), CallError> {
    let Decision { approval, open, waited } = match resolved.call.part {
        // Approved before the server asked for input; it is still the same call.
        Part::Later { approved: true } => Approval::once(Ground::Asked).into(),
        Part::Later { approved: false } | Part::First => {
            hub.approvals.decide(&session.memory, question, approver).await
        }
    };
    match approval {
        Approval::Yes(ground, _) => {
            record.approved(ground);
            approver.allowed();
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
