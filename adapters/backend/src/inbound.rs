//! What a server says and asks without having been asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use capstan_hub::ports::{Elicitation, Listing, Notice, Operator, Reply as Given, Want};
use capstan_model::ServerName;
use capstan_wire::{Json, RequestId, compose, object, protocol};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tracing::{Instrument, debug, warn};

use crate::connection::Outbox;
use crate::mask::{Masker, visible};
use crate::pending::Pending;
use crate::settings::{Elicitation as Switch, Root};

/// Questions of one server that are worked on at the same time; more are declined.
const MAX_QUESTIONS: usize = 32;

/// Longest piece of a line that is no protocol message, when it is shown.
const MAX_SHOWN: usize = 200;

/// How much of such a line is looked at: more, so that a secret is masked before it can be cut.
const MAX_LOOKED_AT: usize = 64 * 1024;

/// Everything needed to deal with what comes in.
pub(crate) struct Inbound {
    pub(crate) server: ServerName,
    pub(crate) pending: Arc<Pending>,
    pub(crate) asked: Asked,
    pub(crate) out: Outbox,
    pub(crate) masker: Arc<Masker>,
    /// Is told of lists that have changed.
    pub(crate) changed: Box<dyn Fn(Listing) + Send + Sync>,
    places: Arc<Semaphore>,
    warned: AtomicBool,
}

/// What can be answered for the operator without asking, and whether asking is allowed.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) server: ServerName,
    pub(crate) roots: Arc<[Root]>,
    pub(crate) elicitation: Switch,
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

#[derive(Deserialize)]
struct ElicitParams {
    #[serde(default)]
    message: String,
    mode: Option<String>,
    url: Option<String>,
}

// === impl Inbound ===

impl Inbound {
    pub(crate) fn new(
        asked: Asked,
        out: Outbox,
        pending: Arc<Pending>,
        masker: Arc<Masker>,
        changed: Box<dyn Fn(Listing) + Send + Sync>,
    ) -> Self {
        Self {
            server: asked.server.clone(),
            pending,
            asked,
            out,
            masker,
            changed,
            places: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            warned: AtomicBool::new(false),
        }
    }

    pub(crate) fn log(&self, line: &Bytes) {
        debug!(target: "capstan::wire", server = %self.server, "← {}", self.masker.mask_message(line));
    }

    /// A line that is no message: tolerated, shown, and the first one warned about.
    pub(crate) fn not_protocol(&self, line: &Bytes) {
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

    /// Something that the server says, on the stream of request `of` where there are streams.
    pub(crate) fn notification(&self, method: &str, params: Option<&Json>, of: Option<u64>) {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.log_message(params, of),
            "notifications/tools/list_changed" => (self.changed)(Listing::Tools),
            "notifications/prompts/list_changed" => (self.changed)(Listing::Prompts),
            "notifications/resources/list_changed" => {
                (self.changed)(Listing::Resources);
                (self.changed)(Listing::Templates);
            }
            _ => debug!(method, "a notification that means nothing to us"),
        }
    }

    fn progress(&self, params: Option<&Json>) {
        let Some(Ok(progress)) = params.map(Json::read::<Progress>) else { return };
        let Some(id) = progress.token.as_u64() else { return };
        if let Some(operator) = self.pending.progressed(id) {
            operator.notice(Notice::Progress {
                server: self.server.clone(),
                done: progress.done,
                total: progress.total,
                message: progress.message,
            });
        }
    }

    fn log_message(&self, params: Option<&Json>, of: Option<u64>) {
        let (Some(params), Some(operator)) = (params, self.pending.operator(of)) else {
            return;
        };
        let text = match object::get(params, "data") {
            Some(data) => data.read::<String>().unwrap_or_else(|_| data.to_string()),
            None => return,
        };
        let level = object::get_string(params, "level").unwrap_or_else(|| "info".to_owned());
        operator.notice(Notice::Log { server: self.server.clone(), level, text });
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
        if let Some(result) = self.asked.at_once(method) {
            self.out.send(compose::reply(&id, &result)).await;
            return;
        }
        if !self.asked.may_ask(method) {
            let message = format!("`{method}` is not offered here");
            let line = compose::error_reply(&id, protocol::METHOD_NOT_FOUND, &message);
            self.out.send(line).await;
            return;
        }
        // Answered here, so that there are never more tasks than places.
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            self.out.send(compose::reply(&id, &given(Given::Decline))).await;
            return;
        };
        let asking = self.pending.ask(of);
        let (asked, out) = (self.asked.clone(), self.out.clone());
        let answer = async move {
            let operator = asking.as_ref().map(|asking| &*asking.operator);
            let result = asked.elicit(params.as_ref(), operator).await;
            drop(asking);
            out.send(compose::reply(&id, &result)).await;
            drop(place);
        };
        tokio::spawn(answer.in_current_span());
    }
}

// === impl Asked ===

impl Asked {
    /// The answer to a request that needs nobody's decision.
    pub(crate) fn at_once(&self, method: &str) -> Option<Json> {
        match method {
            "ping" => Some(Json::empty_object()),
            "roots/list" => {
                let roots: Vec<Json> = self
                    .roots
                    .iter()
                    .map(|root| {
                        let (uri, name) = (compose::string(&root.uri), compose::string(&root.name));
                        compose::object(&[("uri", &uri), ("name", &name)])
                    })
                    .collect();
                Some(compose::object(&[("roots", &compose::array(&roots))]))
            }
            _ => None,
        }
    }

    /// Whether this may be asked of the operator.
    pub(crate) fn may_ask(&self, method: &str) -> bool {
        match self.elicitation {
            Switch::Offered => method == "elicitation/create",
            Switch::Off => false,
        }
    }

    /// Asks the operator; without one the answer is no.
    pub(crate) async fn elicit(
        &self,
        params: Option<&Json>,
        operator: Option<&dyn Operator>,
    ) -> Json {
        let elicitation = params.and_then(|params| self.read(params));
        match (elicitation, operator) {
            (Some(elicitation), Some(operator)) => given(operator.elicit(elicitation).await),
            _ => given(Given::Decline),
        }
    }

    fn read(&self, params: &Json) -> Option<Elicitation> {
        let read: ElicitParams = params.read().ok()?;
        let want = match (read.mode.as_deref(), read.url) {
            (Some("url"), Some(url)) => Want::Visit(url),
            (Some("form") | None, _) => Want::Form(object::get(params, "requestedSchema")?),
            _ => return None,
        };
        Some(Elicitation { server: self.server.clone(), message: read.message, want })
    }
}

/// The operator's answer as the protocol spells it.
fn given(reply: Given) -> Json {
    let action = |word| compose::string(word);
    match reply {
        Given::Accept(Some(content)) => {
            compose::object(&[("action", &action("accept")), ("content", &content)])
        }
        Given::Accept(None) => compose::object(&[("action", &action("accept"))]),
        Given::Decline => compose::object(&[("action", &action("decline"))]),
        Given::Cancel => compose::object(&[("action", &action("cancel"))]),
    }
}
