//! What is asked of a server beside calls and lists: completions, subscriptions, log levels,
//! tasks.

use std::sync::Arc;

use capstan_model::{CallError, Caller, Effect, ItemId, Kind, ServerName};
use capstan_wire::Json;

use crate::elicit::Gate;
use crate::hub::Hub;
use crate::ports::{Errand, Operator};

impl Hub {
    /// Runs an errand for `caller`; `about` is the item it is about, if any.
    ///
    /// # Errors
    /// When the caller may not know of the item, or the server cannot be used.
    pub async fn errand(
        &self,
        server: &ServerName,
        about: Option<(Kind, &str)>,
        errand: &Errand,
        caller: &Caller,
    ) -> Result<Json, CallError> {
        let (kind, item) = about.unwrap_or((Kind::Tool, errand.method()));
        let id = ItemId { server: server.clone(), item: item.to_owned() };
        // Who may not use it learns nothing about it either.
        let permitted = about.is_none() || self.could_permit(&id, kind, Effect::Read, caller);
        match self.backends.get(server).filter(|_| permitted) {
            Some(backend) => backend.errand(errand, None).await,
            None => Err(CallError::Unknown { kind, name: id.to_string(), nearest: Vec::new() }),
        }
    }

    /// Asks a server about a task that a call has started; what it asks meanwhile goes to
    /// `operator`. The call was permitted and written down; this is not another one.
    ///
    /// # Errors
    /// When the server cannot be used, or its answer is not fit to be delivered.
    pub async fn task(
        &self,
        server: &ServerName,
        method: &str,
        params: Json,
        operator: Arc<dyn Operator>,
    ) -> Result<Json, CallError> {
        let Some(backend) = self.backends.get(server) else {
            let (kind, name) = (Kind::Tool, server.to_string());
            return Err(CallError::Unknown { kind, name, nearest: Vec::new() });
        };
        let gate = Arc::new(Gate::new(self, server, operator));
        let errand = Errand::Task(method.to_owned(), params);
        let answer = backend.errand(&errand, Some(gate)).await?;
        // The result of a task is an answer like any other.
        let (size, limit) = (answer.len(), self.limits.max_answer);
        if size > limit {
            let item = format!("{server} {method}");
            return Err(CallError::AnswerTooLarge { item, size, limit });
        }
        Ok(answer)
    }
}
