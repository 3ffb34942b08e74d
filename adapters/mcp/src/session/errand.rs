//! What is asked of a connected server beside calls and lists: completions, subscriptions, log
//! levels, tasks.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::catalog::Typing;
use capstan_hub::ports::{Errand, Operator};
use capstan_model::CallError;
use capstan_wire::protocol::METHOD_NOT_FOUND;
use capstan_wire::{Json, compose};

use crate::channel::Request;
use crate::session::{MayRun, Session};

/// How long a server is to tell how tasks go; none is remembered for longer.
const LONGEST: Duration = Duration::from_hours(24);

impl Session {
    /// Asks something that is neither a call nor a list.
    pub(crate) async fn errand(
        &self,
        errand: &Errand,
        operator: Option<Arc<dyn Operator>>,
    ) -> Result<Json, CallError> {
        let params = match errand {
            Errand::Task(method, params) => {
                let limit = self.settings.timeout;
                return self.on_behalf((method, limit), params, operator).await;
            }
            Errand::Follow(_) if !self.modern => {
                let (server, code) = (self.settings.name.clone(), METHOD_NOT_FOUND);
                let message = "its revision has no such subscriptions".to_owned();
                return Err(CallError::Server { server, code, message, whole: None });
            }
            Errand::Follow(tasks) => {
                let ids: Vec<Json> = tasks.iter().map(|id| compose::string(id)).collect();
                let wanted = compose::object(&[("taskIds", &compose::array(&ids))]);
                let params = compose::object(&[("notifications", &wanted)]);
                return self.on_behalf((errand.method(), LONGEST), &params, operator).await;
            }
            Errand::Subscribe(uri) if self.modern => {
                self.watch_resource(uri).await;
                return Ok(Json::empty_object());
            }
            Errand::Unsubscribe(uri) if self.modern => {
                let subscription = self.watched_resources().remove(uri);
                if let Some(id) = subscription {
                    self.connection.stop(id);
                }
                return Ok(Json::empty_object());
            }
            // A modern server is told with each request, and one that logs nothing has no levels.
            Errand::Level(_) if self.modern || self.capability("logging").is_none() => {
                return Ok(Json::empty_object());
            }
            Errand::Subscribe(uri) | Errand::Unsubscribe(uri) => {
                compose::object(&[("uri", &compose::string(uri))])
            }
            Errand::Level(level) => compose::object(&[("level", &compose::string(level))]),
            Errand::Complete(params) => params.clone(),
        };
        self.result(self.ask(errand.method(), &params).await?)
    }

    /// Asks something about tasks, on behalf of whoever they belong to.
    async fn on_behalf(
        &self,
        (method, limit): (&str, Duration),
        params: &Json,
        operator: Option<Arc<dyn Operator>>,
    ) -> Result<Json, CallError> {
        let Some(operator) = operator else {
            return self.result(self.ask(method, params).await?);
        };
        let id = self.connection.requests().next_id();
        let params = self.with_meta(params, id, &*operator)?;
        let request = Request { id, method, params: &params, limit, operator: Some(operator) };
        let reply = self.connection.request(request).await;
        self.result(reply.map_err(|error| self.request_failed(error, MayRun::No))?)
    }

    /// Asks for nothing but a sign of life; whatever it answers is one.
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
            // Somebody was faster.
            self.connection.stop(id);
        }
    }

    fn watched_resources(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks what a value that is being typed could become.
    pub(crate) async fn complete(&self, typing: &Typing) -> Result<Vec<String>, CallError> {
        if self.capability("completions").is_none() {
            return Ok(Vec::new());
        }
        let result = self.errand(&Errand::Complete(typing.params()), None).await?;
        Ok(Typing::values(&result))
    }
}
