//! A request in service: what it may tell its client and ask it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::ask::Question;
use super::message::{Fault, INVALID_PARAMS, Reply, Request, Revision, notification};
use super::server::Server;
use super::session::{Cancelled, Running, Session, heard};
use super::stream::Stream;
use super::tasks::Task;

pub(super) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const META_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(super) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The longest that a person is waited for.
const PATIENCE: Duration = Duration::from_mins(5);

/// A request with everything needed to serve it.
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) session: Arc<Session>,
    /// Where the messages go that belong to it.
    pub(super) out: Arc<Stream>,
    pub(super) request: Request,
    pub(super) revision: Revision,
    /// What the client can do, by handshake or by the request's metadata.
    pub(super) capabilities: Value,
    pub(super) asking: Asking,
    pub(super) cancelled: watch::Receiver<Cancelled>,
}

/// How the client is asked something.
pub(super) enum Asking {
    /// By a request of our own on the stream of the call.
    Live,
    /// By a result after which the client calls again; these answers it has given.
    Retry(Map<String, Value>),
    /// By the state of a task, which the client watches.
    Task(Arc<Task>),
}

/// Whether a question goes with a state that the client must bring back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    Sealed,
}

// === impl Call ===

impl Call {
    /// How a request of that revision asks, with the answers that it brings along.
    pub(super) fn asking(
        server: &Server,
        request: &Request,
        revision: Revision,
    ) -> Result<Asking, Fault> {
        if !revision.is_modern() {
            return Ok(Asking::Live);
        }
        let bad = |why: &str| Fault::new(INVALID_PARAMS, why);
        let mut answers = match request.params.get("requestState") {
            None => Map::new(),
            Some(state) => state
                .as_str()
                .and_then(|state| server.seal.open(request, state))
                .and_then(|state| state.as_object().cloned())
                .ok_or_else(|| bad("`requestState` is not what was given"))?,
        };
        match request.params.get("inputResponses") {
            None => {}
            Some(Value::Object(given)) => {
                answers.extend(given.iter().map(|(key, said)| (key.clone(), said.clone())));
            }
            Some(_) => return Err(bad("`inputResponses` is not an object")),
        }
        Ok(Asking::Retry(answers))
    }

    pub(super) fn argument(&self, key: &str) -> Option<&Value> {
        self.request.argument(key)
    }

    /// A text argument, or nothing.
    pub(super) fn text(&self, key: &str) -> &str {
        self.argument(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number argument within a limit.
    pub(super) fn number(&self, key: &str, unless: u64, limit: u64) -> u64 {
        self.argument(key).and_then(Value::as_u64).unwrap_or(unless).min(limit)
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.out.push(notification(method, params));
    }

    /// Sends away whoever reads the stream of the call, where such a stream can be taken up again.
    pub(super) fn break_off(&self) {
        let is_own = !Arc::ptr_eq(&self.out, &self.session.main);
        if is_own && !self.revision.is_modern() {
            self.out.cut();
        }
    }

    /// Tells how far it is, if the client wants to know.
    pub(super) fn progress(&self, done: u64, total: u64, message: &str) {
        if let Some(token) = self.request.meta("progressToken") {
            let mut params = json!({ "progressToken": token, "progress": done, "total": total });
            if self.revision.since("2025-03-26") {
                super::message::set(&mut params, "message", json!(message));
            }
            self.notify("notifications/progress", &params);
        }
    }

    /// Sends a log message, if the client wants to hear it.
    pub(super) fn log(&self, level: &str, text: &str) {
        let least = if self.revision.is_modern() {
            self.request.meta(META_LEVEL).and_then(Value::as_str).map(ToOwned::to_owned)
        } else {
            self.session.client().map(|client| client.level)
        };
        if least.is_some_and(|least| heard(level, &least)) {
            let params = json!({ "level": level, "logger": "conformance", "data": text });
            self.notify("notifications/message", &params);
        }
    }

    /// Waits, or ends the call when it is cancelled.
    pub(super) async fn pause(&self, time: Duration) -> Result<(), Reply> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = Running::over(&self.cancelled) => Err(Reply::Silence),
        }
    }

    /// Asks one question.
    pub(super) async fn ask_one(&self, question: Question, keep: Keep) -> Result<Value, Reply> {
        Ok(self.ask(vec![question], keep).await?.pop().unwrap_or_default())
    }

    /// Asks questions, and gives the answers in the same order; what is an error here is the answer
    /// to the call.
    pub(super) async fn ask(
        &self,
        questions: Vec<Question>,
        keep: Keep,
    ) -> Result<Vec<Value>, Reply> {
        for question in &questions {
            question.possible(self)?;
        }
        match &self.asking {
            Asking::Live => {
                let mut answers = Vec::new();
                for question in &questions {
                    answers.push(self.ask_live(question).await?);
                }
                Ok(answers)
            }
            Asking::Retry(given) => self.take_or_ask(&questions, given, keep),
            Asking::Task(task) => task.ask(&questions).await,
        }
    }

    async fn ask_live(&self, question: &Question) -> Result<Value, Reply> {
        let params = question.params(self.revision);
        let said = self.session.ask(&self.out, question.method, &params);
        let said = tokio::select! {
            said = tokio::time::timeout(PATIENCE, said) => said,
            () = Running::over(&self.cancelled) => return Err(Reply::Silence),
        };
        match said {
            Ok(Ok(Ok(answer))) => question.valid(answer),
            Ok(Ok(Err(error))) => Err(Reply::failed(format!("the client refused: {error}"))),
            Ok(Err(_)) | Err(_) => Err(Reply::failed("the client did not answer")),
        }
    }

    fn take_or_ask(
        &self,
        questions: &[Question],
        given: &Map<String, Value>,
        keep: Keep,
    ) -> Result<Vec<Value>, Reply> {
        // Answers that depend on a state are worth nothing without it.
        let known = keep == Keep::Nothing || self.request.params.get("requestState").is_some();
        let said = |question: &Question| given.get(&question.key).filter(|_| known).cloned();
        if questions.iter().all(|question| said(question).is_some()) {
            let answer = |question: &Question| question.valid(said(question).unwrap_or_default());
            return questions.iter().map(answer).collect();
        }
        let open = questions.iter().filter(|question| said(question).is_none());
        let asked: Map<String, Value> =
            open.map(|question| (question.key.clone(), question.value(self.revision))).collect();
        let mut result = json!({ "resultType": "input_required", "inputRequests": asked });
        if keep == Keep::Sealed {
            let answers = if known { Value::Object(given.clone()) } else { json!({}) };
            let state = self.server.seal.close(&self.request, &answers);
            super::message::set(&mut result, "requestState", json!(state));
        }
        Err(Reply::Special(result))
    }
}
