//! Holds keep a server from being stopped: calls, subscriptions, tasks and open questions.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use capstan_wire::protocol::INPUT_REQUIRED;
use capstan_wire::{Json, object};

use crate::pipeline::{Message, SideOp, System, SystemMessage, TaskOp, TaskRequest};

/// How long a server is held for the answer to a question that it asked its client.
const QUESTION: Duration = Duration::from_mins(10);

/// The assumed lifetime of a task that declares none.
const TASK: Duration = Duration::from_hours(1);

/// The longest time that a task holds a server.
const MAX_TASK: Duration = Duration::from_hours(24);

/// The maximum number of tasks. Beyond it, the one that expires first is dropped.
const MAX_TASKS: usize = 1000;

/// Everything that keeps one server from being stopped.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// The number of requests in flight.
    in_flight: usize,
    /// The time when the last request ended or the first of those in flight began.
    since: Duration,
    /// Subscribed resources.
    resources: BTreeSet<String>,
    /// Tasks that may be running, with the time at which they expire.
    tasks: HashMap<String, Duration>,
    /// The time until which an answer to a question may arrive.
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

    /// True if requests are in flight.
    pub(super) fn in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// The time since the last request ended or the first of those in flight began.
    pub(super) fn quiet(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }

    /// The time for which the server was not needed; `None` while something holds it.
    pub(super) fn idle(&mut self, now: Duration) -> Option<Duration> {
        self.tasks.retain(|_, until| *until > now);
        let free = self.in_flight == 0
            && self.resources.is_empty()
            && self.tasks.is_empty()
            && self.asked_until <= now;
        free.then(|| self.quiet(now))
    }

    /// Updates the holds after an answer.
    pub(super) fn answered(&mut self, message: Message<'_>, answer: &Json, now: Duration) {
        match message {
            Message::Call(..) => self.called(answer, now),
            Message::Side(admission) => match admission.op() {
                SideOp::Subscribe => drop(self.resources.insert(admission.id().item.clone())),
                SideOp::Complete(_) | SideOp::Extension { .. } | SideOp::Notify { .. } => {}
            },
            Message::Task(request, _) => self.task_answered(request, answer),
            Message::Follow(_) => {}
        }
    }

    fn task_answered(&mut self, request: &TaskRequest, answer: &Json) {
        match request.op() {
            TaskOp::Result | TaskOp::Cancel => self.forget(request.ids()),
            TaskOp::Get | TaskOp::Update if is_over(answer) => self.forget(request.ids()),
            TaskOp::Get | TaskOp::Update => {}
        }
    }

    /// Updates the holds after a system message.
    pub(super) fn informed(&mut self, system: &System) {
        match system.message() {
            SystemMessage::Unsubscribe(uri) => drop(self.resources.remove(uri)),
            SystemMessage::Ping | SystemMessage::Level(_) | SystemMessage::RootsChanged => {}
        }
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.resources.contains(uri)
    }

    fn forget(&mut self, tasks: &[String]) {
        for id in tasks {
            self.tasks.remove(id);
        }
    }

    fn called(&mut self, answer: &Json, now: Duration) {
        // Covers `taskId` too. Most answers of modern servers have a `resultType` of no interest.
        if !object::may_mention(answer, &["task", INPUT_REQUIRED]) {
            return;
        }
        let [kind, task, own] = object::peek(answer, ["resultType", "task", "taskId"]);
        let kind = kind.and_then(|kind| kind.read::<String>().ok());
        if kind.as_deref() == Some(INPUT_REQUIRED) {
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
}

/// True if a task, as its server describes it, has ended.
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
        let uri = || "f://x".to_owned();
        holds.resources.insert(uri());
        assert_eq!(holds.idle(at(100_000)), None);
        holds.informed(&System::unsubscribe(uri()));
        assert_eq!(holds.idle(at(100_000)), Some(at(100_000)));
    }

    #[test]
    fn a_question_that_a_client_has_still_to_answer_keeps_a_server_for_a_while() {
        let mut holds = Holds::default();
        holds.called(&json(r#"{"resultType":"input_required"}"#), at(0));
        assert_eq!(holds.idle(at(599)), None);
        assert_eq!(holds.idle(at(600)), Some(at(600)));
    }

    #[test]
    fn a_task_keeps_a_server_until_it_is_over_or_its_time_is() {
        let started = [
            r#"{"task":{"taskId":"t","status":"working","ttl":60000}}"#,
            r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":60000}"#,
        ];
        let request = |op| TaskRequest::new(op, vec!["t".to_owned()], Json::empty_object());
        let (get, result) = (request(TaskOp::Get), request(TaskOp::Result));
        for text in started {
            let mut holds = Holds::default();
            holds.called(&json(text), at(0));
            holds.task_answered(&get, &json(r#"{"taskId":"t","status":"working"}"#));
            assert_eq!(holds.idle(at(59)), None, "{text}");
            assert!(holds.idle(at(60)).is_some(), "{text}");

            holds.called(&json(text), at(0));
            holds.task_answered(&get, &json(r#"{"taskId":"t","status":"completed"}"#));
            assert!(holds.idle(at(1)).is_some(), "{text}");

            holds.called(&json(text), at(0));
            holds.task_answered(&result, &json(r#"{"content":[]}"#));
            assert!(holds.idle(at(1)).is_some(), "{text}");
        }
        let mut holds = Holds::default();
        holds.called(&json(r#"{"task":{"taskId":"t","status":"failed"}}"#), at(0));
        assert!(holds.idle(at(1)).is_some());
        for number in 0..2 * MAX_TASKS {
            holds.called(&json(&format!(r#"{{"task":{{"taskId":"{number}"}}}}"#)), at(0));
        }
        assert_eq!(holds.tasks.len(), MAX_TASKS);
    }
}
