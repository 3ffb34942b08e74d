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
    /// The subscribed resources, each with the connection that the client who wants it uses.
    resources: BTreeSet<(Role, String)>,
    /// The log level.
    level: Option<String>,
}

// === impl StickyRequests ===

impl StickyRequests {
    /// Records a request for later connections; a subscription for those of this role.
    pub(crate) fn record(&self, request: &StickyRequest, role: Role) {
        match request {
            StickyRequest::Subscribe(uri) => {
                self.requested().resources.insert((role, uri.clone()));
            }
            StickyRequest::Unsubscribe(uri) => {
                self.requested().resources.retain(|(_, other)| other != uri);
            }
            StickyRequest::Level(level) => self.requested().level = Some(level.clone()),
        }
    }

    /// The connections that a request of the hub concerns. A subscription ends where it was made.
    pub(crate) fn roles(&self, request: &StickyRequest) -> Vec<Role> {
        let all = [Role::Home, Role::Legacy];
        match request {
            StickyRequest::Level(_) => all.into(),
            StickyRequest::Subscribe(uri) | StickyRequest::Unsubscribe(uri) => {
                let requested = self.requested();
                let has = |role: &Role| requested.resources.contains(&(*role, uri.clone()));
                all.into_iter().filter(has).collect()
            }
        }
    }

    /// True if the resource is watched on both connections, so that each reports its changes.
    pub(crate) fn is_watched_twice(&self, uri: &str) -> bool {
        let requested = self.requested();
        requested.resources.iter().filter(|(_, other)| other == uri).count() > 1
    }

    /// Sends the requests on a new connection, and waits at most [`SETUP`] for that.
    pub(crate) async fn replay(&self, session: &Arc<Session>, role: Role) {
        let requests = self.requests(role);
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

    fn requests(&self, role: Role) -> Vec<StickyRequest> {
        let requested = self.requested();
        let (level, resources) = (requested.level.clone(), requested.resources.clone());
        drop(requested);
        let resources = resources.into_iter().filter(|(other, _)| *other == role);
        let level = level.map(StickyRequest::Level).into_iter();
        level.chain(resources.map(|(_, uri)| StickyRequest::Subscribe(uri))).collect()
    }

    fn requested(&self) -> MutexGuard<'_, Requested> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StickyRequest ===

impl StickyRequest {
    /// The method name in the revisions before 2026-07-28.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::Level(_) => "logging/setLevel",
        }
    }
}
