//! The place of one connection of a server: opened on demand, replaced when it is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{Era, Lane, Listing};
use capstan_model::CallError;
use futures::FutureExt;
use futures::future::ready;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument, Span, info};

use super::{lock, note_loss};
use crate::connect::{Connector, STOPPED, ServerContext};
use crate::fault::Fault;
use crate::server::connection::SessionOwner;
use crate::server::lifecycle::{ConnectAttempt, Lifecycle, is_usable};
use crate::server::sticky::StickyRequests;
use crate::session::Session;

/// The timeout of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The place of one connection of a server.
pub(super) struct ConnectionSlot {
    pub(super) role: Role,
    pub(super) connector: Arc<Connector>,
    /// The tracker in it is of this slot alone.
    pub(super) context: ServerContext,
    /// The span of everything that is logged about the server.
    pub(super) span: Span,
    pub(super) lifecycle: Arc<Mutex<Lifecycle>>,
    pub(super) sticky: Arc<StickyRequests>,
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Its lists are the server's. Everything that has no connection of its own uses it.
    Home,
    /// Only requests of legacy clients use it.
    Legacy,
}

// === impl ConnectionSlot ===

impl ConnectionSlot {
    /// The session, if there is one that can be used.
    pub(super) fn current(&self) -> Option<Arc<Session>> {
        let session = lock(&self.lifecycle).attempt.as_ref()?.peek()?.as_ref().ok().cloned()?;
        session.connection.requests().gone().is_none().then_some(session)
    }

    /// Returns a session that suits the lane, connecting if there is none; the attempt is
    /// single-flight.
    pub(super) async fn session(&self, lane: Lane) -> Result<Arc<Session>, CallError> {
        let attempt = self.attempt(lane);
        attempt.await.map_err(|fault| fault.into_error(&self.connector.name()))
    }

    /// Pings the server, if this connection is open.
    pub(super) async fn ping(&self) -> Result<(), CallError> {
        let Some(session) = self.current() else { return Ok(()) };
        let server = self.connector.name();
        let late = |_| CallError::TimedOut { server, limit: PING_TIMEOUT, may_have_run: false };
        timeout(PING_TIMEOUT, session.ping()).await.map_err(late)?
    }

    /// Releases the connection; true if it was open. The process ends when the last user of the
    /// connection is done.
    pub(super) fn disconnect(&self) -> bool {
        let was_open = self.current().is_some();
        let attempt = lock(&self.lifecycle).take_attempt();
        drop(attempt);
        was_open
    }

    fn attempt(&self, lane: Lane) -> ConnectAttempt {
        let mut lifecycle = lock(&self.lifecycle);
        if let Some(attempt) = &lifecycle.attempt {
            let is_suitable = match attempt.peek() {
                Some(Ok(session)) => session.suits(lane),
                Some(Err(_)) | None => true,
            };
            if is_usable(attempt) && is_suitable {
                return attempt.clone();
            }
            if let Some(Ok(session)) = attempt.peek() {
                // The connection was lost while no caller used it.
                let session = Arc::clone(session);
                note_loss(&self.span, &mut lifecycle, &session);
            }
            if let Some(fault) = lifecycle.would_fail_again() {
                return ready(Err(fault)).boxed().shared();
            }
        }
        // The process of an unsuitable connection ends now.
        lifecycle.attempt = None;
        let attempt = self.connect(lane.era, lifecycle.not_before);
        lifecycle.attempt = Some(attempt.clone());
        lifecycle.dormant = false;
        drop(lifecycle);
        // Driven by a task of its own, so that a caller that is dropped does not stop it for
        // others.
        tokio::spawn(attempt.clone());
        attempt
    }

    fn connect(&self, wish: Option<Era>, not_before: Instant) -> ConnectAttempt {
        let (connector, context, role) =
            (Arc::clone(&self.connector), self.context.clone(), self.role);
        let (lifecycle, sticky) = (Arc::clone(&self.lifecycle), Arc::clone(&self.sticky));
        let owner = SessionOwner {
            lifecycle: Arc::downgrade(&self.lifecycle),
            sticky: Arc::clone(&self.sticky),
            role,
            span: self.span.clone(),
        };
        let connecting = async move {
            let start = async {
                sleep_until(not_before).await;
                // Never two processes at a time: they could conflict with each other.
                context.tracker.none_left().await;
                connector.connect(&context, role, wish).await
            };
            let result = tokio::select! {
                biased;
                () = context.tracker.closing() => Err(Fault::Unreachable(STOPPED.to_owned())),
                result = start => result,
            };
            if let Ok(session) = &result {
                session.owner.get_or_init(|| owner);
                sticky.replay(session, role).await;
            }
            let mut lifecycle = lock(&lifecycle);
            let again = lifecycle.about.is_some();
            match &result {
                Ok(session) => {
                    info!(protocol = session.about.protocol, "connected");
                    lifecycle.connected(&session.about);
                }
                Err(fault) => {
                    // Not a warning: the callers that wait for the server get the fault.
                    info!(reason = %fault, "not connected");
                    lifecycle.failed(fault.clone());
                }
            }
            drop(lifecycle);
            if result.is_ok() && again && role == Role::Home {
                // Any list may have changed while the server was away.
                for listing in Listing::ALL {
                    context.listener.list_may_differ(&connector.name(), listing);
                }
            }
            result
        };
        connecting.instrument(self.span.clone()).boxed().shared()
    }
}
