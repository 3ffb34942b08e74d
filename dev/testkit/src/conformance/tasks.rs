//! Tasks: calls that go on after their answer, and that a client comes back for. They are those of
//! 2025-11-25, or the tasks extension of the modern era.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

use super::ask::Question;
use super::call::{Asking, Call, TASKS};
use super::lock;
use super::message::{Fault, INVALID_PARAMS, MODERN, Reply, Request, Revision, set};
use super::seal::random;
use super::server::{Change, Server};
use super::session::{Cancelled, Running};
use super::stream::Stream;
use super::tools;

/// How many tasks are remembered; the oldest go first.
const KEPT: usize = 256;

/// How long a task may take, and is remembered at least.
const LIFE: Duration = Duration::from_mins(5);

/// How often a client should ask.
const POLL: Duration = Duration::from_millis(200);

/// The member of `_meta` that names the task of a result, in 2025-11-25.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// All tasks of the server.
#[derive(Default)]
pub(super) struct Tasks(Mutex<VecDeque<Arc<Task>>>);

/// One call that goes on by itself.
pub(super) struct Task {
    /// Who tells how it goes.
    server: Weak<Server>,
    id: String,
    created: String,
    state: Mutex<State>,
    changed: Notify,
    cancel: watch::Sender<Cancelled>,
}

struct State {
    updated: String,
    status: Status,
    /// Questions without an answer, and the answers to the others.
    open: Map<String, Value>,
    answers: Map<String, Value>,
}

enum Status {
    Working,
    Completed(Value),
    Failed(Value),
    Cancelled,
}

// === impl Tasks ===

impl Tasks {
    /// Makes a task of a call, and answers with it.
    pub(super) fn start(&self, call: Call) -> Reply {
        let task = self.add(&call.server);
        let cancelled = task.cancel.subscribe();
        let call = Call {
            // Nobody reads what a task tells on the way.
            out: Stream::new(0),
            asking: Asking::Task(Arc::clone(&task)),
            cancelled: cancelled.clone(),
            ..call
        };
        let reply = if call.revision.is_modern() {
            task.created()
        } else {
            Reply::Result(json!({ "task": task.legacy() }))
        };
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = tokio::time::timeout(LIFE, tools::run(&call)) => ended,
                () = Running::over(&cancelled) => return,
            };
            task.end(ended.unwrap_or_else(|_| Fault::new(-32603, "took too long").into()));
        });
        reply
    }

    /// A task that was over before it began.
    pub(super) fn ended(&self, server: &Arc<Server>, reply: Reply) -> Reply {
        let task = self.add(server);
        let created = task.created();
        task.end(reply);
        created
    }

    fn add(&self, server: &Arc<Server>) -> Arc<Task> {
        let task = Arc::new(Task::new(Arc::downgrade(server)));
        let mut tasks = lock(&self.0);
        tasks.push_back(Arc::clone(&task));
        while tasks.len() > KEPT {
            tasks.pop_front();
        }
        drop(tasks);
        task
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Task>> {
        lock(&self.0).iter().find(|task| task.id == id).cloned()
    }

    /// Serves the requests about tasks of 2025-11-25.
    pub(super) async fn serve_legacy(&self, call: &Call) -> Reply {
        let id = call.request.text("/taskId");
        if call.request.method == "tasks/list" {
            let all: Vec<Value> = lock(&self.0).iter().map(|task| task.legacy()).collect();
            return Reply::Result(json!({ "tasks": all }));
        }
        let Some(task) = self.find(id) else {
            return Fault::new(INVALID_PARAMS, format!("no task `{id}`")).into();
        };
        match call.request.method.as_str() {
            "tasks/cancel" => task.stop(),
            "tasks/result" => return task.result(call).await,
            _ => {}
        }
        Reply::Result(task.legacy())
    }

    /// Serves `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(super) fn serve(&self, call: &Call) -> Reply {
        if !declared(&call.capabilities) {
            return needed().into();
        }
        let request = &call.request;
        let id = request.text("/taskId");
        let Some(task) = self.find(id) else {
            return Fault::new(INVALID_PARAMS, format!("no task `{id}`")).into();
        };
        match request.method.as_str() {
            "tasks/get" => return Reply::Result(task.value(&lock(&task.state))),
            "tasks/cancel" => task.stop(),
            _ => task.answer(request),
        }
        Reply::Result(json!({}))
    }
}

// === impl Task ===

impl Task {
    fn new(server: Weak<Server>) -> Self {
        let now = now();
        let state = State {
            updated: now.clone(),
            status: Status::Working,
            open: Map::new(),
            answers: Map::new(),
        };
        Self {
            server,
            id: format!("task-{:016x}", random()),
            created: now,
            state: Mutex::new(state),
            changed: Notify::new(),
            cancel: watch::Sender::new(Cancelled::No),
        }
    }

    /// Waits until somebody has answered all questions.
    pub(super) async fn ask(&self, questions: &[Question]) -> Result<Vec<Value>, Reply> {
        let asked = questions.iter().map(|one| (one.key.clone(), one.value(MODERN)));
        self.change(|state| {
            state.open.extend(asked);
            true
        });
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let known = {
                let state = lock(&self.state);
                let answer = |one: &Question| state.answers.get(&one.key).cloned();
                questions.iter().map(answer).collect::<Option<Vec<_>>>()
            };
            if let Some(answers) = known {
                let pairs = questions.iter().zip(answers);
                return pairs.map(|(question, answer)| question.valid(answer)).collect();
            }
            changed.await;
        }
    }

    fn answer(&self, request: &Request) {
        let given = request.params.get("inputResponses").and_then(Value::as_object);
        self.change(|state| {
            let before = state.open.len();
            for (key, said) in given.into_iter().flatten() {
                // What was not asked is ignored.
                if state.open.remove(key).is_some() {
                    state.answers.insert(key.clone(), said.clone());
                }
            }
            state.open.len() < before
        });
    }

    fn stop(&self) {
        self.change(|state| {
            state.open.clear();
            state.end(Status::Cancelled)
        });
        self.cancel.send_replace(Cancelled::Yes);
    }

    fn end(&self, reply: Reply) {
        let status = match reply {
            Reply::Result(mut result) => {
                set(&mut result, "resultType", json!("complete"));
                Status::Completed(result)
            }
            Reply::Fault(fault) => Status::Failed(fault.value()),
            Reply::Raw(_) | Reply::Special(_) | Reply::Silence => Status::Cancelled,
        };
        self.change(|state| state.end(status));
    }

    /// Changes it, and tells everybody who wants to know, unless there is nothing new.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let mut state = lock(&self.state);
        if !change(&mut state) {
            return;
        }
        state.updated = now();
        // With the lock, so that what is told comes in the order in which it happened.
        if let Some(server) = self.server.upgrade() {
            server.announce(&Change::Task(self.value(&state)));
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// What answers the call that made it.
    fn created(&self) -> Reply {
        let mut task = self.head(&lock(&self.state), "working");
        set(&mut task, "resultType", json!("task"));
        Reply::Special(task)
    }

    fn value(&self, state: &State) -> Value {
        let (status, more) = match &state.status {
            Status::Working if state.open.is_empty() => ("working", None),
            Status::Working => {
                ("input_required", Some(("inputRequests", Value::Object(state.open.clone()))))
            }
            Status::Completed(result) => ("completed", Some(("result", result.clone()))),
            Status::Failed(error) => ("failed", Some(("error", error.clone()))),
            Status::Cancelled => ("cancelled", None),
        };
        let mut task = self.head(state, status);
        if let Some((key, value)) = more {
            set(&mut task, key, value);
        }
        task
    }

    /// The task as 2025-11-25 describes it.
    fn legacy(&self) -> Value {
        let (status, updated) = {
            let state = lock(&self.state);
            (state.status.name(), state.updated.clone())
        };
        json!({
            "taskId": self.id,
            "status": status,
            "createdAt": self.created,
            "lastUpdatedAt": updated,
            "ttl": LIFE.as_secs() * 1000,
            "pollInterval": POLL.subsec_millis(),
        })
    }

    /// The result of its call, once there is one.
    async fn result(&self, call: &Call) -> Reply {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let ended = match &lock(&self.state).status {
                Status::Working => None,
                Status::Completed(result) => Some(Reply::Result(result.clone())),
                Status::Failed(_) | Status::Cancelled => {
                    Some(Fault::new(INVALID_PARAMS, "the task has no result").into())
                }
            };
            if let Some(mut reply) = ended {
                if let Reply::Result(result) = &mut reply
                    && let Some(members) = result.as_object_mut()
                {
                    members.remove("resultType");
                    let related = json!({ RELATED: { "taskId": self.id } });
                    members.insert("_meta".to_owned(), related);
                }
                return reply;
            }
            tokio::select! {
                () = changed => {}
                () = Running::over(&call.cancelled) => return Reply::Silence,
            }
        }
    }

    fn head(&self, state: &State, status: &str) -> Value {
        json!({
            "taskId": self.id,
            "status": status,
            "createdAt": self.created,
            "lastUpdatedAt": state.updated,
            "ttlMs": LIFE.as_secs() * 1000,
            "pollIntervalMs": POLL.subsec_millis(),
        })
    }
}

// === impl Status ===

impl Status {
    fn name(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

// === impl State ===

impl State {
    /// Ends the task; whether it had not ended before.
    fn end(&mut self, status: Status) -> bool {
        let was_working = matches!(self.status, Status::Working);
        if was_working {
            self.status = status;
        }
        was_working
    }
}

/// Whether the revision has the tasks of 2025-11-25.
pub(super) fn are_of_legacy(revision: Revision) -> bool {
    revision.since("2025-11-25") && !revision.is_modern()
}

/// Whether a call of 2025-11-25 wants to be a task.
pub(super) fn wanted(call: &Call) -> bool {
    are_of_legacy(call.revision) && call.request.params.get("task").is_some()
}

/// Whether a client with these capabilities understands tasks.
pub(super) fn declared(capabilities: &Value) -> bool {
    capabilities.get("extensions").and_then(|extensions| extensions.get(TASKS)).is_some()
}

/// The refusal of what needs tasks.
pub(super) fn needed() -> Fault {
    Fault::needs(&json!({ "extensions": { TASKS: {} } }))
}

fn now() -> String {
    jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default().to_string()
}
