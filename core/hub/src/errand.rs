//! What is asked of a server beside calls and lists: completions, subscriptions, log levels,
//! tasks.

use std::sync::Arc;

use capstan_model::{CallError, Kind, ServerName};
use capstan_wire::Json;

use crate::elicit::Gate;
use crate::hub::Hub;
use crate::pipeline::Admitted;
use crate::ports::{Backend, BoxFuture, Errand, Operator};

impl Hub {
    /// Runs an errand that was decided on.
    ///
    /// # Errors
    /// When the server cannot be used, or says no.
    pub async fn errand(&self, admitted: &Admitted, errand: &Errand) -> Result<Json, CallError> {
        self.own_errand(admitted.server(), errand).await
    }

    /// Runs an errand that nobody in particular wants: how much a server is to tell, and what it
    /// need no longer tell of.
    ///
    /// # Errors
    /// When the server cannot be used, or says no.
    pub async fn own_errand(
        &self,
        server: &ServerName,
        errand: &Errand,
    ) -> Result<Json, CallError> {
        self.backend(server)?.errand(errand, None).await
    }

    fn backend(&self, server: &ServerName) -> Result<&Arc<dyn Backend>, CallError> {
        self.servers.get(server).ok_or_else(|| {
            let (kind, name) = (Kind::Tool, server.to_string());
            CallError::Unknown { kind, name, nearest: Vec::new() }
        })
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
        let backend = self.backend(server)?;
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

    /// Has a server tell `subscriber` how tasks go, until it ends that or this is dropped. As long as
    /// that may take, it holds on to the server alone: another hub may take the place of this one.
    ///
    /// # Errors
    /// When the server cannot be used, or does not tell.
    pub fn follow(
        &self,
        server: &ServerName,
        tasks: Vec<String>,
        subscriber: Arc<dyn Operator>,
    ) -> BoxFuture<'static, Result<Json, CallError>> {
        let backend = self.backend(server).cloned();
        let errand = Errand::Follow(tasks);
        Box::pin(async move { backend?.errand(&errand, Some(subscriber)).await })
    }
}
