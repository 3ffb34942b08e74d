//! Calls that have become tasks, so that later messages about them reach the right client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use capstan_hub::BackChannel;
use capstan_wire::{Json, Reply, object};

/// The number of tasks remembered per connection; beyond that, the oldest is dropped.
const MAX_TASKS: usize = 1024;

/// The `_meta` key that relates a message to a task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Tasks that a server has started for calls.
#[derive(Default)]
pub(crate) struct StartedTasks(Mutex<VecDeque<Task>>);

struct Task {
    /// The id of the call, which the server uses as progress token.
    call: u64,
    /// The server's id of the task.
    name: String,
    back: BackChannel,
}

// === impl StartedTasks ===

impl StartedTasks {
    /// Remembers the client of a call if the reply says that it has become a task.
    pub(crate) fn note(&self, call: u64, back: &BackChannel, reply: &Reply) {
        let Reply::Result(result) = reply else { return };
        let task = object::get(result, "task");
        let Some(name) = task.and_then(|task| object::get_string(&task, "taskId")) else { return };
        let mut tasks = self.tasks();
        tasks.retain(|task| task.back.outlives_answer() && task.name != name);
        if tasks.len() >= MAX_TASKS {
            tasks.pop_front();
        }
        tasks.push_back(Task { call, name, back: back.clone() });
    }

    /// The client of the task that this call has become.
    pub(crate) fn of(&self, call: u64) -> Option<BackChannel> {
        self.find(|task| task.call == call)
    }

    /// The client of the task that these params refer to.
    pub(crate) fn about(&self, params: &Json) -> Option<BackChannel> {
        // Most params contain no such key; this avoids parsing them.
        if !params.as_str().contains(RELATED) {
            return None;
        }
        let related = object::get(&object::get(params, "_meta")?, RELATED)?;
        let name = object::get_string(&related, "taskId")?;
        self.find(|task| task.name == name)
    }

    fn find(&self, is_meant: impl Fn(&Task) -> bool) -> Option<BackChannel> {
        let is_meant = |task: &&Task| is_meant(task) && task.back.outlives_answer();
        self.tasks().iter().find(is_meant).map(|task| task.back.clone())
    }

    fn tasks(&self) -> MutexGuard<'_, VecDeque<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use capstan_hub::{CallGroup, ClientIdentity};

    use super::*;
    use crate::channel::pending::{Pending, Recipient};
    use crate::channel::test_clients::{TestClient, number};

    /// The way back to a client that is the only one of its group.
    fn back(client: &Arc<TestClient>) -> BackChannel {
        let group = CallGroup(client.number);
        client.back(ClientIdentity { group, ..ClientIdentity::default() })
    }

    fn task(name: &str) -> Reply {
        Reply::Result(Json::parse(format!(r#"{{"task":{{"taskId":"{name}"}}}}"#)).unwrap())
    }

    fn related(name: &str) -> Json {
        Json::parse(format!(r#"{{"_meta":{{"{RELATED}":{{"taskId":"{name}"}}}}}}"#)).unwrap()
    }

    fn owner(back: Option<BackChannel>) -> Option<u64> {
        back.map(|back| number(&back))
    }

    #[test]
    fn what_is_said_of_a_task_after_its_call_finds_its_owner_and_nobody_else() {
        let pending = Pending::default();
        let (ann, bob) = (TestClient::new(1), TestClient::new(2));
        let add = |id, client| pending.add(id, Some(Recipient::Client(back(client))));
        let _waiting = (add(1, &ann), add(2, &bob));
        pending.answer(1, task("x"));
        assert_eq!(owner(pending.progressed(1)), Some(1));
        assert_eq!(
            owner(pending.log_recipient(None, &related("x"))),
            Some(1),
            "though bob's call runs"
        );
        assert_eq!(owner(pending.log_recipient(None, &Json::empty_object())), Some(2));
        let asked = pending.ask(None, &related("x")).map(|open| open.back.clone());
        assert_eq!(owner(asked), Some(1));
        for (other, of) in [("y", Some(9)), ("", Some(9)), ("1", Some(9))] {
            assert_eq!(owner(pending.log_recipient(of, &related(other))), None, "{other}");
        }
        assert_eq!(owner(pending.progressed(9)), None);
        ann.outlives_answer.store(false, Ordering::Relaxed);
        assert_eq!(owner(pending.progressed(1)), None, "the task is over");
        assert_eq!(owner(pending.log_recipient(Some(1), &related("x"))), None);
    }

    #[test]
    fn only_what_became_a_task_is_remembered_and_never_too_much() {
        let started = StartedTasks::default();
        let plain = Reply::Result(Json::parse(r#"{"content":[]}"#).unwrap());
        started.note(0, &back(&TestClient::new(1)), &plain);
        assert!(started.of(0).is_none());
        let ann = back(&TestClient::new(1));
        for call in 1..=MAX_TASKS as u64 + 1 {
            started.note(call, &ann, &task(&call.to_string()));
        }
        assert!(started.of(1).is_none() && started.of(2).is_some());
        assert_eq!(started.tasks().len(), MAX_TASKS);
        // If a server uses an id twice, the second use is another task.
        started.note(5000, &back(&TestClient::new(2)), &task("2"));
        assert_eq!(owner(started.about(&related("2"))), Some(2));
        assert!(started.of(2).is_none());
    }
}
