//! Subscriptions and log level of a server, sent again on each new connection.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::server::slot::Role;
use crate::session::Session;

/// How long sending the requests may delay the first request of a new connection.
const SETUP: Duration = Duration::from_secs(1);

/// A request whose effect lasts for a connection, and is wanted on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StickyRequest {
    /// Subscribe to changes of this resource.
    Subscribe(String),
    /// Unsubscribe from this resource.
    Unsubscribe(String),
    /// The log level, in the protocol's spelling.
    Level(String),
}

/// The requests that are sent again on every new connection of a server.
#[derive(Default)]
pub(crate) struct StickyRequests(Mutex<Requested>);

#[derive(Default)]
struct Requested {
    /// The subscribed resources.
    resources: BTreeSet<String>,
    /// The log level.
    level: Option<String>,
}

// === impl StickyRequests ===

impl StickyRequests {
    /// Records a request for later connections.
    pub(crate) fn record(&self, request: &StickyRequest) {
        match request {
            StickyRequest::Subscribe(uri) => {
                self.requested().resources.insert(uri.clone());
            }
            StickyRequest::Unsubscribe(uri) => {
                self.requested().resources.remove(uri);
            }
            StickyRequest::Level(level) => self.requested().level = Some(level.clone()),
        }
    }

    /// Sends the requests on a new connection, and waits at most [`SETUP`] for that.
    pub(crate) async fn replay(&self, session: &Arc<Session>, role: Role) {
        let mut requests = self.requests();
        requests.retain(|request| request.concerns(role));
        if requests.is_empty() {
            return;
        }
        let session = Arc::clone(session);
        let replaying = async move {
            for request in requests {
                if let Err(error) = session.apply(&request).await {
                    debug!(%error, method = request.method(), "the new connection did not accept it");
                }
            }
        };
        drop(timeout(SETUP, tokio::spawn(replaying.in_current_span())).await);
    }

    fn requests(&self) -> Vec<StickyRequest> {
        let requested = self.requested();
        let level = requested.level.clone().map(StickyRequest::Level);
        level
            .into_iter()
            .chain(requested.resources.iter().cloned().map(StickyRequest::Subscribe))
            .collect()
    }

    fn requested(&self) -> MutexGuard<'_, Requested> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StickyRequest ===

impl StickyRequest {
    /// True if the request is sent on connections of this role. A resource is watched on one
    /// connection only, so that its changes are reported once.
    pub(crate) fn concerns(&self, role: Role) -> bool {
        match self {
            Self::Level(_) => true,
            Self::Subscribe(_) | Self::Unsubscribe(_) => role == Role::Home,
        }
    }

    /// The method name in the revisions before 2026-07-28.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::Level(_) => "logging/setLevel",
        }
    }
}
