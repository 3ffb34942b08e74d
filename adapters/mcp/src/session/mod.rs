//! Speaks with one connected server in the era that the handshake has chosen.
//!
//! [`handshake`] detects the era, [`era`] has the differences in requests and results,
//! [`subscriptions`] those in notifications. This file sends calls, [`side`] everything else that
//! the pipeline lets through, [`listing`] reads lists, [`input`] answers requests for input.

pub(crate) mod client;
pub(crate) mod era;
pub(crate) mod handshake;
mod input;
pub(crate) mod listing;
mod side;
mod subscriptions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use capstan_hub::ports::{self, About, Item, Lane, Listing};
use capstan_hub::{Answer, BackChannel, Flow, Ticket};
use capstan_model::rpc_code;
use capstan_model::{CallError, Effect, ServerName};
use capstan_wire::{Json, Reply, RpcError, object};
use futures::FutureExt;
use tracing::{Instrument, debug};

use crate::channel::inbound::QuestionSettings;
use crate::channel::pending::Recipient;
use crate::channel::{Channel, Request, RequestError, Response};
use crate::server::SessionOwner;
use crate::session::client::RequestedBy;
use crate::session::era::Era;
use crate::session::handshake::Handshake;
use crate::session::listing::{Lists, SharedList};
use crate::session::subscriptions::Subscriptions;
use crate::settings::CommonSettings;

/// How often one call may ask for further input.
const MAX_ROUNDS: usize = 10;

/// A connected server.
pub(crate) struct Session {
    pub(crate) settings: Arc<CommonSettings>,
    pub(crate) connection: Arc<dyn Channel>,
    pub(crate) about: Arc<About>,
    pub(crate) era: Era,
    pub(crate) questions: QuestionSettings,
    lists: Arc<Lists>,
    subscriptions: Subscriptions,
    /// The server that the session belongs to; set before the first use.
    pub(crate) owner: OnceLock<SessionOwner>,
    /// True if the server was asked for the other era and refused, or may not be asked.
    is_only_era: bool,
    /// True if a caller has used the session, so that the server may have state for it.
    is_claimed: AtomicBool,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(
        settings: Arc<CommonSettings>,
        connection: Arc<dyn Channel>,
        handshake: Handshake,
        questions: QuestionSettings,
        lists: Arc<Lists>,
    ) -> Self {
        let Handshake { era, about, is_only_era } = handshake;
        Self {
            settings,
            connection,
            about: Arc::new(about),
            era,
            questions,
            lists,
            subscriptions: Subscriptions::default(),
            owner: OnceLock::new(),
            is_only_era,
            is_claimed: AtomicBool::new(false),
        }
    }

    /// True if callers of the lane use this session. A process that has only been listed is started
    /// again for the first caller of the other era; after that it stays as it is, because another
    /// process would not have its state.
    pub(crate) fn suits(&self, lane: Lane) -> bool {
        let Some(era) = lane.era else { return true };
        self.connection.process().is_none()
            || self.is_only_era
            || self.era.is_modern() == (era == ports::Era::Modern)
            || self.is_claimed.load(Ordering::Relaxed)
    }

    /// Claims the session for a caller of the lane. A caller without an era has only listed it.
    pub(crate) fn claim(&self, lane: Lane) {
        if lane.era.is_some() {
            self.claim_for_all();
        }
    }

    /// Claims the session: the server may have state from now on.
    pub(crate) fn claim_for_all(&self) {
        self.is_claimed.store(true, Ordering::Relaxed);
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

    /// The members of a list's result besides its items.
    pub(crate) fn list_members(&self, listing: Listing) -> Option<Json> {
        self.lists.members(listing)
    }

    /// Returns the items of the list; reading it is single-flight.
    pub(crate) async fn list(self: &Arc<Self>, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        self.lists.get_or_start(listing, || self.start_reading(listing)).await
    }

    fn start_reading(self: &Arc<Self>, listing: Listing) -> SharedList {
        let session = Arc::clone(self);
        let list = async move {
            // Before reading, so that no change in between is missed.
            session.subscribe_to_list(listing).await;
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

    pub(crate) fn result(&self, reply: Reply) -> Result<Json, CallError> {
        match reply {
            Reply::Result(result) => Ok(result),
            Reply::Error(error) => Err(self.refused(&error)),
        }
    }

    /// Sends a request that belongs to no call and only reads, such as for a page of a list.
    pub(crate) async fn ask(&self, method: &str, params: &Json) -> Result<Reply, CallError> {
        self.ask_once(method, params, MayRun::No).await
    }

    /// Sends a request that belongs to no call. If it is lost, the error says by `may_run` if it may
    /// have had an effect.
    pub(crate) async fn ask_once(
        &self,
        method: &str,
        params: &Json,
        may_run: MayRun,
    ) -> Result<Reply, CallError> {
        let params = self.era.own_params(params, &self.settings);
        let params = params.map_err(|error| self.broken(error.to_string()))?;
        let id = self.connection.requests().next_id();
        let limit = self.settings.timeout;
        let request = Request { id, method, params: &params, limit, recipient: None };
        let reply = self.connection.request(request).await;
        reply.map_err(|error| self.request_failed(error, may_run))
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
            if !self.era.requires_input(result) || self.hands_out(result, back) {
                return Ok(answer);
            }
            params = self.with_input(ticket.params(), result, back).await?;
        }
        Err(self.asks_too_often())
    }

    fn asks_too_often(&self) -> CallError {
        self.broken(format!("it asked for input more than {MAX_ROUNDS} times in one call"))
    }

    async fn send(
        &self,
        ticket: &Ticket,
        params: &Json,
        back: &BackChannel,
    ) -> Result<Answer, CallError> {
        let response = self.send_once(ticket, params, back).await?;
        if let Response::Reply(Reply::Error(error)) = &response
            && error.code == rpc_code::HEADER_MISMATCH
        {
            // The tool's headers may have changed. The road reads the list again before it retries
            // the call.
            self.lists.forget(Listing::Tools);
        }
        match response {
            Response::Reply(reply) => self.result(reply).map(Answer::Whole),
            Response::Flow(flow) => Ok(Answer::Streaming(flow)),
        }
    }

    async fn send_once(
        &self,
        ticket: &Ticket,
        params: &Json,
        back: &BackChannel,
    ) -> Result<Response<Box<Flow>>, CallError> {
        let id = self.connection.requests().next_id();
        let wishes = back.wishes();
        let progress = wishes.progress.then_some(id);
        let level = wishes.level;
        let params = self.call_params(params, progress, level, || RequestedBy::client(back))?;
        let (method, limit) = (ticket.kind().method(), self.settings.timeout);
        let may_stream = self.era.may_stream(wishes);
        let recipient = Some(Recipient::Client(back.clone()));
        let request = Request { id, method, params: &params, limit, recipient };
        let may_run = MayRun::of(ticket.effect());
        let response = if may_stream {
            self.connection.call(request, may_run).await
        } else {
            self.connection.request(request).await.map(Response::Reply)
        };
        response.map_err(|error| {
            let mut error = self.request_failed(error, may_run);
            if let CallError::AnswerTooLarge { item, .. } = &mut error {
                *item = ticket.id().to_string();
            }
            error
        })
    }

    fn call_params(
        &self,
        params: &Json,
        progress: Option<u64>,
        level: Option<&str>,
        requester: impl FnOnce() -> RequestedBy,
    ) -> Result<Json, CallError> {
        let params = self.era.call_params(params, progress, level, requester, &self.settings);
        params.map_err(|_| self.broken("the params are not an object".to_owned()))
    }

    pub(crate) fn request_failed(&self, error: RequestError, may_run: MayRun) -> CallError {
        failed(&self.settings.name, error, may_run)
    }

    pub(crate) fn refused(&self, error: &RpcError) -> CallError {
        let (code, message) = (error.code, error.message.clone());
        let (server, whole) = (self.settings.name.clone(), Some(error.whole.to_string()));
        CallError::Server { server, code, message, whole, is_modern: self.era.is_modern() }
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

// === impl MayRun ===

impl MayRun {
    /// `Yes` for a request that may write.
    pub(crate) fn of(effect: Effect) -> Self {
        if effect.may_write() { Self::Yes } else { Self::No }
    }
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
