//! A configured server that cannot be used, with the reason.

use std::sync::Arc;

use capstan_model::{CallError, ServerName, ServerState};
use futures::FutureExt;
use futures::future::ready;

use crate::pipeline::System;
use crate::ports::{About, Backend, BoxFuture, Connected, Footprint, Lane};

/// A placeholder for a server that is disabled, not approved, or misconfigured.
pub struct Absent {
    name: ServerName,
    state: ServerState,
    /// The rule that forbids starting it, if there is one.
    rule: Option<String>,
}

// === impl Absent ===

impl Absent {
    /// Creates a server that stays in `state`.
    pub fn new(name: ServerName, state: ServerState) -> Self {
        Self { name, state, rule: None }
    }

    /// Creates a server that a rule forbids to start.
    pub fn forbidden(name: ServerName, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        let state = ServerState::Failed(format!("it is denied by rule `{rule}`"));
        Self { name, state, rule: Some(rule) }
    }

    fn refusal(&self) -> CallError {
        if let Some(rule) = &self.rule {
            return CallError::Denied { item: self.name.to_string(), rule: rule.clone() };
        }
        let state = self.state.name().as_str();
        let reason = match self.state.reason() {
            Some(reason) => reason.to_owned(),
            None if self.state == ServerState::Disabled => {
                format!("it is disabled; `capstan enable {}` starts it", self.name)
            }
            None => format!("it is {state}"),
        };
        CallError::Unreachable { server: self.name.clone(), reason }
    }
}

impl Backend for Absent {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        self.state.clone()
    }

    fn about(&self) -> Option<Arc<About>> {
        None
    }

    fn connected(self: Arc<Self>, _: Lane) -> Option<Connected> {
        None
    }

    fn connect(self: Arc<Self>, _: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        ready(Err(self.refusal())).boxed()
    }

    fn disconnect(&self) {}

    fn disconnect_lanes(&self) -> bool {
        false
    }

    fn inform<'a>(&'a self, _: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        ready(Ok(())).boxed()
    }

    fn footprint(&self) -> Option<Footprint> {
        None
    }

    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}
