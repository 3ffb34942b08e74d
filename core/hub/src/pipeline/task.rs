//! Tasks: operations on calls that continue as a task, for the caller who made the call.

use std::future::ready;
use std::sync::Arc;

use capstan_model::{CallError, Caller, ItemId, Kind, ServerName, Target};
use capstan_policy::Tags;
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{Json, compose, object};

use super::admit::recordable;
use super::attempt::{Attempt, OpenAttempt};
use super::outgoing::{Outgoing, TaskOp, TaskRequest, TaskSubscription};
use super::record::Record;
use super::screen::{Origin, check_size, not_streamed};
use super::sign_in::Accounts;
use crate::hub::Hub;
use crate::life::Server;
use crate::ports::{BoxFuture, Lane, Subscriber};
use crate::{BackChannel, Call, Outcome, Requester, Session};

/// A caller's right to a task that their call has become. Only `screen` creates one.
#[derive(Debug)]
pub struct TaskHandle {
    /// The item whose call became the task.
    of: ItemId,
    kind: Kind,
    owner: Arc<Caller>,
    /// The server's id of the task.
    id: String,
    /// The tags of the item, which flows are judged by.
    tags: Tags,
    /// The lane that the call was sent in. Only its connection may know the task.
    lane: Lane,
}

/// An operation on a task whose record is open. Dropping it records an abandoned operation.
#[must_use = "dropping it records an abandoned operation"]
pub struct OpenTask {
    attempt: OpenAttempt,
    caller: Arc<Caller>,
    handle: Arc<TaskHandle>,
    op: TaskOp,
    params: Json,
}

// === impl OpenTask ===

impl OpenTask {
    /// Runs the operation, like [`Hub::task`].
    ///
    /// # Errors
    /// Like those of [`Hub::task`].
    pub async fn run(
        self,
        hub: &Hub,
        session: &Session,
        requester: Requester<'_>,
    ) -> Result<Json, CallError> {
        let Self { attempt, caller, handle, op, params } = self;
        let attempt = attempt.resume(hub);
        let result = hub.ask_task(&caller, &handle, op, &params, requester).await;
        handle.taint(session, &result);
        attempt.end(result, |answer| answer).await
    }
}

// === impl TaskHandle ===

impl TaskHandle {
    pub(super) fn new(origin: Origin, id: String) -> Self {
        let tags = origin.tags();
        let Origin { id: of, kind, caller: owner, lane, .. } = origin;
        Self { of, kind, owner, id, tags, lane }
    }

    /// The server that runs the task.
    pub fn server(&self) -> &ServerName {
        &self.of.server
    }

    /// The server's id of the task.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The call that an entry about the task is made from.
    fn call_of(&self, caller: &Arc<Caller>) -> Call {
        Call::new(Arc::clone(caller), Target::exact(self.kind, self.of.clone()), None)
    }

    /// Notes in the conversation that it has received the answer.
    fn taint(&self, session: &Session, result: &Result<Json, CallError>) {
        if matches!(result, Ok(_) | Err(CallError::Server { .. })) {
            session.taint.add(self.tags, &self.of);
        }
    }

    fn check_owner(&self, caller: &Caller) -> Result<(), CallError> {
        if self.owner.is_same(caller) {
            return Ok(());
        }
        Err(CallError::Unknown { kind: self.kind, name: self.id.clone(), nearest: Vec::new() })
    }
}

impl Hub {
    /// Runs an operation on a task of `caller`. Questions that the server asks meanwhile go to
    /// the client. The task's id is inserted into the client's params. The operation is recorded
    /// like a call.
    ///
    /// # Errors
    /// When the task is not the caller's, the server cannot be used, or its answer is too large.
    pub fn task<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        session: &'a Session,
        handle: &'a TaskHandle,
        op: TaskOp,
        params: &'a Json,
        requester: Requester<'a>,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + 'a {
        // Opened here and not in the future, which may be dropped before it runs.
        let attempt = self.attempt_task(caller, handle, op, params);
        async move {
            let result = self.ask_task(caller, handle, op, params, requester).await;
            handle.taint(session, &result);
            attempt.end(result, |answer| answer).await
        }
    }

    /// Opens the record of an operation on a task of `caller` that is yet to run.
    pub fn open_task(
        &self,
        caller: &Arc<Caller>,
        handle: &Arc<TaskHandle>,
        op: TaskOp,
        params: Json,
    ) -> OpenTask {
        let attempt = self.attempt_task(caller, handle, op, &params).open();
        let (caller, handle) = (Arc::clone(caller), Arc::clone(handle));
        OpenTask { attempt, caller, handle, op, params }
    }

    fn attempt_task(
        &self,
        caller: &Arc<Caller>,
        handle: &TaskHandle,
        op: TaskOp,
        params: &Json,
    ) -> Attempt<'_> {
        let call = Call { params: params.clone(), ..handle.call_of(caller) };
        let mut attempt = Attempt::at_once(self, &call).by_method(op.method());
        attempt.found(&handle.of);
        attempt
    }

    async fn ask_task(
        &self,
        caller: &Caller,
        handle: &TaskHandle,
        op: TaskOp,
        params: &Json,
        requester: Requester<'_>,
    ) -> Result<Json, CallError> {
        handle.check_owner(caller)?;
        recordable(self)?;
        let invalid = |problem| CallError::InvalidArguments { item: handle.id.clone(), problem };
        // A second id beside the checked one must not reach the server.
        refuse_duplicates(params, &["taskId", "inputResponses", "_meta"])
            .map_err(|problem| invalid(problem.to_string()))?;
        let name = compose::string(&handle.id);
        let params = object::with_member(params, "taskId", &name)
            .map_err(|_| invalid("the request's params are not an object".to_owned()))?;
        let uris = self.merged_uris(&requester);
        let Requester { client, identity, .. } = requester;
        let back = BackChannel::new(self, handle.server(), client, identity);
        let server = self.task_server(caller, handle)?;
        let request = TaskRequest::new(op, vec![handle.id.clone()], params);
        let at = (handle.lane, Accounts::at(self, handle.server()));
        let answer = send(server, at, Outgoing::task(&request, &back)).await?;
        let item = || format!("{} {}", handle.server(), op.method());
        check_size(self.limits.max_answer, item, answer.len())?;
        let masked = self.catalog.screens.answer(handle.server(), op.method(), &answer)?;
        let answer = masked.unwrap_or(answer);
        let shown = uris.and_then(|uris| uris.shown_result(handle.server(), &answer));
        Ok(shown.unwrap_or(answer))
    }

    /// Forwards notifications about tasks of `caller` to `subscriber`. This lasts until the server
    /// ends the subscription or the future is dropped. All tasks belong to one server. The future
    /// does not borrow the hub, which may be replaced meanwhile. The server gets the client's
    /// `capabilities`. The subscription is recorded when it ends; if the subscriber ends it, as
    /// abandoned.
    ///
    /// # Errors
    /// When a task is not the caller's, or the server cannot be used or sends no such
    /// notifications.
    pub fn follow(
        &self,
        caller: &Arc<Caller>,
        handles: &[Arc<TaskHandle>],
        capabilities: Json,
        subscriber: Arc<dyn Subscriber>,
    ) -> BoxFuture<'static, Result<Json, CallError>> {
        let Some(first) = handles.first() else {
            return Box::pin(ready(Ok(Json::empty_object())));
        };
        let mut record = Record::open(self, &first.call_of(caller));
        record.by_method(TaskSubscription::METHOD);
        record.meant(&first.of);
        let mut entry = record.keep();
        let owned = handles.iter().try_for_each(|handle| handle.check_owner(caller));
        let server = owned
            .and_then(|()| recordable(self))
            .and_then(|()| self.task_server(caller, first).cloned());
        let at = (first.lane, Accounts::at(self, first.server()));
        let ids = handles.iter().filter(|handle| handle.server() == first.server());
        let ids = ids.map(|handle| handle.id.clone()).collect();
        let subscription = TaskSubscription::new(ids, capabilities, subscriber);
        Box::pin(async move {
            let result = match &server {
                Ok(server) => send(server, at, Outgoing::follow(&subscription)).await,
                Err(error) => Err(error.clone()),
            };
            entry.add(result.as_ref().map_or(0, Json::len));
            entry.end(match &result {
                Ok(_) => Outcome::Answered,
                Err(error) => Outcome::Failed(error.code()),
            });
            result
        })
    }

    /// Returns the server of a task. If the server was removed, or the caller may no longer use
    /// anything of it, the task is unknown.
    fn task_server(&self, caller: &Caller, handle: &TaskHandle) -> Result<&Arc<Server>, CallError> {
        let server = self.servers.get(handle.server());
        let refused = || self.policy.out_of_reach(caller, handle.server());
        server.filter(|_| refused().is_none()).ok_or_else(|| {
            let name = handle.server().to_string();
            CallError::Unknown { kind: handle.kind, name, nearest: Vec::new() }
        })
    }
}

async fn send(
    server: &Arc<Server>,
    (lane, accounts): (Lane, Accounts),
    outgoing: Outgoing<'_>,
) -> Result<Json, CallError> {
    let lease = server.wake(lane).await.map_err(|error| accounts.explain(error, lane))?;
    let answer = lease.send(outgoing).await.map_err(|error| accounts.explain(error, lane))?;
    not_streamed(server.name(), answer)
}
