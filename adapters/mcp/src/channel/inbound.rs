//! What a server says and asks without having been asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use capstan_hub::ports::{Ask, Asking, Listener, Listing, Notice, Operator, Unanswered};
use capstan_model::ServerName;
use capstan_safety::clean::visible;
use capstan_safety::mask::Masker;
use capstan_wire::protocol::META_SUBSCRIPTION;
use capstan_wire::{EnvelopeError, Json, RequestId, compose, object, protocol};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tracing::{Instrument, debug, warn};

use crate::channel::cut;
use crate::channel::pending::NoReply;
use crate::channel::requests::Requests;
use crate::connect::Watched;
use crate::settings::{Elicitation as Switch, Others, Root};

/// Questions of one server that are worked on at the same time; more are declined. As many as the hub
/// has open in all, of which each peer has its share.
const MAX_QUESTIONS: usize = 256;

/// Longest piece of a line that is no protocol message, when it is shown.
const MAX_SHOWN: usize = 200;

/// How much of such a line is looked at: more, so that a secret is masked before it can be cut.
const MAX_LOOKED_AT: usize = 64 * 1024;

/// What a server logs.
const LOG: &str = "notifications/message";

/// Everything needed to deal with what comes in.
pub(crate) struct Inbound {
    pub(crate) server: ServerName,
    pub(crate) requests: Arc<Requests>,
    pub(crate) asked: Asked,
    pub(crate) masker: Arc<Masker>,
    /// Is told of lists that have changed.
    pub(crate) changed: Changed,
    /// Is told what belongs to no call.
    pub(crate) listener: Arc<dyn Listener>,
    places: Arc<Semaphore>,
    /// Questions that are worked on.
    questions: Arc<Questions>,
    warned: AtomicBool,
    unclear: AtomicBool,
}

/// Questions that are worked on, by the ids that the server gave them.
type Questions = Mutex<HashMap<RequestId, AbortHandle>>;

/// Is told of lists that have changed.
pub(crate) type Changed = Box<dyn Fn(Listing) + Send + Sync>;

/// What can be answered for the operator without asking, and whether asking is allowed.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
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
        asked: Asked,
        requests: Arc<Requests>,
        watched: &Watched,
        changed: Changed,
    ) -> Self {
        Self {
            server: asked.server.clone(),
            requests,
            asked,
            masker: Arc::clone(&watched.masker),
            changed,
            listener: Arc::clone(&watched.listener),
            places: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            questions: Arc::default(),
            warned: AtomicBool::new(false),
            unclear: AtomicBool::new(false),
        }
    }

    pub(crate) fn log(&self, line: &Bytes) {
        debug!(target: "capstan::wire", server = %self.server, "← {}", self.masker.mask_message(line));
    }

    /// A line that is no message: tolerated, shown, and the first one warned about. If it was meant as
    /// a reply, whoever waits for that is told.
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
            warn!(
                line = shown,
                "it sends things that are no protocol messages; they are passed over"
            );
        }
    }

    /// A message that is too long, of which these are the ends: passed over and warned about.
    /// Whoever waits for it, as far as it says who that is, is told.
    pub(crate) fn too_long(&self, (beginning, end): (&[u8], &[u8]), limit: usize) {
        let id = cut::replied(beginning, end);
        if let Some(id) = id {
            self.requests.pending.fail(id, NoReply::TooLong(limit));
        }
        warn!(limit, id, "it sends a message that is too long; it is passed over");
    }

    /// Fails the call that a message answers which does not end; the connection ends with it.
    ///
    /// Where its beginning does not say which call that is, it is the only one in flight, or one of
    /// the requests that belong to no call.
    pub(crate) fn endless(&self, beginning: &[u8], printed: usize, problem: &str) {
        if let Some(id) = cut::replied(beginning, b"") {
            self.requests.pending.fail(id, NoReply::TooLong(printed));
            return;
        }
        let mut failed = self.requests.pending.without_call();
        failed.extend(self.requests.pending.only());
        for id in failed {
            self.requests.pending.fail(id, NoReply::Endless(problem.to_owned()));
        }
    }

    /// A question that could be for any of several clients is for none; the first is warned about.
    fn ambiguous(&self, method: &str) {
        let words = "it asks without saying for which of several clients; nobody is asked";
        if self.unclear.swap(true, Ordering::Relaxed) {
            debug!(method, "{words}");
        } else {
            warn!(method, "{words}");
        }
    }

    /// Something that the server says, on the stream of request `of` where there are streams.
    pub(crate) fn notification(&self, method: &str, params: Option<&Json>, of: Option<u64>) {
        match method {
            "notifications/progress" => self.progress(params),
            LOG => self.log_message(params, of),
            "notifications/tools/list_changed" => (self.changed)(Listing::Tools),
            "notifications/prompts/list_changed" => (self.changed)(Listing::Prompts),
            "notifications/resources/list_changed" => {
                (self.changed)(Listing::Resources);
                (self.changed)(Listing::Templates);
            }
            "notifications/resources/updated" => {
                if let Some(params) = params {
                    self.listener.resource_updated(&self.server, params);
                }
            }
            "notifications/subscriptions/acknowledged" | "notifications/tasks" => {
                self.subscribed(method, params, of);
            }
            "notifications/cancelled" => self.cancelled(params),
            _ => self.listener.told(&self.server, method, params),
        }
    }

    /// Something that comes on a subscription: for whoever made it, and for nobody else.
    fn subscribed(&self, method: &str, params: Option<&Json>, of: Option<u64>) {
        let Some(params) = params else { return };
        let tag = || object::get(&object::get(params, "_meta")?, META_SUBSCRIPTION)?.read().ok();
        if let Some(id) = of.or_else(tag)
            && let Some(subscriber) = self.requests.pending.operator(Some(id))
        {
            subscriber.hear(method, params);
        }
    }

    fn progress(&self, params: Option<&Json>) {
        let Some(params) = params else { return };
        let Ok(progress) = params.read::<Progress>() else { return };
        let Some(id) = progress.token.as_u64() else { return };
        if let Some(operator) = self.requests.pending.progressed(id) {
            operator.notice(Notice::Progress {
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
        let Some(operator) = self.requests.pending.hearer(of, params) else {
            if of.is_none() && !self.requests.pending.has_callers() {
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
        operator.notice(Notice::Log { server, level, text, params });
    }

    /// Answers a request of the server. What needs a person is answered in a task of its own, so
    /// that progress and other replies go on arriving.
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
        let Some(asking) = Asking::of_method(method).filter(|asking| self.asked.may_ask(*asking))
        else {
            let message = format!("`{method}` is not offered here");
            let line = compose::error_reply(&id, protocol::METHOD_NOT_FOUND, &message);
            self.requests.out.send(line).await;
            return;
        };
        // Answered here, so that there are never more tasks than places.
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            warn!(limit = MAX_QUESTIONS, "it asks too much at once; a question is declined");
            self.requests.out.send(reply(&id, Unanswered::declined(asking))).await;
            return;
        };
        let params = params.unwrap_or_else(Json::empty_object);
        let open = self.requests.pending.ask(of, &params);
        // Roots are answered all the same, as the configuration says.
        if open.is_none()
            && of.is_none()
            && asking != Asking::Roots
            && self.requests.pending.has_callers()
        {
            self.ambiguous(method);
        }
        let (asked, requests) = (self.asked.clone(), Arc::clone(&self.requests));
        let (key, questions) = (id.clone(), Arc::clone(&self.questions));
        let answer = async move {
            let operator = open.as_ref().map(|open| &*open.operator);
            let over = async {
                let Some(open) = &open else { return std::future::pending().await };
                open.over().await;
                // Where nobody said which call it belongs to, it may be any that is left.
                while of.is_none()
                    && let Some(another) = requests.pending.ask_party(open.operator.party())
                {
                    another.over().await;
                }
            };
            let answer = tokio::select! {
                biased;
                answer = asked.answer(asking, params, operator) => answer,
                // Whoever was asked is told that it is no longer wanted.
                () = over => Unanswered::declined(asking),
            };
            drop(open);
            lock(&questions).remove(&id);
            requests.out.send(reply(&id, answer)).await;
            drop(place);
        };
        // Held until it is listed, so that it cannot be over before.
        let mut questions = lock(&self.questions);
        let task = tokio::spawn(answer.in_current_span());
        questions.insert(key, task.abort_handle());
    }

    /// The server no longer waits for an answer to a question of its own; it gets none.
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

/// The request that a line which is no message was meant to be the reply to. What does not even say
/// that it is of the protocol is something else, such as a line of a log.
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

// === impl Asked ===

impl Asked {
    /// Whether the server may ask this at all.
    pub(crate) fn may_ask(&self, asking: Asking) -> bool {
        match (asking, self.elicitation, self.others) {
            (Asking::Elicit, Switch::Offered, _)
            | (Asking::Sample, _, Others::Clients)
            | (Asking::Roots, _, _) => true,
            (Asking::Elicit, Switch::Off, _) | (Asking::Sample, _, Others::People) => false,
        }
    }

    /// Asks the operator; without one the answer is no.
    pub(crate) async fn answer(
        &self,
        asking: Asking,
        params: Json,
        operator: Option<&dyn Operator>,
    ) -> Result<Json, Unanswered> {
        let able = operator.and_then(Operator::able);
        let declared = able.as_ref().map(|able| object::get(able, asking.capability()).is_some());
        match (asking, operator, declared) {
            // What the operator wrote into the configuration holds where the caller has no say.
            (Asking::Roots, _, None | Some(false)) => Ok(self.own_roots()),
            (_, Some(operator), None | Some(true)) => {
                operator.ask(Ask { server: self.server.clone(), asking, params }).await
            }
            (Asking::Elicit, None, _) => Unanswered::declined(asking),
            (_, Some(_), Some(false)) | (Asking::Sample | Asking::Roots, None, _) => {
                Err(Unanswered::not_offered(asking))
            }
        }
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
