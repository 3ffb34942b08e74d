//! Handles the notifications and requests of a server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use capstan_hub::BackChannel;
use capstan_hub::ports::{Asking, Listener, Listing, Notice, Unanswered};
use capstan_model::ServerName;
use capstan_model::rpc_code;
use capstan_safety::clean::visible;
use capstan_safety::mask::Masker;
use capstan_wire::protocol::META_SUBSCRIPTION;
use capstan_wire::{EnvelopeError, Json, RequestId, compose, object};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tracing::{Instrument, debug, warn};

use crate::channel::pending::NoReply;
use crate::channel::requests::Requests;
use crate::channel::truncated;
use crate::connect::ServerContext;
use crate::fault::Fault;
use crate::server::echo::Reporter;
use crate::server::sticky::StickyRequests;
use crate::settings::{Elicitation as Switch, Others, Root};

/// The number of a server's questions that are open at the same time; more are declined. This
/// equals the hub's total of open questions, of which each peer has a fair share.
const MAX_QUESTIONS: usize = 256;

/// The longest excerpt shown of a line that is not a protocol message.
const MAX_SHOWN: usize = 200;

/// The length of such a line that is processed.
/// It is longer than the excerpt, so that a secret is masked before it can be cut.
const MAX_LOOKED_AT: usize = 64 * 1024;

/// The method of a server's log messages.
const LOG: &str = "notifications/message";

/// The state that is needed to handle incoming messages.
pub(crate) struct Inbound {
    pub(crate) server: ServerName,
    pub(crate) requests: Arc<Requests>,
    pub(crate) settings: QuestionSettings,
    pub(crate) masker: Arc<Masker>,
    /// Called when a list has changed.
    pub(crate) changed: Changed,
    /// Receives the notifications that belong to no call.
    pub(crate) listener: Arc<dyn Listener>,
    /// Tells updates of resources that another connection has reported already.
    reporter: Reporter,
    sticky: Arc<StickyRequests>,
    places: Arc<Semaphore>,
    /// The open questions.
    questions: Arc<Questions>,
    warned: AtomicBool,
    unclear: AtomicBool,
}

/// The open questions, by the request ids of the server.
type Questions = Mutex<HashMap<RequestId, AbortHandle>>;

/// A callback for lists that have changed.
pub(crate) type Changed = Box<dyn Fn(Listing) + Send + Sync>;

/// The settings for a server's questions: the answers that need no client, and what may be asked.
#[derive(Clone, Debug)]
pub(crate) struct QuestionSettings {
    pub(crate) server: ServerName,
    pub(crate) roots: Arc<[Root]>,
    pub(crate) elicitation: Switch,
    pub(crate) others: Others,
}

#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "progressToken")]
    token: serde_json::Value,
    #[serde(default, rename = "progress")]
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

// === impl Inbound ===

impl Inbound {
    pub(crate) fn new(
        settings: QuestionSettings,
        requests: Arc<Requests>,
        context: &ServerContext,
        changed: Changed,
    ) -> Self {
        Self {
            server: settings.server.clone(),
            requests,
            settings,
            masker: Arc::clone(&context.masker),
            changed,
            listener: Arc::clone(&context.listener),
            reporter: Reporter::new(&context.reports),
            sticky: Arc::clone(&context.sticky),
            places: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            questions: Arc::default(),
            warned: AtomicBool::new(false),
            unclear: AtomicBool::new(false),
        }
    }

    pub(crate) fn log(&self, line: &Bytes) {
        debug!(target: "capstan::wire", server = %self.server, "← {}", self.masker.mask_message(line));
    }

    /// Gives up a server that sends our own requests back.
    pub(crate) fn repeats_input(&self) {
        let reason = "it is not an MCP server: it only repeats its input";
        self.requests.lose(Fault::Unreachable(reason.to_owned()));
    }

    /// Handles a line that is not a protocol message: shows it, and warns about the first one. If
    /// it looks like a reply, the request that waits for that reply fails.
    pub(crate) fn not_protocol(&self, line: &Bytes, problem: EnvelopeError) {
        if let Some(id) = replied(line) {
            self.requests.pending.fail(id, NoReply::Garbled(problem));
        }
        let piece = line.get(..MAX_LOOKED_AT).unwrap_or(line);
        let mut shown = visible(&self.masker.mask(&String::from_utf8_lossy(piece)));
        shown.truncate(shown.floor_char_boundary(MAX_SHOWN));
        if self.warned.swap(true, Ordering::Relaxed) {
            debug!(line = shown, "not a protocol message");
        } else {
            warn!(line = shown, "it sends lines that are not protocol messages; they are ignored");
        }
    }

    /// Skips a message that is too long, of which the two ends are given, and warns about it. If
    /// its ends contain the request id, that request fails.
    pub(crate) fn too_long(&self, beginning: &[u8], end: &[u8], limit: usize) {
        let id = truncated::replied(beginning, end);
        if let Some(id) = id {
            self.requests.pending.fail(id, NoReply::TooLong(limit));
        }
        warn!(limit, id, "it sends a message that is too long; it is ignored");
    }

    /// Fails the request that an endless message answers; the connection is closed.
    ///
    /// If the beginning has no request id, this fails the only request in flight, and all requests
    /// that belong to no call.
    pub(crate) fn endless(&self, beginning: &[u8], printed: usize, problem: &str) {
        if let Some(id) = truncated::replied(beginning, b"") {
            self.requests.pending.fail(id, NoReply::TooLong(printed));
            return;
        }
        let mut failed = self.requests.pending.without_call();
        failed.extend(self.requests.pending.only());
        for id in failed {
            self.requests.pending.fail(id, NoReply::Endless(problem.to_owned()));
        }
    }

    /// Logs a question that could belong to any of several clients. It is sent to none of them. The
    /// first one is a warning.
    fn ambiguous(&self, method: &str) {
        let words = "it asks a question without naming its call; the question is declined";
        if self.unclear.swap(true, Ordering::Relaxed) {
            debug!(method, "{words}");
        } else {
            warn!(method, "{words}");
        }
    }

    /// Handles a notification; `of` is the request whose stream it came on, if there are streams.
    pub(crate) fn notification(&self, method: &str, params: Option<&Json>, of: Option<u64>) {
        match method {
            "notifications/progress" => self.progress(params),
            LOG => self.log_message(params, of),
            "notifications/tools/list_changed" => {
                (self.changed)(Listing::Tools);
                self.tell_call(method, params, of);
            }
            "notifications/prompts/list_changed" => {
                (self.changed)(Listing::Prompts);
                self.tell_call(method, params, of);
            }
            "notifications/resources/list_changed" => {
                (self.changed)(Listing::Resources);
                (self.changed)(Listing::Templates);
                self.tell_call(method, params, of);
            }
            "notifications/resources/updated" => {
                if let Some(params) = params
                    && let Some(uri) = object::get_string(params, "uri")
                    && !(self.sticky.is_watched_twice(&uri) && self.reporter.repeats(&uri))
                {
                    self.listener.resource_updated(&self.server, params);
                }
            }
            "notifications/subscriptions/acknowledged" | "notifications/tasks" => {
                self.subscribed(method, params, of);
            }
            "notifications/cancelled" => self.cancelled(params),
            _ => {
                self.listener.told(&self.server, method, params);
                self.tell_call(method, params, of);
            }
        }
    }

    /// Passes a notification to the client of the request on whose stream it came.
    fn tell_call(&self, method: &str, params: Option<&Json>, of: Option<u64>) {
        if let Some(back) = of.and_then(|id| self.requests.pending.client(Some(id))) {
            back.notice(Notice::Other { method: method.into(), params: params.cloned() });
        }
    }

    /// Passes a notification of a subscription to its subscriber only.
    fn subscribed(&self, method: &str, params: Option<&Json>, of: Option<u64>) {
        let Some(params) = params else { return };
        let tag = || object::get(&object::get(params, "_meta")?, META_SUBSCRIPTION)?.read().ok();
        if let Some(id) = of.or_else(tag)
            && let Some(subscriber) = self.requests.pending.subscriber(id)
        {
            subscriber.notify(method, params);
        }
    }

    fn progress(&self, params: Option<&Json>) {
        let Some(params) = params else { return };
        let Ok(progress) = params.read::<Progress>() else { return };
        let Some(id) = progress.token.as_u64() else { return };
        if let Some(back) = self.requests.pending.progressed(id) {
            back.notice(Notice::Progress {
                server: self.server.clone(),
                done: progress.done,
                total: progress.total,
                message: progress.message,
                params: params.clone(),
            });
        }
    }

    fn log_message(&self, params: Option<&Json>, of: Option<u64>) {
        let Some(params) = params else { return };
        let Some(back) = self.requests.pending.log_recipient(of, params) else {
            if of.is_none() && !self.requests.pending.has_calls() {
                self.listener.told(&self.server, LOG, Some(params));
            }
            return;
        };
        let text = match object::get(params, "data") {
            Some(data) => data.read::<String>().unwrap_or_else(|_| data.to_string()),
            None => return,
        };
        let level = object::get_string(params, "level").unwrap_or_else(|| "info".to_owned());
        let (server, params) = (self.server.clone(), params.clone());
        back.notice(Notice::Log { server, level, text, params });
    }

    /// Answers a request of the server. Questions that need a person are answered in their own
    /// task, so that progress and other replies continue to arrive.
    pub(crate) async fn request(
        &self,
        id: RequestId,
        method: &str,
        params: Option<Json>,
        of: Option<u64>,
    ) {
        if method == "ping" {
            self.requests.out.send(compose::reply(&id, &Json::empty_object())).await;
            return;
        }
        let Some(asking) =
            Asking::of_method(method).filter(|asking| self.settings.may_ask(*asking))
        else {
            let message = format!("`{method}` is not offered here");
            let line = compose::error_reply(&id, rpc_code::METHOD_NOT_FOUND, &message);
            self.requests.out.send(line).await;
            return;
        };
        // Declined here and not in a task, so that tasks never exceed the semaphore's permits.
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            warn!(
                limit = MAX_QUESTIONS,
                "it asks too many questions at once; a question is declined"
            );
            self.requests.out.send(reply(&id, Unanswered::declined(asking))).await;
            return;
        };
        let params = params.unwrap_or_else(Json::empty_object);
        let open = self.requests.pending.ask(of, &params);
        // A server may ask for roots at any time, also while it works on a call.
        let may_be_outside = of.is_none() && (open.is_none() || asking == Asking::Roots);
        let is_ambiguous =
            may_be_outside && asking != Asking::Roots && self.requests.pending.has_calls();
        if is_ambiguous {
            self.ambiguous(method);
        }
        let may_be_outside = may_be_outside && !is_ambiguous;
        let outside = may_be_outside.then(|| self.listener.only_client(&self.server)).flatten();
        let (settings, requests) = (self.settings.clone(), Arc::clone(&self.requests));
        let (key, questions) = (id.clone(), Arc::clone(&self.questions));
        let answer = async move {
            let in_call = async {
                let open = open.as_ref()?;
                tokio::select! {
                    biased;
                    answer = settings.answer(asking, params.clone(), Some(&open.back)) => Some(answer),
                    // Dropping the question withdraws it from the client.
                    () = requests.pending.over(open, of) => None,
                }
            };
            let answer = match in_call.await {
                Some(answer) => answer,
                None if open.is_some() && asking != Asking::Roots => Unanswered::declined(asking),
                None => settings.answer_outside(asking, params, outside.as_ref()).await,
            };
            drop(open);
            lock(&questions).remove(&id);
            requests.out.send(reply(&id, answer)).await;
            drop(place);
        };
        // Locked until the task is registered, so that it cannot finish before that.
        let mut questions = lock(&self.questions);
        let task = tokio::spawn(answer.in_current_span());
        questions.insert(key, task.abort_handle());
    }

    /// Aborts a question that the server has cancelled; no answer is sent.
    fn cancelled(&self, params: Option<&Json>) {
        let Some(id) = params.and_then(|params| object::get(params, "requestId")) else { return };
        let number = id.read().map(RequestId::Number);
        let Ok(id) = number.or_else(|_| id.read().map(RequestId::Text)) else { return };
        let question = lock(&self.questions).remove(&id);
        if let Some(question) = question {
            question.abort();
        }
    }
}

/// The id of the request that a malformed line was meant to answer. A line without a `jsonrpc`
/// member is something else, such as a log line.
fn replied(line: &Bytes) -> Option<u64> {
    let line = String::from_utf8_lossy(line.get(..MAX_LOOKED_AT).unwrap_or(line));
    let members: serde_json::Value = serde_json::from_str(&line).ok()?;
    let is_reply = members.get("result").or_else(|| members.get("error")).is_some();
    let is_meant = is_reply && members.get("jsonrpc").is_some();
    members.get("id").filter(|_| is_meant)?.as_u64()
}

fn lock(questions: &Questions) -> MutexGuard<'_, HashMap<RequestId, AbortHandle>> {
    questions.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reply(id: &RequestId, answer: Result<Json, Unanswered>) -> Vec<u8> {
    match answer {
        Ok(result) => compose::reply(id, &result),
        Err(Unanswered { code, message }) => compose::error_reply(id, code, &message),
    }
}

// === impl QuestionSettings ===

impl QuestionSettings {
    /// True if the server may ask this kind of question at all.
    pub(crate) fn may_ask(&self, asking: Asking) -> bool {
        match (asking, self.elicitation, self.others) {
            (Asking::Elicit, Switch::Offered, _)
            | (Asking::Sample, _, Others::Clients)
            | (Asking::Roots, _, _) => true,
            (Asking::Elicit, Switch::Off, _) | (Asking::Sample, _, Others::People) => false,
        }
    }

    /// Asks the client of the call; without one the answer is no.
    pub(crate) async fn answer(
        &self,
        asking: Asking,
        params: Json,
        back: Option<&BackChannel>,
    ) -> Result<Json, Unanswered> {
        let able = back.and_then(BackChannel::capabilities);
        let declared = able.as_ref().map(|able| object::get(able, asking.capability()).is_some());
        match (asking, back, declared) {
            // The configured roots apply if the caller declares no roots of its own.
            (Asking::Roots, _, None | Some(false)) => Ok(self.own_roots()),
            (_, Some(back), None | Some(true)) => match back.ask(asking, params).await {
                // It has roots and cannot be asked for them during this request.
                Err(Unanswered { code: rpc_code::METHOD_NOT_FOUND, .. })
                    if asking == Asking::Roots =>
                {
                    Ok(self.own_roots())
                }
                answer => answer,
            },
            (Asking::Elicit, None, _) => Unanswered::declined(asking),
            (_, Some(_), Some(false)) | (Asking::Sample | Asking::Roots, None, _) => {
                Err(Unanswered::not_offered(asking))
            }
        }
    }

    /// Answers a question outside of calls. If the client has no stream for questions, or has left,
    /// roots come from the configuration.
    async fn answer_outside(
        &self,
        asking: Asking,
        params: Json,
        client: Option<&BackChannel>,
    ) -> Result<Json, Unanswered> {
        let answer = self.answer(asking, params, client).await;
        if answer.is_err() && asking == Asking::Roots { Ok(self.own_roots()) } else { answer }
    }

    fn own_roots(&self) -> Json {
        let root = |root: &Root| {
            let (uri, name) = (compose::string(&root.uri), compose::string(&root.name));
            compose::object(&[("uri", &uri), ("name", &name)])
        };
        let roots: Vec<Json> = self.roots.iter().map(root).collect();
        compose::object(&[("roots", &compose::array(&roots))])
    }
}
