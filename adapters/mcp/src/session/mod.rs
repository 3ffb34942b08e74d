//! Speaks with one connected server in the era that was detected.

mod side;
pub(crate) mod handshake;
mod input;
pub(crate) mod listing;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use capstan_hub::ports::{About, Item, Listing};
use capstan_hub::{Answer, BackChannel, Flow, Ticket};
use capstan_model::{CallError, ServerName};
use capstan_wire::{Json, Reply, RpcError, compose, object, protocol};
use futures::FutureExt;
use tracing::{Instrument, debug};

use crate::channel::inbound::Asked;
use crate::channel::pending::Recipient;
use crate::channel::{Channel, Request, RequestError, Said};
use crate::server::Home;
use crate::session::handshake::{Hello, RequestedBy, modern_meta};
use crate::session::input::is_input_required;
use crate::session::listing::{Lists, SharedList};
use crate::settings::Terms;

/// How often one call may ask for further input.
const MAX_ROUNDS: usize = 10;

/// The members with which a modern client describes itself in each request. They are removed for a
/// legacy server: it got this in the handshake, and one that supports both eras could mistake the
/// request for a modern one.
const ERA: [&str; 4] = [
    protocol::META_VERSION,
    protocol::META_CAPABILITIES,
    protocol::META_CLIENT,
    protocol::META_LEVEL,
];

/// A connected server.
pub(crate) struct Session {
    pub(crate) settings: Arc<Terms>,
    pub(crate) connection: Arc<dyn Channel>,
    pub(crate) about: Arc<About>,
    pub(crate) modern: bool,
    pub(crate) asked: Asked,
    lists: Arc<Lists>,
    /// The kinds of changes that the server was asked to report.
    subscribed: Mutex<HashSet<&'static str>>,
    /// The watched resources of a modern server, with the ids of their subscriptions.
    pub(crate) watched: Mutex<HashMap<String, u64>>,
    /// The server that the session belongs to; set before the first use.
    pub(crate) home: OnceLock<Home>,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(
        settings: Arc<Terms>,
        connection: Arc<dyn Channel>,
        hello: Hello,
        asked: Asked,
        lists: Arc<Lists>,
    ) -> Self {
        let Hello { modern, about } = hello;
        let (subscribed, watched) = (Mutex::default(), Mutex::default());
        let about = Arc::new(about);
        let home = OnceLock::new();
        Self { settings, connection, about, modern, asked, lists, subscribed, watched, home }
    }

    /// True if the server declares such a list.
    pub(crate) fn offers(&self, listing: Listing) -> bool {
        self.capability(listing.capability()).is_some()
    }

    /// True if the server declares no tools, prompts or resources.
    pub(crate) fn offers_nothing(&self) -> bool {
        ![Listing::Tools, Listing::Prompts, Listing::Resources]
            .iter()
            .any(|list| self.offers(*list))
    }

    pub(crate) fn capability(&self, name: &str) -> Option<Json> {
        self.about.capabilities.as_ref().and_then(|all| object::get(all, name))
    }

    /// The items of the list, if they are already read and not empty.
    pub(crate) fn known(&self, listing: Listing) -> Option<Arc<[Item]>> {
        self.lists.known(listing).filter(|items| !items.is_empty())
    }

    /// Returns the items of the list; reading it is single-flight.
    pub(crate) async fn list(self: &Arc<Self>, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        self.lists.get_or_start(listing, || self.start_reading(listing)).await
    }

    fn start_reading(self: &Arc<Self>, listing: Listing) -> SharedList {
        let session = Arc::clone(self);
        let list = async move {
            // Before reading, so that no change in between is missed.
            session.subscribe(listing).await;
            let result = listing::read(&session, listing).await;
            if result.is_err() {
                // A failure is not cached; the next caller tries again.
                session.lists.forget(listing);
            }
            result
        };
        let shared = list.in_current_span().boxed().shared();
        // Driven by a task of its own, so that a caller that is dropped does not stop it for
        // others.
        tokio::spawn(shared.clone());
        shared
    }

    /// Subscribes once to changes of the list at a modern server. Legacy servers report them
    /// unasked.
    async fn subscribe(&self, listing: Listing) {
        let changes = self
            .capability(listing.capability())
            .and_then(|capability| object::get(&capability, "listChanged"))
            .is_some_and(|json| json.as_bytes() == b"true");
        let key = match listing {
            Listing::Tools => "toolsListChanged",
            Listing::Prompts => "promptsListChanged",
            Listing::Resources | Listing::Templates => "resourcesListChanged",
        };
        if !(self.modern && changes) {
            return;
        }
        let first = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        if first {
            self.listen_to(key, &truth()).await;
        }
    }

    /// Subscribes to notifications of a modern server, and returns the id of the subscription.
    pub(crate) async fn listen_to(&self, key: &str, what: &Json) -> u64 {
        let wanted = compose::object(&[(key, what)]);
        let meta = modern_meta(&self.settings, RequestedBy::Us);
        let params = compose::object(&[("notifications", &wanted), ("_meta", &meta)]);
        self.connection.start("subscriptions/listen", &params).await
    }

    pub(crate) fn result(&self, reply: Reply) -> Result<Json, CallError> {
        match reply {
            Reply::Result(result) => Ok(result),
            Reply::Error(error) => Err(self.refused(&error)),
        }
    }

    /// Sends a request that belongs to no call, such as for a page of a list.
    pub(crate) async fn ask(&self, method: &str, params: &Json) -> Result<Reply, CallError> {
        // The progress token would refer to another request of this connection, or to none.
        let params = without_meta(params, &[protocol::META_PROGRESS]);
        let params = if self.modern {
            let meta = self.modern_meta_over(&params);
            object::with_member(&params, "_meta", &meta).map_err(|e| self.broken(e.to_string()))?
        } else {
            without_meta(&params, &ERA)
        };
        let id = self.connection.requests().next_id();
        let limit = self.settings.timeout;
        let request = Request { id, method, params: &params, limit, recipient: None };
        let reply = self.connection.request(request).await;
        reply.map_err(|error| self.request_failed(error, MayRun::No))
    }

    /// Merges our metadata into the params. Members that a modern client set take precedence.
    fn modern_meta_over(&self, params: &Json) -> Json {
        let ours = modern_meta(&self.settings, RequestedBy::Us);
        let theirs = object::get(params, "_meta").and_then(|meta| object::members(&meta).ok());
        let mut meta = theirs.unwrap_or_default();
        for (key, value) in object::members(&ours).unwrap_or_default() {
            if !meta.iter().any(|(name, _)| *name == key) {
                meta.push((key, value));
            }
        }
        let meta: Vec<(&str, &Json)> = meta.iter().map(|(k, v)| (k.as_str(), v)).collect();
        compose::object(&meta)
    }

    /// Runs the call of a ticket, and answers the server's requests for input.
    pub(crate) async fn run(
        &self,
        ticket: &Ticket,
        back: &BackChannel,
    ) -> Result<Answer, CallError> {
        let mut params = ticket.params().clone();
        for _ in 0..MAX_ROUNDS {
            let answer = self.send(ticket, &params, back).await?;
            let Answer::Whole(result) = &answer else { return Ok(answer) };
            if !self.modern || !is_input_required(result) || self.hands_out(result, back) {
                return Ok(answer);
            }
            params = self.with_input(ticket.params(), result, back).await?;
        }
        Err(self.broken(format!("it asked for input more than {MAX_ROUNDS} times in one call")))
    }

    async fn send(
        &self,
        ticket: &Ticket,
        params: &Json,
        back: &BackChannel,
    ) -> Result<Answer, CallError> {
        let said = self.send_once(ticket, params, back).await?;
        if let Said::Reply(Reply::Error(error)) = &said
            && error.code == protocol::HEADER_MISMATCH
        {
            // The tool's headers may have changed. The road reads the list again before it retries
            // the call.
            self.lists.forget(Listing::Tools);
        }
        match said {
            Said::Reply(reply) => self.result(reply).map(Answer::Whole),
            Said::Flow(flow) => Ok(Answer::Flowing(flow)),
        }
    }

    async fn send_once(
        &self,
        ticket: &Ticket,
        params: &Json,
        back: &BackChannel,
    ) -> Result<Said<Box<Flow>>, CallError> {
        let id = self.connection.requests().next_id();
        let wishes = back.wishes();
        let params = self.with_meta(params, id, wishes.progress, || RequestedBy::client(back))?;
        let (method, limit) = (ticket.kind().method(), self.settings.timeout);
        let recipient = Some(Recipient::Client(back.clone()));
        let request = Request { id, method, params: &params, limit, recipient };
        let may_run = if ticket.effect().may_write() { MayRun::Yes } else { MayRun::No };
        // A caller that does not take a modern server's answer unchanged gets it translated, as a
        // whole.
        let said = if wishes.flow && (!self.modern || wishes.input_required) {
            self.connection.call(request, may_run).await
        } else {
            self.connection.request(request).await.map(Said::Reply)
        };
        said.map_err(|error| {
            let mut error = self.request_failed(error, may_run);
            if let CallError::AnswerTooLarge { item, .. } = &mut error {
                *item = ticket.id().to_string();
            }
            error
        })
    }

    /// Adds our metadata to the client's params, which otherwise stay unchanged. With `progress`,
    /// the request's id is the progress token.
    pub(crate) fn with_meta(
        &self,
        params: &Json,
        id: u64,
        progress: bool,
        requester: impl FnOnce() -> RequestedBy,
    ) -> Result<Json, CallError> {
        let broken = |_| self.broken("the params are not an object".to_owned());
        let params = &if self.modern { params.clone() } else { without_meta(params, &ERA) };
        if !progress && !self.modern {
            return Ok(params.clone());
        }
        let client = object::get(params, "_meta").unwrap_or_else(Json::empty_object);
        let mut meta = object::members(&client).map_err(broken)?;
        let mut set = |key: &str, value: Json| match meta.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => meta.push((key.to_owned(), value)),
        };
        if progress {
            set(protocol::META_PROGRESS, compose::number(id));
        }
        if self.modern {
            let ours = modern_meta(&self.settings, requester());
            object::members(&ours).map_err(broken)?.into_iter().for_each(|(k, v)| set(&k, v));
        }
        let meta: Vec<(&str, &Json)> = meta.iter().map(|(k, v)| (k.as_str(), v)).collect();
        object::with_member(params, "_meta", &compose::object(&meta)).map_err(broken)
    }

    pub(crate) fn request_failed(&self, error: RequestError, may_run: MayRun) -> CallError {
        failed(&self.settings.name, error, may_run)
    }

    pub(crate) fn refused(&self, error: &RpcError) -> CallError {
        let (code, message) = (error.code, error.message.clone());
        let (server, whole) = (self.settings.name.clone(), Some(error.whole.to_string()));
        CallError::Server { server, code, message, whole }
    }

    pub(crate) fn broken(&self, problem: String) -> CallError {
        CallError::Protocol { server: self.settings.name.clone(), problem }
    }
}

/// `Yes` if a lost request may have had an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayRun {
    Yes,
    No,
}

/// Converts the failure of a request into the error of its call.
pub(crate) fn failed(server: &ServerName, error: RequestError, may_run: MayRun) -> CallError {
    let server = server.clone();
    match (error, may_run) {
        (RequestError::Refused(fault), _) => fault.into_error(&server),
        (RequestError::NotSent(reason), _) | (RequestError::Gone(reason), MayRun::No) => {
            CallError::Unreachable { server, reason }
        }
        (RequestError::Gone(reason), MayRun::Yes) => CallError::OutcomeUnknown { server, reason },
        (RequestError::TimedOut(limit), may_run) => {
            debug!(?limit, "no answer in time");
            CallError::TimedOut { server, limit, may_have_run: may_run == MayRun::Yes }
        }
    }
}

/// Removes these members of `_meta` from the params, and `_meta` itself if it is then empty.
fn without_meta<const N: usize>(params: &Json, keys: &[&str; N]) -> Json {
    let Some(meta) = object::get(params, "_meta") else { return params.clone() };
    if object::peek(&meta, *keys).iter().all(Option::is_none) {
        return params.clone();
    }
    let Ok(mut members) = object::members(&meta) else { return params.clone() };
    members.retain(|(name, _)| !keys.contains(&name.as_str()));
    let left: Vec<(&str, &Json)> = members.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let bare = if left.is_empty() {
        object::without_member(params, "_meta")
    } else {
        object::with_member(params, "_meta", &compose::object(&left))
    };
    bare.unwrap_or_else(|_| params.clone())
}

fn truth() -> Json {
    Json::parse("true").unwrap_or_else(|_| Json::empty_object())
}
