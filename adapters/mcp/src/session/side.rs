//! Requests to a connected server besides calls and lists: completions, tasks, pings.

use std::time::Duration;

use capstan_hub::{Answer, Message, Outgoing, SideOp};
use capstan_model::CallError;
use capstan_wire::Json;

use crate::channel::Request;
use crate::channel::pending::Recipient;
use crate::server::sticky::StickyRequest;
use crate::session::{MayRun, Session};

impl Session {
    /// Sends a message that the pipeline let through.
    pub(crate) async fn dispatch(&self, outgoing: Outgoing<'_>) -> Result<Answer, CallError> {
        match outgoing.message() {
            Message::Call(ticket, back) => self.run(ticket, back).await,
            Message::Side(admission) => match admission.op() {
                SideOp::Complete(params) | SideOp::Extension { params, .. } => {
                    if let Some(back) = admission.back() {
                        let (method, limit) = (admission.op().method(), self.settings.timeout);
                        let recipient = Recipient::Client(back.clone());
                        let result = self.ask_for_owner(method, params, limit, recipient).await;
                        return result.map(Answer::Whole);
                    }
                    let reply = self.ask(admission.op().method(), params).await?;
                    self.result(reply).map(Answer::Whole)
                }
                SideOp::Notify { method, params } => {
                    self.connection.notify(method, Some(params)).await;
                    Ok(Answer::Whole(Json::empty_object()))
                }
                SideOp::Subscribe => {
                    let request = StickyRequest::Subscribe(admission.id().item.clone());
                    self.apply(&request).await.map(Answer::Whole)
                }
            },
            Message::Task(request, back) => {
                let (method, limit) = (request.op().method(), self.settings.timeout);
                let recipient = Recipient::Client(back.clone());
                let result = self.ask_for_owner(method, request.params(), limit, recipient).await;
                result.map(Answer::Whole)
            }
            Message::Follow(subscription) => {
                self.follow_tasks(subscription).await.map(Answer::Whole)
            }
        }
    }

    /// Sends a request on behalf of a client that is told of its course: one about the client's
    /// tasks, or of an extension.
    pub(crate) async fn ask_for_owner(
        &self,
        method: &str,
        params: &Json,
        limit: Duration,
        recipient: Recipient,
    ) -> Result<Json, CallError> {
        let id = self.connection.requests().next_id();
        let progress = recipient.wants_progress().then_some(id);
        let params = self.call_params(params, progress, None, || recipient.requester())?;
        let recipient = Some(recipient);
        let request = Request { id, method, params: &params, limit, recipient };
        let reply = self.connection.request(request).await;
        self.result(reply.map_err(|error| self.request_failed(error, MayRun::No))?)
    }

    /// Says that the client's roots have changed. The modern protocol has no such message.
    pub(crate) async fn roots_changed(&self) {
        if !self.era.is_modern() {
            self.connection.notify("notifications/roots/list_changed", None).await;
        }
    }

    /// Sends a ping; any answer is a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), CallError> {
        self.ask(self.era.ping_method(), &Json::empty_object()).await.map(drop)
    }
}
