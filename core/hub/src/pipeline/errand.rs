//! What is asked about an item and is no call of it: by the same rules, rates and quota.

use capstan_model::{CallError, Effect, ItemId, ServerName};
use capstan_wire::{Json, compose, object};
use futures::FutureExt as _;
use futures::future::ready;

use super::admit::{Ticket, admit};
use super::confirm::confirm;
use super::permit::permit;
use super::record::Record;
use super::resolve::{Resolved, with_own_name};
use crate::Standing;
use crate::hub::Hub;
use crate::ports::{Approval, BoxFuture, Elicitation, Notice, Operator, Question, Reply};
use crate::{Call, Ground, Session};

/// Proof that an errand may be run.
#[derive(Debug)]
pub struct Admitted(Ticket);

/// Whether somebody may be asked for an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Whoever can answer from another shell.
    Elsewhere,
    /// Nobody: it comes with every letter that is typed. What was said before counts.
    Nobody,
}

/// There is nobody at the front who could be asked in the middle of an errand.
struct NobodyThere;

// === impl Admitted ===

impl Admitted {
    /// The server that may be asked.
    pub(crate) fn server(&self) -> &ServerName {
        &self.0.id().server
    }
}

/// Takes an errand as far as a call goes before it is sent.
pub(super) async fn walk(
    hub: &Hub,
    session: &Session,
    (id, call, method): (ItemId, Call, &'static str),
    asks: Asks,
    record: &mut Record<'_>,
) -> Result<Admitted, CallError> {
    let (definition, call) = (Json::empty_object(), with_own_name(call, &id)?);
    let standing = Standing::Approved;
    let resolved = Resolved { id, effect: Effect::Read, definition, fact: None, standing, call };
    record.resolved(resolved.effect);
    let mut permitted = permit(hub, resolved, record)?;
    if let Some(question) = &mut permitted.question {
        // A yes to this is none to the item itself, and the operator sees what it is for.
        let method = compose::string(method);
        let arguments = object::with_member(&question.arguments, "method", &method);
        question.arguments = arguments.unwrap_or_else(|_| question.arguments.clone());
        if asks == Asks::Nobody && !hub.approvals.remember(&session.memory, question) {
            record.approved(Ground::Nobody);
            let (item, rule) = (question.id.to_string(), question.rule.clone());
            return Err(CallError::NotApproved { item, rule, open: None });
        }
    }
    let approved = confirm(hub, session, &NobodyThere, permitted, record).await?;
    admit(hub, session, approved).map(Admitted)
}

// === impl NobodyThere ===

impl Operator for NobodyThere {
    fn approve<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Approval> {
        ready(Approval::No(Ground::Nobody)).boxed()
    }

    fn elicit(&self, _: Elicitation) -> BoxFuture<'_, Reply> {
        ready(Reply::Decline).boxed()
    }

    fn notice(&self, _: Notice) {}
}
