//! `tasks/…`: requests about a task, sent to its server on behalf of its owner.
//!
//! [`task_table`] maps the ids of tasks, and [`task_status`] forwards their notifications.

pub(crate) mod task_table;
pub(crate) mod task_status;

use std::sync::Arc;

use capstan_hub::ports::{Asking, Reply};
use capstan_hub::{Hub, OpenTask, Screened, TaskOp};
use capstan_model::CallError;
use capstan_model::rpc_code::{INTERNAL, INVALID_PARAMS, MISSING_CAPABILITY};
use capstan_wire::protocol::MODERN;
use capstan_wire::{Json, RequestId, compose, object};
use futures::future::join_all;

use crate::client::Client;
use crate::exchange::answer::Payload;
use crate::exchange::event_channel::channel;
use crate::exchange::{Exchange, Task};
use crate::gateway::Gateway;
use crate::methods::tasks::task_table::{Owner, TaskRecord};
use crate::protocol::capabilities::TASKS;
use crate::protocol::fault::Fault;
use crate::protocol::messages::refuse_ambiguous;
use crate::protocol::method::Method;
use crate::protocol::request_meta::RequestMeta;
use crate::questions::operator::ClientOperator;

/// Number of tasks on one page.
const PAGE: usize = 50;

/// The `resultType` of a call that has become a task.
const TASK: &str = "task";

/// An operation on a task whose audit record is open.
struct TaskOperation {
    hub: Arc<Hub>,
    open: OpenTask,
    task: TaskRecord,
    /// The client's id of the task.
    id: String,
}

impl Gateway {
    /// Handles an operation on a task; without one, lists the tasks of the client.
    ///
    /// The gateway composes the list itself, with one request per task.
    pub(crate) fn handle_task(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        op: Option<TaskOp>,
        params: Option<Json>,
    ) -> Exchange {
        let params = params.unwrap_or_else(Json::empty_object);
        // Opened here and not in the task, which may be dropped before it runs.
        let operation = match op.map(|op| self.begin_task(client, op, &params)) {
            Some(Err(fault)) => return Exchange::fault(id, fault),
            Some(Ok(operation)) => Some(operation),
            None => None,
        };
        let (events, receiver) = channel();
        let meta = RequestMeta::of(&params);
        let operator =
            ClientOperator::new(Arc::clone(client), meta.as_ref(), events, self.call_context());
        let (gateway, asker) = (Arc::clone(self), Arc::clone(client));
        let work = async move {
            let operator = Arc::new(operator);
            let result = match operation {
                Some(operation) => gateway.one_task(operation, operator).await,
                None => gateway.list_tasks(&asker, &params, operator).await,
            };
            result.map(Payload::from)
        };
        Exchange::running(id, client, receiver, || Task::new(work))
    }

    /// Finds the task of an operation, and opens the audit record.
    fn begin_task(
        &self,
        client: &Client,
        op: TaskOp,
        params: &Json,
    ) -> Result<TaskOperation, Fault> {
        let has_tasks = !client.era.requires_tasks_extension() || client.knows_tasks();
        let id = if has_tasks { read_task_id(params) } else { Err(needs_tasks()) };
        let id = id.inspect_err(|fault| {
            self.record_malformed(client, Method::Task(op), params, fault.message());
        })?;
        let task = self.tasks.find(&id, &Owner::of(client));
        let Some(task) = task else {
            self.record_unknown_task(client, Method::Task(op), params, &id);
            return Err(Fault::invalid("Task not found"));
        };
        let hub = self.hub();
        let open = hub.open_task(&client.caller, &task.handle, op, params.clone());
        Ok(TaskOperation { hub, open, task, id })
    }

    async fn one_task(
        &self,
        operation: TaskOperation,
        operator: Arc<ClientOperator>,
    ) -> Result<Json, Fault> {
        let TaskOperation { hub, open, task, id } = operation;
        match open.run(&hub, &operator.client.session, operator.requester()).await {
            Ok(result) => Ok(self.as_shown(&task, result, &operator).await),
            // The tasks of a server process end with it.
            Err(CallError::Server { code: INVALID_PARAMS, .. } | CallError::Unknown { .. })
                if task.orphaned =>
            {
                Err(Fault::invalid(
                    "Task not found: the configuration of its server has changed since, and the \
                     server was started anew",
                ))
            }
            Err(error) => Err(Fault::of_tool(&error, &id)),
        }
    }

    /// Converts a server's description of a task for its client.
    pub(crate) async fn as_shown(
        &self,
        task: &TaskRecord,
        said: Json,
        operator: &Arc<ClientOperator>,
    ) -> Json {
        let said = self.sift(task, said, operator).await;
        let said = self.tasks.translate(&task.server, &said);
        operator.signed_requests(&task.server, &said)
    }

    /// Removes the questions that the client cannot or may not be asked from a task's description.
    ///
    /// These are declined here.
    async fn sift(&self, task: &TaskRecord, said: Json, operator: &Arc<ClientOperator>) -> Json {
        let requests = object::get(&said, "inputRequests");
        let Some(requests) = requests.and_then(|all| object::members(&all).ok()) else {
            return said;
        };
        let may = self.hub().may_ask(&task.server);
        let (asked, refused): (Vec<_>, Vec<_>) =
            requests.into_iter().partition(|(_, one)| may && operator.can_be_asked(one));
        if refused.is_empty() {
            return said;
        }
        let no = Reply::Decline.to_json();
        let is_form = |request: &Json| {
            object::get_string(request, "method").as_deref() == Some(Asking::Elicit.method())
        };
        let declined: Vec<(&str, &Json)> = refused
            .iter()
            .filter(|(_, request)| is_form(request))
            .map(|(key, _)| (key.as_str(), &no))
            .collect();
        let params = compose::object(&[
            ("taskId", &compose::string(&task.own)),
            ("inputResponses", &compose::object(&declined)),
        ]);
        let requester = operator.requester();
        let (caller, session) = (&operator.client.caller, &operator.client.session);
        // An update without answers is not sent: it could make the server send its description
        // again.
        if !declined.is_empty()
            && let Err(error) = self
                .hub()
                .task(caller, session, &task.handle, TaskOp::Update, &params, requester)
                .await
        {
            tracing::debug!(server = %task.server, %error, "the questions of a task could not be declined");
        }
        let asked: Vec<(&str, &Json)> = asked.iter().map(|(k, v)| (k.as_str(), v)).collect();
        object::with_member(&said, "inputRequests", &compose::object(&asked)).unwrap_or(said)
    }

    /// Lists the tasks of a client, with their current descriptions.
    async fn list_tasks(
        &self,
        client: &Client,
        params: &Json,
        operator: Arc<ClientOperator>,
    ) -> Result<Json, Fault> {
        let operator = &operator;
        let at = match object::get_string(params, "cursor") {
            None => 0,
            Some(cursor) => self
                .position(client, 't', &cursor)
                .ok_or_else(|| Fault::invalid("`cursor` is unknown"))?,
        };
        let all = self.tasks.of(&Owner::of(client));
        let page = all.iter().skip(at).take(PAGE).map(|(id, task)| async move {
            let (hub, params) = (self.hub(), Json::empty_object());
            let (caller, requester) = (&client.caller, operator.requester());
            let session = &client.session;
            let asked = hub.task(caller, session, &task.handle, TaskOp::Get, &params, requester);
            match asked.await {
                Ok(said) => Some(self.tasks.translate(&task.server, &said)),
                Err(CallError::Server { code: INVALID_PARAMS, .. }) => {
                    // The server has removed the task.
                    self.tasks.forget(id);
                    None
                }
                Err(error) => {
                    tracing::debug!(server = %task.server, %error, "a task is left out of a list");
                    None
                }
            }
        });
        let tasks: Vec<Json> = join_all(page).await.into_iter().flatten().collect();
        let tasks = compose::array(&tasks);
        let next = compose::string(&self.cursor(client, 't', at.saturating_add(PAGE)));
        let mut members = vec![("tasks", &tasks)];
        if all.len() > at.saturating_add(PAGE) {
            members.push(("nextCursor", &next));
        }
        Ok(compose::object(&members))
    }

    /// Registers the task that a call has become, and returns the result for the client.
    ///
    /// The result has the id for the client; `None` if the call has not become a task. `wanted` is
    /// the `task` member of the client's call.
    pub(crate) fn adopt_task(
        &self,
        client: &Client,
        screened: &Screened,
        wanted: Option<&Json>,
    ) -> Result<Option<Json>, Fault> {
        let (server, result) = (screened.server(), screened.result());
        let adopt = |task: &Json| {
            let handle = screened.task();
            let adopted = handle.and_then(|handle| {
                self.tasks.adopt(server, Owner::of(client), task, handle, self.now())
            });
            adopted.ok_or_else(|| Fault::new(INTERNAL, "the server's task has no id"))
        };
        if screened.shape().result_type.as_deref() == Some(TASK) {
            // The server was sent the client's capabilities.
            if !client.knows_tasks() {
                let message = format!("`{server}` made a task of the call, which was not offered");
                return Err(Fault::new(INTERNAL, message));
            }
            return adopt(result).map(Some);
        }
        // The own connection of this client's lane speaks its era.
        let about = self.hub().about(server).filter(|_| screened.lane().era.is_none());
        let has_others = about.is_some_and(|about| about.protocol == MODERN);
        let task = wanted.filter(|_| !has_others).and_then(|_| object::get(result, "task"));
        let Some(task) = task.filter(|task| object::get(task, "taskId").is_some()) else {
            return Ok(None);
        };
        let result = object::with_member(result, "task", &adopt(&task)?);
        Ok(result.ok())
    }
}

// === impl Client ===

impl Client {
    /// True if the client declared the tasks extension, which only modern clients can.
    pub(crate) fn knows_tasks(&self) -> bool {
        let extensions = object::get(&self.capabilities, "extensions");
        extensions.is_some_and(|extensions| object::get(&extensions, TASKS).is_some())
    }
}

/// Reads the id of the task.
///
/// Prevents that a second id, of another client's task, reaches the server next to the checked one.
fn read_task_id(params: &Json) -> Result<String, Fault> {
    refuse_ambiguous(params, &["taskId", "inputResponses", "_meta"])?;
    object::get_string(params, "taskId").ok_or_else(|| Fault::invalid("`taskId` must be a string"))
}

pub(crate) fn needs_tasks() -> Fault {
    let extensions = compose::object(&[(TASKS, &Json::empty_object())]);
    let required = compose::object(&[("extensions", &extensions)]);
    let data = compose::object(&[("requiredCapabilities", &required)]);
    let message = "this request needs the tasks extension; declare it in the client's capabilities";
    Fault::new(MISSING_CAPABILITY, message).with_data(data)
}
