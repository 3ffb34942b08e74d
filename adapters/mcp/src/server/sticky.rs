//! Subscriptions and log level of a server, sent again on each new connection.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::session::Session;

/// How long sending the settings may delay the first request of a new connection.
const SETUP: Duration = Duration::from_secs(1);

/// A setting that is sent once on each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Subscribe to changes of this resource.
    Subscribe(String),
    /// Unsubscribe from this resource.
    Unsubscribe(String),
    /// The log level, in the protocol's spelling.
    Level(String),
}

/// The settings that apply to every connection of a server.
#[derive(Default)]
pub(crate) struct Wanted(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The subscribed resources.
    resources: BTreeSet<String>,
    /// The log level.
    level: Option<String>,
}

// === impl Wanted ===

impl Wanted {
    /// Records a setting for later connections.
    pub(crate) fn note(&self, wish: &Wish) {
        match wish {
            Wish::Subscribe(uri) => {
                self.kept().resources.insert(uri.clone());
            }
            Wish::Unsubscribe(uri) => {
                self.kept().resources.remove(uri);
            }
            Wish::Level(level) => self.kept().level = Some(level.clone()),
        }
    }

    /// Sends the settings on a new connection, and waits at most [`SETUP`] for that.
    pub(crate) async fn tell(&self, session: &Arc<Session>) {
        let wishes = self.wishes();
        if wishes.is_empty() {
            return;
        }
        let session = Arc::clone(session);
        let telling = async move {
            for wish in wishes {
                if let Err(error) = session.tell(&wish).await {
                    debug!(%error, method = wish.method(), "not taken by the new connection");
                }
            }
        };
        drop(timeout(SETUP, tokio::spawn(telling.in_current_span())).await);
    }

    fn wishes(&self) -> Vec<Wish> {
        let kept = self.kept();
        let level = kept.level.clone().map(Wish::Level);
        level.into_iter().chain(kept.resources.iter().cloned().map(Wish::Subscribe)).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Wish ===

impl Wish {
    /// The method name in the revisions before 2026-07-28.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::Level(_) => "logging/setLevel",
        }
    }
}
