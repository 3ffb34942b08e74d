//! A server that is configured but cannot be used, with the reason.

use std::sync::Arc;

use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::ready;

use crate::Answer;
use crate::catalog::Typing;
use crate::pipeline::Ticket;
use crate::ports::{About, Backend, BoxFuture, Item, Listing, Operator};

/// Stands where a server would be: disabled, not approved, or with a broken entry.
pub struct Absent {
    name: ServerName,
    state: ServerState,
    /// The rule that keeps it from being started, where it is one.
    rule: Option<String>,
}

// === impl Absent ===

impl Absent {
    /// A server that is in `state` and stays there.
    pub fn new(name: ServerName, state: ServerState) -> Self {
        Self { name, state, rule: None }
    }

    /// A server that a rule forbids to start.
    pub fn forbidden(name: ServerName, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        let state = ServerState::Failed(format!("it is denied by rule `{rule}`"));
        Self { name, state, rule: Some(rule) }
    }

    fn refusal<T>(&self) -> Result<T, CallError> {
        if let Some(rule) = &self.rule {
            return Err(CallError::Denied { item: self.name.to_string(), rule: rule.clone() });
        }
        let state = self.state.name().as_str();
        let reason = match self.state.reason() {
            Some(reason) => reason.to_owned(),
            None if self.state == ServerState::Disabled => {
                format!("it is disabled; `capstan enable {}` starts it", self.name)
            }
            None => format!("it is {state}"),
        };
        Err(CallError::Unreachable { server: self.name.clone(), reason })
    }
}

impl Backend for Absent {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        self.state.clone()
    }

    fn about(&self) -> BoxFuture<'_, Result<Arc<About>, CallError>> {
        ready(self.refusal()).boxed()
    }

    fn list(&self, _: Listing) -> BoxFuture<'_, Result<Arc<[Item]>, CallError>> {
        ready(self.refusal()).boxed()
    }

    fn run<'a>(
        &'a self,
        _: &'a Ticket,
        _: Arc<dyn Operator>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        ready(self.refusal()).boxed()
    }

    fn complete<'a>(&'a self, _: &'a Typing) -> BoxFuture<'a, Result<Vec<String>, CallError>> {
        ready(self.refusal()).boxed()
    }

    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}
