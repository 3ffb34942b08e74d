//! Requests to a connected server besides calls and lists: completions, tasks, pings.

use std::time::Duration;

use capstan_hub::{Answer, BackChannel, Message, Outgoing, SideOp};
use capstan_model::CallError;
use capstan_wire::Json;

use crate::channel::pending::Recipient;
use crate::channel::{Request, Sent};
use crate::server::sticky::StickyRequest;
use crate::session::{MAX_ROUNDS, MayRun, Session};

/// A request about tasks, on behalf of their owner.
pub(crate) struct OwnerRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Json,
    pub(crate) limit: Duration,
    /// The log level for a server that expects one with every request.
    pub(crate) level: Option<&'static str>,
    pub(crate) recipient: Recipient,
}

impl Session {
    /// Sends a message that the pipeline let through.
    pub(crate) async fn dispatch(&self, outgoing: Outgoing<'_>) -> Result<Answer, CallError> {
        match outgoing.message() {
            Message::Call(ticket, back) => self.run(ticket, back).await,
            Message::Side(admission) => match admission.op() {
                SideOp::Complete(params) | SideOp::Extension { params, .. } => {
                    let op = admission.op();
                    let may_run = MayRun::of(op.effect());
                    if let Some(back) = admission.back() {
                        let result = self.ask_for_client(op.method(), params, may_run, back);
                        return result.await.map(Answer::Whole);
                    }
                    let reply = self.ask_once(op.method(), params, may_run).await?;
                    self.result(reply).map(Answer::Whole)
                }
                SideOp::Notify { method, params } => {
                    match self.connection.notify(method.as_str(), Some(params)).await {
                        Sent::Yes => Ok(Answer::Whole(Json::empty_object())),
                        Sent::NotTaken => Err(outgoing.not_offered(&self.settings.name)),
                    }
                }
                SideOp::Subscribe => {
                    let request = StickyRequest::Subscribe(admission.id().item.clone());
                    self.apply(&request).await.map(Answer::Whole)
                }
            },
            Message::Task(request, back) => {
                let (op, limit) = (request.op(), self.settings.timeout);
                let (params, recipient) = (request.params(), Recipient::Client(back.clone()));
                let method = op.method();
                let question = OwnerRequest { method, params, limit, level: None, recipient };
                self.ask_for_owner(question, MayRun::of(op.effect())).await.map(Answer::Whole)
            }
            Message::Follow(subscription) => {
                self.follow_tasks(subscription).await.map(Answer::Whole)
            }
        }
    }

    /// Sends a request of an extension, and answers the server's requests for input as for a call.
    async fn ask_for_client(
        &self,
        method: &str,
        params: &Json,
        may_run: MayRun,
        back: &BackChannel,
    ) -> Result<Json, CallError> {
        let mut complete = params.clone();
        for _ in 0..MAX_ROUNDS {
            let request = OwnerRequest {
                method,
                params: &complete,
                limit: self.settings.timeout,
                level: back.wishes().level,
                recipient: Recipient::Client(back.clone()),
            };
            let result = self.ask_for_owner(request, may_run).await?;
            if !self.era.requires_input(&result) || self.hands_out(&result, back) {
                return Ok(result);
            }
            complete = self.with_input(params, &result, back).await?;
        }
        Err(self.asks_too_often())
    }

    /// Sends a request on behalf of a client that is told of its course: one about the client's
    /// tasks, or of an extension.
    pub(crate) async fn ask_for_owner(
        &self,
        request: OwnerRequest<'_>,
        may_run: MayRun,
    ) -> Result<Json, CallError> {
        let OwnerRequest { method, params, limit, level, recipient } = request;
        let id = self.connection.requests().next_id();
        let progress = recipient.wants_progress().then_some(id);
        let params = self.call_params(params, progress, level, || recipient.requester())?;
        let recipient = Some(recipient);
        let request = Request { id, method, params: &params, limit, recipient };
        let reply = self.connection.request(request).await;
        self.result(reply.map_err(|error| self.request_failed(error, may_run))?)
    }

    /// Says that the client's roots have changed. The modern protocol has no such message.
    pub(crate) async fn roots_changed(&self) {
        if !self.era.is_modern() {
            let _: Sent = self.connection.notify("notifications/roots/list_changed", None).await;
        }
    }

    /// Sends a ping; any answer is a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), CallError> {
        self.ask(self.era.ping_method(), &Json::empty_object()).await.map(drop)
    }
}
