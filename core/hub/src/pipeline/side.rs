//! Side requests: requests about an item without calling it. Rules, rates and quota apply to them
//! as to calls.

use std::sync::Arc;

use capstan_model::{CallError, Caller, ItemId, Kind, Target, Unapproved};
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, compose, object};

use super::admit::{Ticket, admit};
use super::attempt::Attempt;
use super::confirm::confirm;
use super::outgoing::Outgoing;
use super::permit::permit;
use super::record::Record;
use super::resolve::Resolved;
use super::screen::check_size;
use super::settle::with_own_name;
use crate::hub::Hub;
use crate::ports::{Approver, Lane};
use crate::{Answer, BackChannel, Call, Ground, Part, Session, Unattended};

/// Proof that a side request may be sent, with the item and the operation in one value.
pub struct Admission {
    id: ItemId,
    op: SideOp,
    /// The lane of the caller.
    lane: Lane,
    /// The way to the client, for messages about the request.
    back: Option<BackChannel>,
}

/// An operation about an item.
#[derive(Clone, Debug, PartialEq)]
pub enum SideOp {
    /// Completes a value that is being typed. The params are as the client sent them.
    Complete(Json),
    /// Requests notifications when the resource changes.
    Subscribe,
    /// A method of an extension of the protocol. The item is [named](Self::extension_item) after
    /// the method. The params are as the client sent them.
    Extension {
        /// The method.
        method: Box<str>,
        /// The params.
        params: Json,
    },
    /// A notification of an extension, which is not answered.
    Notify {
        /// The method.
        method: Box<str>,
        /// The params.
        params: Json,
    },
}

/// Where the approval of a side request may come from. Earlier approvals always count.
#[derive(Clone, Copy)]
pub enum ApprovalFrom<'a> {
    /// From earlier approvals only: the request is sent on every keystroke.
    Memory,
    /// From the operator at another shell.
    OtherShells,
    /// From the approver at this front.
    Front(&'a dyn Approver),
}

// === impl Admission ===

impl Admission {
    /// The item, by its own name at the server.
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// The operation.
    pub fn op(&self) -> &SideOp {
        &self.op
    }

    /// The way to the client, for messages about the request.
    pub fn back(&self) -> Option<&BackChannel> {
        self.back.as_ref()
    }

    pub(super) fn on_behalf_of(self, lane: Lane, back: Option<BackChannel>) -> Self {
        Self { lane, back, ..self }
    }
}

/// Runs the steps of a call up to `admit` for a side request.
pub(super) async fn walk(
    hub: &Hub,
    session: &Session,
    (id, call, op): (ItemId, Call, SideOp),
    approval_from: ApprovalFrom<'_>,
    record: &mut Record<'_>,
) -> Result<Admission, CallError> {
    let op = about(op, call.target.kind, &id)?;
    check_resource(hub, &op, &id, &call.caller)?;
    let resolved = Resolved::unlisted(id.clone(), op.effect(), with_own_name(call, &id)?);
    record.resolved(resolved.effect);
    let mut permitted = permit(hub, resolved, record)?;
    if let Some(question) = &mut permitted.question {
        // An approval of this is none of the item itself. The operator sees the method.
        let method = compose::string(match &op {
            SideOp::Extension { method, .. } | SideOp::Notify { method, .. } => method,
            SideOp::Complete(_) | SideOp::Subscribe => record.method().unwrap_or(op.method()),
        });
        let arguments = object::with_member(&question.arguments, "method", &method);
        question.arguments = arguments.unwrap_or_else(|_| question.arguments.clone());
        if matches!(approval_from, ApprovalFrom::Memory)
            && !hub.approvals.remember(&session.memory, question)
        {
            record.approved(Ground::Nobody);
            let (item, rule, by) = (question.id.clone(), question.rule.clone(), question.by);
            let why = Unapproved::Nobody;
            return Err(CallError::NotApproved { item, rule, by, why, open: None });
        }
    }
    let approver = match approval_from {
        ApprovalFrom::Front(approver) => approver,
        ApprovalFrom::OtherShells | ApprovalFrom::Memory => &Unattended,
    };
    let confirmed = confirm(hub, session, approver, permitted, record).await?;
    let ticket: Ticket = admit(hub, session, confirmed)?;
    Ok(Admission { id: ticket.into_id(), op, lane: Lane::ANY, back: None })
}

/// Refuses a method of an extension about a resource that the caller may not read.
fn check_resource(hub: &Hub, op: &SideOp, id: &ItemId, caller: &Caller) -> Result<(), CallError> {
    let (SideOp::Extension { params, .. } | SideOp::Notify { params, .. }) = op else {
        return Ok(());
    };
    // The rules and the server must read the same request.
    refuse_duplicates(params, &["uri", "_meta"]).map_err(|problem| {
        CallError::InvalidArguments { item: id.item.clone(), problem: problem.to_string() }
    })?;
    match object::get_string(params, "uri") {
        Some(uri) if !hub.shows_resource(caller, &id.server, &uri) => {
            let rule = "no rule lets the caller read this resource".to_owned();
            Err(CallError::Denied { item: format!("{}:{uri}", id.server), rule })
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the operation with the item's own name in it.
fn about(op: SideOp, kind: Kind, id: &ItemId) -> Result<SideOp, CallError> {
    let SideOp::Complete(params) = op else { return Ok(op) };
    let (word, key) = match kind {
        Kind::Resource => ("ref/resource", "uri"),
        Kind::Prompt | Kind::Tool => ("ref/prompt", "name"),
    };
    let reference = object::get(&params, "ref").unwrap_or_else(Json::empty_object);
    let named = object::with_member(&reference, key, &compose::string(&id.item))
        .and_then(|reference| object::with_member(&reference, "type", &compose::string(word)))
        .and_then(|reference| object::with_member(&params, "ref", &reference));
    named.map(SideOp::Complete).map_err(|_| {
        let problem = "the request's params are not an object".to_owned();
        CallError::InvalidArguments { item: id.to_string(), problem }
    })
}

impl Hub {
    /// Runs an admitted side request.
    ///
    /// # Errors
    /// When the server cannot be used, or refuses.
    pub async fn run_side(&self, admission: Admission) -> Result<Json, CallError> {
        let server = self.server(&admission.id.server)?;
        let lease = match server.lease(admission.lane) {
            Some(lease) => lease,
            None => server.wake(admission.lane).await?,
        };
        match lease.send(Outgoing::side(&admission)).await? {
            Answer::Whole(answer) => {
                let item = || format!("{} {}", admission.id, admission.op.method());
                check_size(self.limits.max_answer, item, answer.len())?;
                Ok(answer)
            }
            Answer::Streaming(_) => Err(CallError::Protocol {
                server: admission.id.server,
                problem: "a streamed answer to a request that is not a call".to_owned(),
            }),
        }
    }
}

impl Hub {
    /// Subscribes again to a resource at a server that replaces one in `before`, where the
    /// subscription must have been admitted. It is decided on again by the rules of this hub; if
    /// they ask, the operator is asked. It was counted before and is not counted again.
    ///
    /// # Errors
    /// When there was no such subscription, the rules now forbid it, it is not approved, or the
    /// server refuses.
    pub async fn resubscribe(
        &self,
        before: &Self,
        session: &Session,
        (caller, lane): (&Arc<Caller>, Lane),
        id: ItemId,
    ) -> Result<(), CallError> {
        let was_admitted =
            before.servers.get(&id.server).is_some_and(|server| server.is_subscribed(&id.item));
        let target = Target::exact(Kind::Resource, id.clone());
        let call = Call {
            part: Part::Later { approved: false },
            ..Call::new(Arc::clone(caller), target, None)
        };
        let attempt = Attempt::at_once(self, &call).in_lane(lane);
        if !was_admitted {
            let (kind, name) = (Kind::Resource, id.to_string());
            return Err(attempt.refuse(CallError::Unknown { kind, name, nearest: Vec::new() }));
        }
        let from = ApprovalFrom::OtherShells;
        attempt.side(session, call, SideOp::Subscribe, from, None).await.map(drop)
    }
}
