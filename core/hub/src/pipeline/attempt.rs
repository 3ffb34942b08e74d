//! A call whose audit record is open before the call is assembled.

use std::sync::Arc;

use capstan_model::{CallError, ItemId};
use capstan_wire::{Json, object};

use super::reach::{is_uri, out_of_reach};
use super::record::{OpenEntry, Record};
use super::resolve::by_uri;
use super::screen::Passed;
use super::side::{self, Admission, ApprovalFrom, SideOp, SideRequest};
use super::spill::Deliverable;
use super::{Delivery, Screened, Shape, Streaming, walk};
use crate::hub::Hub;
use crate::ports::{ClientSide, Lane, ResourceLists, Settling, Unwritten};
use crate::{BackChannel, Call, ClientIdentity, Outcome, Requester, Session};

/// A call that is being assembled. Assembling can require starting a server or asking a person.
///
/// It leaves exactly one audit entry: with its outcome if it is [called](Self::call), with the error
/// if its front [refuses it](Self::refuse), and as abandoned if it is dropped.
#[must_use = "dropping it records an abandoned call"]
pub struct Attempt<'a> {
    hub: &'a Hub,
    record: Record<'a>,
    /// The lane of a side request. A call brings its own with its requester.
    lane: Lane,
    /// The client of a side request that its server may send messages about.
    client: Option<(Arc<dyn ClientSide>, ClientIdentity)>,
}

/// An attempt that does not borrow its hub, for a request whose task has yet to run.
///
/// Dropping it records an abandoned call.
#[must_use = "dropping it records an abandoned call"]
pub struct OpenAttempt(OpenEntry);

// === impl OpenAttempt ===

impl OpenAttempt {
    /// Continues the attempt.
    pub fn resume(self, hub: &Hub) -> Attempt<'_> {
        Attempt { hub, record: Record::resume(hub, self.0), lane: Lane::ANY, client: None }
    }
}

// === impl Attempt ===

impl<'a> Attempt<'a> {
    pub(crate) fn begin(hub: &'a Hub, call: &Call) -> Self {
        let mut record = Record::open(hub, call);
        if let Some(id) = hub.ids_of(&call.target).next() {
            record.meant(&id);
        }
        Self { hub, record, lane: Lane::ANY, client: None }
    }

    /// Opens the record of a call that is already assembled.
    pub(crate) fn at_once(hub: &'a Hub, call: &Call) -> Self {
        Self { hub, record: Record::open(hub, call), lane: Lane::ANY, client: None }
    }

    /// Runs all steps of the call and waits for the complete answer.
    pub async fn call(
        self,
        session: &'a Session,
        call: Call,
        requester: Requester<'a>,
    ) -> Result<Screened, CallError> {
        self.deliver(session, call, requester).await?.whole().await
    }

    /// Runs all steps of the call. A large answer may still be arriving if the client accepts
    /// that.
    pub async fn deliver(
        mut self,
        session: &'a Session,
        call: Call,
        requester: Requester<'a>,
    ) -> Result<Delivery, CallError> {
        self.record.asked(&call);
        self.walk(session, call, requester).await
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` holds what it is given twice")]
    pub(crate) fn walk(
        mut self,
        session: &'a Session,
        call: Call,
        requester: Requester<'a>,
    ) -> impl Future<Output = Result<Delivery, CallError>> + Send + 'a {
        async move {
            let walked = walk(self.hub, session, call, requester, &mut self.record).await;
            let result = match walked.map(Deliverable::into_passed) {
                Ok(Passed::Streaming(stream)) => {
                    let streaming = Streaming::new(stream, self.record.keep());
                    return Ok(Delivery::Streaming(Box::new(streaming)));
                }
                Ok(Passed::Whole(screened)) => Ok(screened),
                Err(error) => Err(error),
            };
            let settling = self.record.close(&result);
            settled(settling, result.map(Delivery::Whole)).await
        }
    }

    /// Keeps the attempt open without the hub.
    pub fn open(self) -> OpenAttempt {
        OpenAttempt(self.record.keep())
    }

    /// Checks that the caller may use anything of the server that `call` names, before the server is
    /// started for it.
    ///
    /// # Errors
    /// When the server does not exist for the caller. The attempt must be ended in any case.
    pub fn reach(&mut self, call: &Call) -> Result<(), CallError> {
        if let Some(id) = call.target.id() {
            self.record.meant(&id);
        }
        match out_of_reach(self.hub, call) {
            Some((id, ruling)) => {
                self.record.ruled(&ruling);
                Err(CallError::Denied { item: id.to_string(), rule: ruling.rule })
            }
            None => Ok(()),
        }
    }

    /// Records the item of the operation.
    pub(super) fn found(&mut self, id: &ItemId) {
        self.record.meant(id);
    }

    /// Records the method of a request that uses the item without calling it.
    pub fn by_method(mut self, method: &'static str) -> Self {
        self.record.by_method(method);
        self
    }

    /// Sets the lane that a side request is sent in.
    pub fn in_lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Sets the client that gets progress, notifications and questions of a side request.
    pub fn heard_by(self, requester: Requester<'_>) -> Self {
        Self { client: Some((requester.client, requester.identity)), ..self }
    }

    /// Decides on a side request as on a call of its item: by rules, rates and quota. The target of
    /// `call` names the item's server, or is a URI in `resources`.
    ///
    /// # Errors
    /// When it may not be run. The attempt must be ended in any case.
    pub async fn admit(
        &mut self,
        session: &Session,
        call: Call,
        op: SideOp,
        approval_from: ApprovalFrom<'_>,
        resources: Option<&dyn ResourceLists>,
    ) -> Result<Admission, CallError> {
        let id = match (call.target.id(), resources) {
            (Some(id), _) => id,
            (None, Some(resources)) if is_uri(&call.target) => {
                by_uri(self.hub, &call.caller, &call.target.name, resources).await?
            }
            (None, _) => {
                let (kind, name) = (call.target.kind, call.target.name);
                return Err(CallError::Unknown { kind, name, nearest: Vec::new() });
            }
        };
        let to_client = |(client, identity): &(Arc<dyn ClientSide>, ClientIdentity)| {
            BackChannel::new(self.hub, &id.server, Arc::clone(client), *identity)
        };
        let back = self.client.as_ref().map(to_client);
        let request = SideRequest { id, call, op };
        let admitted = side::walk(self.hub, session, request, approval_from, &mut self.record);
        Ok(admitted.await?.on_behalf_of(self.lane, back))
    }

    /// Decides on a side request, runs it and records it.
    ///
    /// # Errors
    /// When it may not be run, or the server refuses.
    pub async fn side(
        mut self,
        session: &Session,
        call: Call,
        op: SideOp,
        approval_from: ApprovalFrom<'_>,
        resources: Option<&dyn ResourceLists>,
    ) -> Result<Json, CallError> {
        self.record.by_method(op.recorded_method());
        let result = match self.admit(session, call, op, approval_from, resources).await {
            Ok(admission) => {
                let (tags, id) = (admission.tags(), admission.id().clone());
                let answered = self.hub.run_side(admission).await;
                if answered.is_ok() {
                    session.taint.add(tags, &id);
                }
                answered
            }
            Err(error) => Err(error),
        };
        self.end(result, |answer| answer).await
    }

    /// Ends and records an operation that is not a call; `answer` is the server's answer in its
    /// result.
    ///
    /// # Errors
    /// The error in `result`, or that the operation cannot be recorded.
    pub async fn end<T>(
        self,
        result: Result<T, CallError>,
        answer: impl FnOnce(&T) -> &Json,
    ) -> Result<T, CallError> {
        let (outcome, bytes) = match &result {
            Ok(result) => {
                let answer = answer(result);
                let failed = Shape::of(answer).is_error || carries_error(answer);
                (if failed { Outcome::ToolError } else { Outcome::Answered }, answer.len())
            }
            Err(error) => (Outcome::Failed(error.code()), 0),
        };
        let settling = self.record.end(outcome, bytes);
        settled(settling, result).await
    }

    /// Records a call that cannot be assembled, and returns the error.
    ///
    /// Attempts with unknown tools or invalid arguments are recorded too.
    pub fn refuse(self, error: CallError) -> CallError {
        // Not awaited: the entry is written anyway, and errors are not withheld.
        drop(self.record.close(&Err(error.clone())));
        error
    }
}

/// True if the description of a task carries the result of a tool that reports a failure.
fn carries_error(answer: &Json) -> bool {
    object::get(answer, "result").is_some_and(|result| Shape::of(&result).is_error)
}

/// Holds a result back until its entry is durable. If the entry cannot be written, an answer is
/// withheld. An error is returned in any case, because hiding it gains nothing.
async fn settled<T>(settling: Settling, result: Result<T, CallError>) -> Result<T, CallError> {
    match settling {
        Settling::Done => result,
        Settling::Waits(kept) => match kept.await {
            Ok(()) => result,
            Err(Unwritten(reason)) => result.and(Err(CallError::Unrecorded { reason })),
        },
    }
}
