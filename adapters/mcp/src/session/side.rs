//! Requests to a connected server besides calls and lists.
//! These are completions, subscriptions, log levels and tasks.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::{Answer, Message, Outgoing, SideOp, TaskSubscription};
use capstan_model::CallError;
use capstan_wire::protocol::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose};

use crate::channel::Request;
use crate::channel::pending::Recipient;
use crate::server::wanted::Wish;
use crate::session::handshake::RequestedBy;
use crate::session::{MayRun, Session};

/// How long a server reports on tasks; no task is remembered for longer.
const LONGEST: Duration = Duration::from_hours(24);

impl Session {
    /// Sends a message that the pipeline let through.
    pub(crate) async fn dispatch(&self, outgoing: Outgoing<'_>) -> Result<Answer, CallError> {
        match outgoing.message() {
            Message::Call(ticket, back) => self.run(ticket, back).await,
            Message::Side(admission) => match admission.op() {
                SideOp::Complete(params) => {
                    let reply = self.ask(admission.op().method(), params).await?;
                    self.result(reply).map(Answer::Whole)
                }
                SideOp::Subscribe => {
                    let wish = Wish::Subscribe(admission.id().item.clone());
                    self.tell(&wish).await.map(Answer::Whole)
                }
            },
            Message::Task(request, back) => {
                let id = self.connection.requests().next_id();
                let requester = || RequestedBy::client(back);
                let progress = back.wishes().progress;
                let params = self.with_meta(request.params(), id, progress, requester)?;
                let (method, limit) = (request.op().method(), self.settings.timeout);
                let recipient = Some(Recipient::Client(back.clone()));
                let request = Request { id, method, params: &params, limit, recipient };
                self.ask_about_tasks(request).await.map(Answer::Whole)
            }
            Message::Follow(subscription) => self.follow(subscription).await.map(Answer::Whole),
        }
    }

    /// Sends a subscription or a log level to the server.
    pub(crate) async fn tell(&self, wish: &Wish) -> Result<Json, CallError> {
        let params = match wish {
            Wish::Subscribe(uri) if self.modern => {
                self.watch_resource(uri).await;
                return Ok(Json::empty_object());
            }
            Wish::Unsubscribe(uri) if self.modern => {
                let subscription = self.watched_resources().remove(uri);
                if let Some(id) = subscription {
                    self.connection.stop(id);
                }
                return Ok(Json::empty_object());
            }
            // A modern server gets the level with each request, and a server without logging has no
            // levels.
            Wish::Level(_) if self.modern || self.capability("logging").is_none() => {
                return Ok(Json::empty_object());
            }
            Wish::Subscribe(uri) | Wish::Unsubscribe(uri) => {
                compose::object(&[("uri", &compose::string(uri))])
            }
            Wish::Level(level) => compose::object(&[("level", &compose::string(level))]),
        };
        self.result(self.ask(wish.method(), &params).await?)
    }

    /// Subscribes to the status of tasks, until one side ends it.
    async fn follow(&self, subscription: &TaskSubscription) -> Result<Json, CallError> {
        if !self.modern {
            let (server, code) = (self.settings.name.clone(), METHOD_NOT_FOUND);
            let message = "its revision has no such subscriptions".to_owned();
            return Err(CallError::Server { server, code, message, whole: None });
        }
        let ids: Vec<Json> = subscription.ids().iter().map(|id| compose::string(id)).collect();
        let wanted = compose::object(&[("taskIds", &compose::array(&ids))]);
        let params = compose::object(&[("notifications", &wanted)]);
        let id = self.connection.requests().next_id();
        let requester = || RequestedBy::Program(subscription.capabilities().clone());
        let params = self.with_meta(&params, id, true, requester)?;
        let (method, limit) = (TaskSubscription::METHOD, LONGEST);
        let recipient = Some(Recipient::Subscriber(Arc::clone(subscription.subscriber())));
        self.ask_about_tasks(Request { id, method, params: &params, limit, recipient }).await
    }

    /// Sends a request about tasks.
    async fn ask_about_tasks(&self, request: Request<'_>) -> Result<Json, CallError> {
        let reply = self.connection.request(request).await;
        self.result(reply.map_err(|error| self.request_failed(error, MayRun::No))?)
    }

    /// Sends a ping; any answer is a sign of life.
    pub(crate) async fn pulse(&self) -> Result<(), CallError> {
        let method = if self.modern { "server/discover" } else { "ping" };
        self.ask(method, &Json::empty_object()).await.map(drop)
    }

    async fn watch_resource(&self, uri: &str) {
        if self.watched_resources().contains_key(uri) {
            return;
        }
        let uris = compose::array(&[compose::string(uri)]);
        let id = self.listen_to("resourceSubscriptions", &uris).await;
        let other = self.watched_resources().insert(uri.to_owned(), id);
        if let Some(id) = other {
            // A concurrent caller subscribed first.
            self.connection.stop(id);
        }
    }

    fn watched_resources(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
