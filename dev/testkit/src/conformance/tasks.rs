//! The tasks extension: calls that go on after their answer, and that a client comes back for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

use super::ask::Question;
use super::call::{Asking, Call, TASKS};
use super::lock;
use super::message::{Fault, INVALID_PARAMS, MODERN, Reply, Request, set};
use super::seal::random;
use super::session::{Cancelled, Running};
use super::stream::Stream;
use super::tools;

/// How many tasks are remembered; the oldest go first.
const KEPT: usize = 256;

/// How long a task may take, and is remembered at least.
const LIFE: Duration = Duration::from_mins(5);

/// How often a client should ask.
const POLL: Duration = Duration::from_millis(200);

/// All tasks of the server.
#[derive(Default)]
pub(super) struct Tasks(Mutex<VecDeque<Arc<Task>>>);

/// One call that goes on by itself.
pub(super) struct Task {
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
        let task = Arc::new(Task::new());
        let mut tasks = lock(&self.0);
        tasks.push_back(Arc::clone(&task));
        while tasks.len() > KEPT {
            tasks.pop_front();
        }
        drop(tasks);
        let cancelled = task.cancel.subscribe();
        let call = Call {
            // Nobody reads what a task tells on the way.
            out: Stream::new(0),
            asking: Asking::Task(Arc::clone(&task)),
            cancelled: cancelled.clone(),
            ..call
        };
        let reply = task.created();
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
    pub(super) fn ended(&self, reply: Reply) -> Reply {
        let task = Arc::new(Task::new());
        let created = task.created();
        lock(&self.0).push_back(Arc::clone(&task));
        task.end(reply);
        created
    }

    /// Serves `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(super) fn serve(&self, call: &Call) -> Reply {
        if !declared(&call.capabilities) {
            return needed().into();
        }
        let request = &call.request;
        let id = request.text("/taskId");
        let Some(task) = lock(&self.0).iter().find(|task| task.id == id).cloned() else {
            return Fault::new(INVALID_PARAMS, format!("no task `{id}`")).into();
        };
        match request.method.as_str() {
            "tasks/get" => return Reply::Result(task.value()),
            "tasks/cancel" => task.stop(),
            _ => task.answer(request),
        }
        Reply::Result(json!({}))
    }
}

// === impl Task ===

impl Task {
    fn new() -> Self {
        let now = now();
        let state = State {
            updated: now.clone(),
            status: Status::Working,
            open: Map::new(),
            answers: Map::new(),
        };
        Self {
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
        lock(&self.state).open.extend(asked);
        self.touch();
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
        let mut state = lock(&self.state);
        for (key, said) in given.into_iter().flatten() {
            // What was not asked is ignored.
            if state.open.remove(key).is_some() {
                state.answers.insert(key.clone(), said.clone());
            }
        }
        drop(state);
        self.touch();
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        if matches!(state.status, Status::Working) {
            state.status = Status::Cancelled;
            state.open.clear();
        }
        drop(state);
        self.cancel.send_replace(Cancelled::Yes);
        self.touch();
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
        let mut state = lock(&self.state);
        if matches!(state.status, Status::Working) {
            state.status = status;
        }
        drop(state);
        self.touch();
    }

    fn touch(&self) {
        lock(&self.state).updated = now();
        self.changed.notify_waiters();
    }

    /// What answers the call that made it.
    fn created(&self) -> Reply {
        let mut task = self.head("working");
        set(&mut task, "resultType", json!("task"));
        Reply::Special(task)
    }

    fn value(&self) -> Value {
        let state = lock(&self.state);
        let (status, more) = match &state.status {
            Status::Working if state.open.is_empty() => ("working", None),
            Status::Working => {
                ("input_required", Some(("inputRequests", Value::Object(state.open.clone()))))
            }
            Status::Completed(result) => ("completed", Some(("result", result.clone()))),
            Status::Failed(error) => ("failed", Some(("error", error.clone()))),
            Status::Cancelled => ("cancelled", None),
        };
        drop(state);
        let mut task = self.head(status);
        if let Some((key, value)) = more {
            set(&mut task, key, value);
        }
        task
    }

    fn head(&self, status: &str) -> Value {
        let updated = lock(&self.state).updated.clone();
        json!({
            "taskId": self.id,
            "status": status,
            "createdAt": self.created,
            "lastUpdatedAt": updated,
            "ttlMs": LIFE.as_secs() * 1000,
            "pollIntervalMs": POLL.subsec_millis(),
        })
    }
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
