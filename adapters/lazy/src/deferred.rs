//! A server whose settings are completed when it connects, for example with secrets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::System;
use capstan_hub::ports::{About, Backend, BoxFuture, Connected, Footprint, Lane};
use capstan_model::{CallError, Secret, ServerName, ServerState};
use futures::FutureExt;
use tokio::time::Instant;

use crate::{Attempt, Outcome, lock};

/// Settings are not completed again within this time, however often the connection is lost.
const HOLD: Duration = Duration::from_secs(5);

/// Completes the settings of a server.
pub trait Completion: Send + Sync {
    /// Completes the settings. The reason of a failure contains no secret.
    fn complete(&self) -> BoxFuture<'static, Result<Completed, String>>;
}

/// Completed settings.
pub struct Completed {
    /// The values that were filled in. While they are the same, the server stays the same.
    pub values: Vec<Secret<String>>,
    /// Makes the server.
    pub build: Box<dyn FnOnce() -> Arc<dyn Backend> + Send>,
}

/// A server that is made when it is first connected, and made anew when its values have changed by
/// the time that it is connected again.
pub struct DeferredServer {
    name: ServerName,
    completion: Arc<dyn Completion>,
    attempt: Attempt<Made>,
    current: Arc<Mutex<Option<Arc<Made>>>>,
}

/// A server that was made.
struct Made {
    values: Vec<Secret<String>>,
    backend: Arc<dyn Backend>,
    /// The time at which the values were last found.
    since: Mutex<Instant>,
}

// === impl DeferredServer ===

impl DeferredServer {
    /// Makes a server that is not connected yet.
    pub fn new(name: ServerName, completion: Arc<dyn Completion>) -> Self {
        Self { name, completion, attempt: Attempt::default(), current: Arc::default() }
    }

    fn made(&self) -> Option<Arc<dyn Backend>> {
        lock(&self.current).as_ref().map(|made| Arc::clone(&made.backend))
    }

    fn make(&self) -> impl Future<Output = Outcome<Made>> + Send + 'static {
        let (completing, current) = (self.completion.complete(), Arc::clone(&self.current));
        async move {
            let Completed { values, build } = completing.await?;
            let before = lock(&current).clone();
            if let Some(before) = before {
                if before.values == values {
                    *lock(&before.since) = Instant::now();
                    return Ok(before);
                }
                // Requests in flight still finish on its connections.
                before.backend.disconnect();
            }
            let since = Mutex::new(Instant::now());
            let made = Arc::new(Made { values, backend: build(), since });
            *lock(&current) = Some(Arc::clone(&made));
            Ok(made)
        }
    }
}

impl Backend for DeferredServer {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn state(&self) -> ServerState {
        match (self.attempt.state(|_| None), self.made()) {
            (ServerState::Connected, Some(made)) => made.state(),
            (state, _) => state,
        }
    }

    fn about(&self) -> Option<Arc<About>> {
        self.made()?.about()
    }

    fn connected(self: Arc<Self>, lane: Lane) -> Option<Connected> {
        self.made()?.connected(lane)
    }

    fn connect(self: Arc<Self>, lane: Lane) -> BoxFuture<'static, Result<Connected, CallError>> {
        async move {
            let link = self.attempt.get(|made| made.is_stale(), || self.make());
            let made = link.await.map_err(|error| error.into_error(&self.name))?;
            Arc::clone(&made.backend).connect(lane).await
        }
        .boxed()
    }

    fn may_have_lanes(&self) -> bool {
        self.made().is_some_and(|made| made.may_have_lanes())
    }

    fn disconnect(&self) {
        if let Some(made) = self.made() {
            made.disconnect();
        }
    }

    fn disconnect_lanes(&self) -> bool {
        self.made().is_some_and(|made| made.disconnect_lanes())
    }

    fn inform<'a>(&'a self, system: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            match self.made() {
                Some(made) => made.inform(system).await,
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn footprint(&self) -> Option<Footprint> {
        self.made()?.footprint()
    }

    fn stderr(&self) -> Vec<String> {
        self.made().map(|made| made.stderr()).unwrap_or_default()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.attempt.close();
        async move {
            if let Some(made) = self.made() {
                made.close().await;
            }
        }
        .boxed()
    }
}

// === impl Made ===

impl Made {
    /// True if the server is about to be connected anew, so that its values are found again.
    fn is_stale(&self) -> bool {
        let is_live = match self.backend.state() {
            ServerState::Connecting | ServerState::Connected | ServerState::Degraded(_) => true,
            ServerState::Disabled
            | ServerState::AwaitingApproval
            | ServerState::Cached
            | ServerState::NeedsLogin
            | ServerState::Idle
            | ServerState::Failed(_) => false,
        };
        !is_live && lock(&self.since).elapsed() >= HOLD
    }
}
