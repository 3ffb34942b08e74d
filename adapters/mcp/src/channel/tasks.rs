//! Calls that have become tasks, so that later messages about them reach the right operator.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::ports::Operator;
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
    operator: Arc<dyn Operator>,
}

// === impl StartedTasks ===

impl StartedTasks {
    /// Remembers the operator of a call if the reply says that it has become a task.
    pub(crate) fn note(&self, call: u64, operator: Arc<dyn Operator>, reply: &Reply) {
        let Reply::Result(result) = reply else { return };
        let task = object::get(result, "task");
        let Some(name) = task.and_then(|task| object::get_string(&task, "taskId")) else { return };
        let mut tasks = self.tasks();
        tasks.retain(|task| task.operator.hears_on() && task.name != name);
        if tasks.len() >= MAX_TASKS {
            tasks.pop_front();
        }
        tasks.push_back(Task { call, name, operator });
    }

    /// The operator of the task that this call has become.
    pub(crate) fn of(&self, call: u64) -> Option<Arc<dyn Operator>> {
        self.find(|task| task.call == call)
    }

    /// The operator of the task that these params refer to.
    pub(crate) fn about(&self, params: &Json) -> Option<Arc<dyn Operator>> {
        // Most params contain no such key; this avoids parsing them.
        if !params.as_str().contains(RELATED) {
            return None;
        }
        let related = object::get(&object::get(params, "_meta")?, RELATED)?;
        let name = object::get_string(&related, "taskId")?;
        self.find(|task| task.name == name)
    }

    fn find(&self, is_meant: impl Fn(&Task) -> bool) -> Option<Arc<dyn Operator>> {
        let is_meant = |task: &&Task| is_meant(task) && task.operator.hears_on();
        self.tasks().iter().find(is_meant).map(|task| Arc::clone(&task.operator))
    }

    fn tasks(&self) -> MutexGuard<'_, VecDeque<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use capstan_hub::ports::Reply as Given;
    use capstan_hub::ports::{Approval, BoxFuture, Elicitation, Notice, Question};

    use super::*;
    use crate::channel::pending::Pending;

    /// An operator that accepts messages about its task while `on` is set.
    struct Hears {
        on: AtomicBool,
        party: u64,
    }

    impl Operator for Hears {
        fn approve<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Approval> {
            unreachable!()
        }

        fn elicit(&self, _: Elicitation) -> BoxFuture<'_, Given> {
            unreachable!()
        }

        fn notice(&self, _: Notice) {}

        fn party(&self) -> u64 {
            self.party
        }

        fn hears_on(&self) -> bool {
            self.on.load(Ordering::Relaxed)
        }
    }

    fn hears(party: u64) -> Arc<Hears> {
        Arc::new(Hears { on: AtomicBool::new(true), party })
    }

    fn task(name: &str) -> Reply {
        Reply::Result(Json::parse(format!(r#"{{"task":{{"taskId":"{name}"}}}}"#)).unwrap())
    }

    fn related(name: &str) -> Json {
        Json::parse(format!(r#"{{"_meta":{{"{RELATED}":{{"taskId":"{name}"}}}}}}"#)).unwrap()
    }

    fn party(operator: Option<Arc<dyn Operator>>) -> Option<u64> {
        operator.map(|operator| operator.party())
    }

    #[test]
    fn what_is_said_of_a_task_after_its_call_finds_its_owner_and_nobody_else() {
        let pending = Pending::default();
        let (ann, bob) = (hears(1), hears(2));
        let _waiting = (pending.add(1, Some(ann.clone())), pending.add(2, Some(bob.clone())));
        pending.answer(1, task("x"));
        assert_eq!(party(pending.progressed(1)), Some(1));
        assert_eq!(party(pending.hearer(None, &related("x"))), Some(1), "though bob's call runs");
        assert_eq!(party(pending.hearer(None, &Json::empty_object())), Some(2));
        let asked = pending.ask(None, &related("x")).map(|open| Arc::clone(&open.operator));
        assert_eq!(party(asked), Some(1));
        for (other, of) in [("y", Some(9)), ("", Some(9)), ("1", Some(9))] {
            assert_eq!(party(pending.hearer(of, &related(other))), None, "{other}");
        }
        assert_eq!(party(pending.progressed(9)), None);
        ann.on.store(false, Ordering::Relaxed);
        assert_eq!(party(pending.progressed(1)), None, "the task is over");
        assert_eq!(party(pending.hearer(Some(1), &related("x"))), None);
    }

    #[test]
    fn only_what_became_a_task_is_remembered_and_never_too_much() {
        let started = StartedTasks::default();
        let plain = Reply::Result(Json::parse(r#"{"content":[]}"#).unwrap());
        started.note(0, hears(1), &plain);
        assert!(started.of(0).is_none());
        for call in 1..=MAX_TASKS as u64 + 1 {
            started.note(call, hears(1), &task(&call.to_string()));
        }
        assert!(started.of(1).is_none() && started.of(2).is_some());
        assert_eq!(started.tasks().len(), MAX_TASKS);
        // If a server uses an id twice, the second use is another task.
        started.note(5000, hears(2), &task("2"));
        assert_eq!(party(started.about(&related("2"))), Some(2));
        assert!(started.of(2).is_none());
    }
}
