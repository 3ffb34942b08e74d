//! Side requests: requests about an item without calling it. Rules, rates and quota apply to them
//! as to calls.

use std::sync::Arc;

use capstan_model::{CallError, Caller, Effect, ItemId, Kind, Target, Unapproved, Verdict};
use capstan_policy::Tags;
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, compose, object};

use super::admit::{Ticket, admit};
use super::attempt::Attempt;
use super::confirm::confirm;
use super::continuation::{Consent, Continuation};
use super::extension::{ExtensionMethod, ExtensionNotification};
use super::outgoing::Outgoing;
use super::permit::permit;
use super::record::Record;
use super::screen::{check_size, not_streamed};
use super::settle::unlisted;
use super::sign_in::Accounts;
use crate::catalog::typed;
use crate::hub::Hub;
use crate::ports::{Approver, Lane};
use crate::{BackChannel, Call, Ground, Part, Session, Unattended};

/// The parts of the params of a completion that decisions read, with their protected members.
const COMPLETED: [(&str, &[&str]); 3] = [
    ("ref", &["type", "name", "uri"]),
    ("argument", &["name", "value"]),
    ("context", &["arguments"]),
];

/// Proof that a side request may be sent, with the item and the operation in one value.
pub struct Admission {
    id: ItemId,
    op: SideOp,
    /// The tags that flows are judged by.
    tags: Tags,
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
    /// A method of an extension of the protocol. Its item is [named](Self::own_item) after the
    /// method. The params are as the client sent them.
    Extension {
        /// The method.
        method: ExtensionMethod,
        /// The params.
        params: Json,
    },
    /// A notification of an extension, which is not answered.
    Notify {
        /// The method.
        method: ExtensionNotification,
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

    pub(super) fn tags(&self) -> Tags {
        self.tags
    }

    pub(super) fn on_behalf_of(self, lane: Lane, back: Option<BackChannel>) -> Self {
        Self { lane, back, ..self }
    }
}

/// A side request that is to be decided on.
pub(super) struct SideRequest {
    /// The item that the front found; of an extension, only its server counts.
    pub(super) id: ItemId,
    pub(super) call: Call,
    pub(super) op: SideOp,
}

/// Runs the steps of a call up to `admit` for a side request.
pub(super) async fn walk(
    hub: &Hub,
    session: &Session,
    request: SideRequest,
    approval_from: ApprovalFrom<'_>,
    record: &mut Record<'_>,
) -> Result<Admission, CallError> {
    let SideRequest { id, call, op } = request;
    let id = decided_item(id, &op);
    record.meant(&id);
    let kind = decided_kind(call.target.kind, &op);
    let op = about(op, kind, &id)?;
    let call = decided_call(call, kind, &id, &op);
    let caller = Arc::clone(&call.caller);
    record.resolved(op.effect());
    let settled = unlisted(id.clone(), op.effect(), call)?;
    let mut permitted = permit(hub, session, settled, record)?;
    check_resource(hub, &op, &id, &caller, record)?;
    if let Some(question) = &mut permitted.question {
        // The approval of a side request does not hold for calls of the item: the method is among
        // the arguments that the operator sees and the approval is remembered by.
        let method = compose::string(match &op {
            SideOp::Extension { .. } | SideOp::Notify { .. } => op.method(),
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
    let tags = ticket.tags();
    Ok(Admission { id: ticket.into_id(), op, tags, lane: Lane::ANY, back: None })
}

/// Returns the item that the rules decide on. A method of an extension is its own item, whatever
/// item the front has named.
fn decided_item(id: ItemId, op: &SideOp) -> ItemId {
    match op.own_item() {
        Some(item) => ItemId { item, ..id },
        None => id,
    }
}

/// Returns the kind of item that the operation is about.
fn decided_kind(named: Kind, op: &SideOp) -> Kind {
    match (op, named) {
        (SideOp::Subscribe, _) | (SideOp::Complete(_), Kind::Resource) => Kind::Resource,
        (SideOp::Complete(_), Kind::Prompt | Kind::Tool) => Kind::Prompt,
        (SideOp::Extension { .. } | SideOp::Notify { .. }, _) => Kind::Tool,
    }
}

/// Returns the call that the rules decide on. Its arguments are those of the operation, so that the
/// rules read what the server gets.
fn decided_call(call: Call, kind: Kind, id: &ItemId, op: &SideOp) -> Call {
    let target = Target::exact(kind, id.clone());
    let arguments = match op {
        SideOp::Subscribe => return Call { target, ..call },
        SideOp::Complete(params) => typed(params),
        SideOp::Extension { params, .. } | SideOp::Notify { params, .. } => {
            // Every request has metadata, which is no argument.
            object::without_member(params, "_meta").unwrap_or_else(|_| params.clone())
        }
    };
    Call { part: call.part, ..Call::new(call.caller, target, Some(&arguments)) }
}

/// Refuses a method of an extension about a resource that the caller may not read.
fn check_resource(
    hub: &Hub,
    op: &SideOp,
    id: &ItemId,
    caller: &Caller,
    record: &mut Record<'_>,
) -> Result<(), CallError> {
    let (SideOp::Extension { params, .. } | SideOp::Notify { params, .. }) = op else {
        return Ok(());
    };
    let Some(item) = object::get_string(params, "uri") else { return Ok(()) };
    let id = ItemId { server: id.server.clone(), item };
    let ruling = hub.ruling_on(&id, Kind::Resource, Effect::Read, caller);
    if ruling.verdict != Verdict::Deny {
        return Ok(());
    }
    record.ruled(&ruling);
    Err(CallError::Denied { item: format!("{}:{}", id.server, id.item), rule: ruling.rule })
}

/// Refuses an operation that a server could read differently than the rules do, and puts the
/// item's own name into it.
fn about(op: SideOp, kind: Kind, id: &ItemId) -> Result<SideOp, CallError> {
    let refuse = |json: &Json, protected| {
        refuse_duplicates(json, protected).map_err(|problem| {
            let (item, problem) = (id.to_string(), problem.to_string());
            CallError::InvalidArguments { item, problem }
        })
    };
    let params = match op {
        SideOp::Subscribe => return Ok(op),
        SideOp::Extension { ref params, .. } | SideOp::Notify { ref params, .. } => {
            refuse(params, &["uri", "_meta"])?;
            return Ok(op);
        }
        SideOp::Complete(params) => params,
    };
    refuse(&params, &["ref", "argument", "context", "_meta"])?;
    for (part, protected) in COMPLETED {
        object::get(&params, part).map_or(Ok(()), |part| refuse(&part, protected))?;
    }
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
        let accounts = Accounts::at(self, &admission.id.server);
        let lease = if let Some(lease) = server.lease(admission.lane) {
            lease
        } else {
            let woken = server.wake(admission.lane).await;
            woken.map_err(|error| accounts.explain(error, admission.lane))?
        };
        let answer = lease.send(Outgoing::side(&admission)).await;
        let answer = answer.map_err(|error| accounts.explain(error, admission.lane))?;
        let answer = not_streamed(&admission.id.server, answer)?;
        let item = || format!("{} {}", admission.id, admission.op.method());
        check_size(self.limits.max_answer, item, answer.len())?;
        Ok(answer)
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
        // It was counted when it was made.
        let made = Continuation::of(id.clone(), Arc::clone(caller), Consent::NotAsked);
        let call = Call { part: Part::Later(made), ..Call::new(Arc::clone(caller), target, None) };
        let attempt = Attempt::at_once(self, &call).in_lane(lane);
        if !was_admitted {
            let (kind, name) = (Kind::Resource, id.to_string());
            return Err(attempt.refuse(CallError::Unknown { kind, name, nearest: Vec::new() }));
        }
        let from = ApprovalFrom::OtherShells;
        attempt.side(session, call, SideOp::Subscribe, from, None).await.map(drop)
    }
}
