//! Step 3: where a rule says `ask`, does the operator say yes?

use capstan_model::CallError;

use super::permit::Permitted;
use super::record::Record;
use super::resolve::Resolved;
use crate::ports::{Approval, Operator};
use crate::{Ground, Part};

/// A call that rules and operator agree to.
pub(super) struct Approved {
    pub(super) resolved: Resolved,
}

pub(super) async fn confirm(
    operator: &dyn Operator,
    permitted: Permitted,
    record: &mut Record<'_>,
) -> Result<Approved, CallError> {
    let Permitted { resolved, question } = permitted;
    if let Some(question) = question {
        let approval = match resolved.call.part {
            // Said yes to before the server asked for input; it is the same call.
            Part::Later { approved: true } => Approval::Yes(Ground::Asked),
            Part::Later { approved: false } | Part::First => operator.approve(&question).await,
        };
        match approval {
            Approval::Yes(ground) => record.approved(ground),
            Approval::No(ground) => {
                record.approved(ground);
                let item = resolved.id.to_string();
                return Err(CallError::NotApproved { item, rule: question.rule });
            }
        }
    }
    Ok(Approved { resolved })
}
