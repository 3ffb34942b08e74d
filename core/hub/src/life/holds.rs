//! What keeps a server from being stopped: calls, subscriptions, tasks and open questions.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use capstan_wire::{Json, object};

use crate::ports::Errand;

/// How long a server that asked its client for input is waited for at the most.
const QUESTION: Duration = Duration::from_mins(10);

/// How long a task that says nothing of it may last.
const TASK: Duration = Duration::from_hours(1);

/// No task keeps a server for longer.
const MAX_TASK: Duration = Duration::from_hours(24);

/// Tasks that are remembered at the most. Who has more loses the longest-known first.
const MAX_TASKS: usize = 1000;

/// What keeps one server from being stopped.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Requests under way.
    in_flight: usize,
    /// When the last one ended, or the oldest of those under way began.
    since: Duration,
    /// Resources that somebody wants to hear of.
    resources: BTreeSet<String>,
    /// Tasks that may be running, and until when at the most.
    tasks: HashMap<String, Duration>,
    /// Until when an answer to a question may come.
    asked_until: Duration,
}

// === impl Holds ===

impl Holds {
    pub(super) fn begin(&mut self, now: Duration) {
        if self.in_flight == 0 {
            self.since = now;
        }
        self.in_flight += 1;
    }

    pub(super) fn end(&mut self, now: Duration) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.since = now;
    }

    /// Whether requests are under way.
    pub(super) fn in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// For how long nothing was heard of it.
    pub(super) fn quiet(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }

    /// For how long nobody has needed it; `None` while somebody does.
    pub(super) fn idle(&mut self, now: Duration) -> Option<Duration> {
        self.tasks.retain(|_, until| *until > now);
        let free = self.in_flight == 0
            && self.resources.is_empty()
            && self.tasks.is_empty()
            && self.asked_until <= now;
        free.then(|| self.quiet(now))
    }

    /// Takes note of what an answer leaves open.
    pub(super) fn answered(&mut self, answer: &Json, now: Duration) {
        let [kind, task, own] = object::peek(answer, ["resultType", "task", "taskId"]);
        let kind = kind.and_then(|kind| kind.read::<String>().ok());
        if kind.as_deref() == Some("input_required") {
            self.asked_until = now.saturating_add(QUESTION);
        }
        let (task, id) = match &task {
            Some(task) => (task, object::get(task, "taskId")),
            None => (answer, own),
        };
        let Some(id) = id.and_then(|id| id.read::<String>().ok()) else { return };
        if is_over(task) {
            self.tasks.remove(&id);
            return;
        }
        let life = ["ttlMs", "ttl"].iter().find_map(|key| object::get(task, key)?.read().ok());
        let life = life.map_or(TASK, Duration::from_millis).min(MAX_TASK);
        if self.tasks.len() >= MAX_TASKS {
            let first = self.tasks.iter().min_by_key(|(_, until)| **until);
            let first = first.map(|(id, _)| id.clone()).unwrap_or_default();
            self.tasks.remove(&first);
        }
        self.tasks.insert(id, now.saturating_add(life));
    }

    /// Takes note of an errand that was run.
    pub(super) fn ran(&mut self, errand: &Errand, answer: &Json) {
        match errand {
            Errand::Subscribe(uri) => drop(self.resources.insert(uri.clone())),
            Errand::Unsubscribe(uri) => drop(self.resources.remove(uri)),
            Errand::Task(method, params) => {
                let done = matches!(method.as_str(), "tasks/result" | "tasks/cancel");
                if let Some(id) = object::get_string(params, "taskId")
                    && (done || is_over(answer))
                {
                    self.tasks.remove(&id);
                }
            }
            Errand::Complete(_) | Errand::Level(_) | Errand::Follow(_) => {}
        }
    }
}

/// Whether a task, as its server describes it, has come to an end.
pub fn is_over(task: &Json) -> bool {
    let status = object::get_string(task, "status");
    matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_call_keeps_a_server_until_it_is_over() {
        let mut holds = Holds::default();
        holds.begin(at(5));
        holds.begin(at(6));
        holds.end(at(10));
        assert_eq!((holds.idle(at(1000)), holds.in_flight()), (None, true));
        holds.end(at(1000));
        assert_eq!((holds.idle(at(1007)), holds.in_flight()), (Some(at(7)), false));
    }

    #[test]
    fn a_subscription_keeps_a_server_until_it_is_taken_back() {
        let mut holds = Holds::default();
        let (nothing, uri) = (Json::empty_object(), || "f://x".to_owned());
        holds.ran(&Errand::Subscribe(uri()), &nothing);
        assert_eq!(holds.idle(at(100_000)), None);
        holds.ran(&Errand::Unsubscribe(uri()), &nothing);
        assert_eq!(holds.idle(at(100_000)), Some(at(100_000)));
    }

    #[test]
    fn a_question_that_a_client_has_still_to_answer_keeps_a_server_for_a_while() {
        let mut holds = Holds::default();
        holds.answered(&json(r#"{"resultType":"input_required"}"#), at(0));
        assert_eq!(holds.idle(at(599)), None);
        assert_eq!(holds.idle(at(600)), Some(at(600)));
    }

    #[test]
    fn a_task_keeps_a_server_until_it_is_over_or_its_time_is() {
        let started = [
            r#"{"task":{"taskId":"t","status":"working","ttl":60000}}"#,
            r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":60000}"#,
        ];
        let get = || Errand::Task("tasks/get".to_owned(), json(r#"{"taskId":"t"}"#));
        let result = Errand::Task("tasks/result".to_owned(), json(r#"{"taskId":"t"}"#));
        for text in started {
            let mut holds = Holds::default();
            holds.answered(&json(text), at(0));
            holds.ran(&get(), &json(r#"{"taskId":"t","status":"working"}"#));
            assert_eq!(holds.idle(at(59)), None, "{text}");
            assert!(holds.idle(at(60)).is_some(), "{text}");

            holds.answered(&json(text), at(0));
            holds.ran(&get(), &json(r#"{"taskId":"t","status":"completed"}"#));
            assert!(holds.idle(at(1)).is_some(), "{text}");

            holds.answered(&json(text), at(0));
            holds.ran(&result, &json(r#"{"content":[]}"#));
            assert!(holds.idle(at(1)).is_some(), "{text}");
        }
        let mut holds = Holds::default();
        holds.answered(&json(r#"{"task":{"taskId":"t","status":"failed"}}"#), at(0));
        assert!(holds.idle(at(1)).is_some());
        for number in 0..2 * MAX_TASKS {
            holds.answered(&json(&format!(r#"{{"task":{{"taskId":"{number}"}}}}"#)), at(0));
        }
        assert_eq!(holds.tasks.len(), MAX_TASKS);
    }
}
