//! The client of a call: it approves, and receives notices of its call and questions of its server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use capstan_hub::ports::{
    Approval, Approver, Ask, Asking, BoxFuture, ClientSide, Notice, Question, Reply, Unanswered,
    Wishes,
};
use capstan_hub::{
    CallGroup, ClientId, ClientIdentity, Continuation, ExtensionNotification, Ground, PersonId,
    Requester,
};
use capstan_model::rpc_code::INTERNAL;
use capstan_wire::protocol::META_PROGRESS;
use capstan_wire::{Json, Reply as RpcReply, compose, object};
use futures::FutureExt;
use tokio::sync::oneshot;
use tracing::warn;

use crate::client::{Client, View};
use crate::exchange::event_channel::{EventSender, SendError, Size, channel};
use crate::exchange::streamed_answer::Form;
use crate::fairness::client_names::ClientNetwork;

use crate::methods::tasks::task_table::Tasks;
use crate::protocol::request_meta::RequestMeta;
use crate::protocol::revision::Revision;
use crate::questions::approval_form;
use crate::questions::attribution::{for_legacy, without_id};
use crate::questions::notice_filter::NoticeFilter;

/// The client of one call.
pub(crate) struct ClientOperator {
    pub(crate) client: Arc<Client>,
    events: EventSender<Event>,
    filter: Mutex<NoticeFilter>,
    pub(crate) context: CallContext,
    /// Filled in by the hub if the call fails because the client must do something first.
    continued: OnceLock<Continuation>,
    /// The task that the call becomes, if the client asked for one.
    later: OnceLock<PendingTask>,
    /// True if the answer must be sent complete: after other events, it cannot be streamed.
    whole: AtomicBool,
    /// False if the answer to the request cannot carry questions, whatever the client's era.
    may_carry_questions: bool,
    /// True if a message was dropped.
    has_left_out: AtomicBool,
}

/// The context of a call.
pub(crate) struct CallContext {
    /// How long the client may take to answer an approval question.
    pub(crate) patience: Duration,
    /// True if only clients on this machine can connect.
    pub(crate) own: bool,
    /// The number of servers.
    pub(crate) servers: usize,
    /// The task table.
    pub(crate) tasks: Arc<Tasks>,
}

/// An event of a running request.
pub(crate) enum Event {
    /// A message to the client.
    Message(Bytes),
    /// A question to a modern client, which can only be sent as the answer to its request.
    Question(OpenQuestion),
}

impl Size for Event {
    fn size(&self) -> usize {
        match self {
            Self::Message(message) => message.len(),
            Self::Question(open) => open.params.len(),
        }
    }
}

/// A question that has not been answered.
pub(crate) struct OpenQuestion {
    pub(crate) asking: Asking,
    pub(crate) params: Json,
    pub(crate) answer: oneshot::Sender<Result<Json, Unanswered>>,
}

/// A question that was sent to a legacy client. Dropping it while it is open cancels it.
struct SentQuestion<'a> {
    operator: &'a ClientOperator,
    id: u64,
    is_open: bool,
}

/// A task; the id is set once the server has created it.
#[derive(Default)]
struct PendingTask(OnceLock<String>);

// === impl ClientOperator ===

impl ClientOperator {
    /// The operator of a call with this `_meta`.
    pub(crate) fn new(
        client: Arc<Client>,
        meta: Option<&RequestMeta>,
        events: EventSender<Event>,
        context: CallContext,
    ) -> Self {
        let filter = Mutex::new(NoticeFilter::of(&client, meta));
        let (continued, later) = (OnceLock::new(), OnceLock::new());
        let (whole, has_left_out) = (AtomicBool::new(true), AtomicBool::new(false));
        let may_carry_questions = true;
        Self {
            client,
            events,
            filter,
            context,
            continued,
            later,
            whole,
            may_carry_questions,
            has_left_out,
        }
    }

    /// The operator of questions that belong to no call. They are sent on the client's stream for
    /// messages that belong to no request.
    pub(crate) fn standing(client: Arc<Client>, context: CallContext) -> Self {
        let (events, _) = channel();
        let operator = Self::new(client, None, events, context);
        operator.later.get_or_init(PendingTask::default);
        operator
    }

    /// The client asks for a task: it receives notices as long as the task exists.
    pub(crate) fn wants_task(&self) {
        self.later.get_or_init(PendingTask::default);
    }

    /// Records the id of the task that the call has become, from this result.
    pub(crate) fn became(&self, result: &Json) {
        let id = object::get(result, "task").and_then(|task| object::get_string(&task, "taskId"));
        if let (Some(PendingTask(later)), Some(id)) = (self.later.get(), id) {
            later.get_or_init(|| id);
        }
    }

    /// Sets the form of answer that the client accepts.
    pub(crate) fn taking(self, form: Form) -> Self {
        Self { whole: AtomicBool::new(form == Form::Whole), ..self }
    }

    /// The operator of a request that is not a call. In the modern era only the answer to a call can
    /// carry questions, so such a client is not asked.
    pub(crate) fn beside_calls(self) -> Self {
        Self { may_carry_questions: false, ..self }
    }

    /// Resumes notices after the client has returned with another part of the call.
    pub(crate) fn hear(&self, meta: Option<&RequestMeta>) {
        *self.filter() = NoticeFilter::of(&self.client, meta);
    }

    /// Drops notices until the client returns.
    pub(crate) fn pause(&self) {
        *self.filter() = NoticeFilter::NOTHING;
    }

    fn filter(&self) -> MutexGuard<'_, NoticeFilter> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requester of the call.
    pub(crate) fn requester(self: &Arc<Self>) -> Requester<'_> {
        let number = self.client.number;
        // A client on this machine is its user, unless other machines can connect as well.
        let person = match self.client.caller.from {
            Some(from) if self.context.own && ClientNetwork::of(from).is_here() => PersonId::LOCAL,
            Some(_) | None => PersonId(number),
        };
        let client = Some(ClientId(self.client.peer.number()));
        let identity = ClientIdentity { group: CallGroup(number), person, client };
        let (lane, merged) = (self.client.lane(), self.client.view == View::All);
        let continued = Some(&self.continued);
        Requester { lane, merged, continued, ..Requester::new(self, identity) }
    }

    /// The continuation of a call that failed because the client must do something first.
    pub(crate) fn continued(&self) -> Option<Continuation> {
        self.continued.get().cloned()
    }

    fn tell(&self, method: &str, params: &Json) {
        self.send(compose::notification(method, Some(params)).into());
    }

    fn send(&self, message: Bytes) {
        self.whole.store(true, Ordering::Relaxed);
        match self.events.try_send(Event::Message(message)) {
            Ok(()) => {}
            Err(SendError::Closed(Event::Message(message))) if self.outlives_answer() => {
                self.client.tell(message);
            }
            Err(_) => self.left_out(),
        }
    }

    /// Logs a warning for the first dropped message of a call.
    fn left_out(&self) {
        if !self.has_left_out.swap(true, Ordering::Relaxed) {
            warn!("a client reads the messages of its call too slowly; some are dropped");
        }
    }

    /// Forwards a log message if its level passes the filter.
    fn log(&self, level: &str, params: &Json) {
        let hears = self.filter().logs.passes(level);
        if hears {
            self.tell("notifications/message", params);
        }
    }

    /// True if the client may receive such a notification within a call. Those of extensions are for
    /// clients that are shown one server.
    fn may_hear(&self, method: &str) -> bool {
        let is_of_extension = || match self.client.view {
            View::All => false,
            View::One(_) => ExtensionNotification::parse(method).is_some(),
        };
        method.ends_with("/list_changed") || is_of_extension()
    }

    /// Sends a question in the form of the client's era.
    async fn put(&self, asking: Asking, params: Json) -> Result<Json, Unanswered> {
        self.whole.store(true, Ordering::Relaxed);
        match (self.client.era.asks_in_answers(), self.may_carry_questions) {
            (true, true) => self.ask_in_answer(asking, params).await,
            (true, false) => Err(Unanswered::not_offered(asking)),
            (false, _) => self.ask_by_request(asking, params).await,
        }
    }

    /// Hands a question to the exchange, which makes it the answer to the client's request.
    async fn ask_in_answer(&self, asking: Asking, params: Json) -> Result<Json, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let params = without_id(params);
        let question = Event::Question(OpenQuestion { asking, params, answer });
        if self.events.send(question).await.is_err() {
            return Err(gone());
        }
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Sends a question as a request to the client, and waits for the reply.
    async fn ask_by_request(&self, asking: Asking, params: Json) -> Result<Json, Unanswered> {
        let (id, asked) = self.client.ask();
        let params = for_legacy(params, asking, id);
        let message = Bytes::from(compose::request(id, asking.method(), Some(&params)));
        let sent = self.events.send(Event::Message(message.clone())).await;
        // A question of a task can also be sent outside of this request.
        let is_asked = sent.is_ok() || (self.outlives_answer() && self.client.tell(message));
        if !is_asked {
            return Err(gone());
        }
        let mut put = SentQuestion { operator: self, id, is_open: true };
        let reply = asked.reply().await;
        put.is_open = false;
        match reply {
            Some(RpcReply::Result(result)) => Ok(result),
            Some(RpcReply::Error(error)) => {
                Err(Unanswered { code: error.code, message: error.message })
            }
            // The question was not delivered.
            None => Unanswered::declined(asking),
        }
    }

    /// True if the client declared the capability for this request of a result.
    pub(crate) fn can_be_asked(&self, request: &Json) -> bool {
        let method = object::get_string(request, "method").unwrap_or_default();
        let mode = object::at_path(request, "params.mode");
        let is_visit = mode.is_some_and(|mode| mode.as_bytes() == b"\"url\"");
        match Asking::of_method(&method) {
            Some(Asking::Elicit) if is_visit => self.can_visit(),
            Some(Asking::Elicit) => self.can_fill_in(),
            Some(other @ (Asking::Sample | Asking::Roots)) => self.client.can(other.capability()),
            None => false,
        }
    }

    /// True if the client can ask a person to visit a URL.
    pub(crate) fn can_visit(&self) -> bool {
        self.client.revision >= Revision::V2025_11_25
            && object::at_path(&self.client.capabilities, "elicitation.url").is_some()
    }

    /// True if the client can show a form. A client that names no elicitation mode supports forms.
    fn can_fill_in(&self) -> bool {
        let ways = object::get(&self.client.capabilities, "elicitation");
        ways.is_some_and(|ways| {
            object::get(&ways, "form").is_some() || object::get(&ways, "url").is_none()
        })
    }
}

impl Approver for ClientOperator {
    fn approve<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Approval> {
        async move {
            if !self.can_fill_in() {
                return Approval::No(Ground::Nobody);
            }
            let asked = self.put(Asking::Elicit, approval_form::form(question));
            let Ok(answer) = tokio::time::timeout(self.context.patience, asked).await else {
                return Approval::No(Ground::Nobody);
            };
            match answer {
                Ok(answer) => match approval_form::answer(&answer, question) {
                    Some(extent) => Approval::Yes(Ground::Asked, extent),
                    None => Approval::No(Ground::ClientDeclined),
                },
                Err(_) => Approval::No(Ground::Nobody),
            }
        }
        .boxed()
    }

    fn inform(&self, text: &str) {
        let [level, logger, data] = ["notice", "capstan", text].map(compose::string);
        let params = compose::object(&[("level", &level), ("logger", &logger), ("data", &data)]);
        self.log("notice", &params);
    }
}

impl ClientSide for ClientOperator {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        async move {
            let Ask { server, asking, params } = ask;
            let visit = object::get_string(&params, "mode").as_deref() == Some("url");
            let can = if visit { self.can_visit() } else { self.can_fill_in() };
            if asking == Asking::Elicit && !can {
                return Ok(Reply::Decline.to_json());
            }
            let params = self.context.tasks.translate(&server, &params);
            let answer = self.put(asking, self.signed(&server, asking, params)).await?;
            // A server could not parse it as an answer, and would keep waiting for one.
            if !answer.as_bytes().starts_with(b"{") {
                let message = "the client's answer is not an object".to_owned();
                return Err(Unanswered { code: INTERNAL, message });
            }
            Ok(answer)
        }
        .boxed()
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Progress { server, params, .. } => {
                let Some(token) = self.filter().token.clone() else { return };
                let params = self.context.tasks.translate(&server, &params);
                if let Ok(params) = object::with_member(&params, META_PROGRESS, &token) {
                    self.tell("notifications/progress", &params);
                }
            }
            Notice::Log { server, level, params, .. } => {
                self.log(&level, &self.context.tasks.translate(&server, &params));
            }
            Notice::Other { method, params } => {
                // A client with a stream for such messages is told there.
                if !self.client.has_inbox() && self.may_hear(&method) {
                    self.send(compose::notification(&method, params.as_ref()).into());
                }
            }
        }
    }

    fn capabilities(&self) -> Option<Json> {
        Some(self.client.capabilities.clone())
    }

    fn wishes(&self) -> Wishes {
        let progress = self.filter().token.is_some();
        let flow = !self.whole.load(Ordering::Relaxed);
        let (input_required, level) =
            (self.client.era.asks_in_answers(), self.client.era.level_for(self.client.level()));
        Wishes { progress, input_required, flow, level }
    }

    fn outlives_answer(&self) -> bool {
        let is_there =
            |PendingTask(id): &PendingTask| id.get().is_none_or(|id| self.context.tasks.knows(id));
        self.later.get().is_some_and(is_there)
    }
}

// === impl SentQuestion ===

impl Drop for SentQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let (id, reason) =
            (compose::number(self.id), compose::string("the answer is no longer needed"));
        let params = compose::object(&[("requestId", &id), ("reason", &reason)]);
        let message = Bytes::from(compose::notification("notifications/cancelled", Some(&params)));
        let ClientOperator { events, client, .. } = self.operator;
        // If the request has ended, the client may still have a stream for other messages.
        if events.try_send(Event::Message(message.clone())).is_err() {
            client.tell(message);
        }
    }
}

fn gone() -> Unanswered {
    Unanswered { code: INTERNAL, message: "the client is gone".to_owned() }
}
