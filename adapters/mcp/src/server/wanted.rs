//! What is wanted of a server whatever becomes of its connections: each new one is told again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::session::Session;

/// How long a new connection may be kept from its first request by this.
const SETUP: Duration = Duration::from_secs(1);

/// Something that a server is told once for each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Notifications when this resource changes.
    Subscribe(String),
    /// No more of them.
    Unsubscribe(String),
    /// How much to log; the protocol's word for the level.
    Level(String),
}

/// What is wanted of a server.
#[derive(Default)]
pub(crate) struct Wanted(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The resources that it is to tell of.
    resources: BTreeSet<String>,
    /// How much it is to tell about what goes on.
    level: Option<String>,
}

// === impl Wanted ===

impl Wanted {
    /// Takes note of a wish that holds for later connections too.
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

    /// Tells a new connection. One that takes its time is not waited for.
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
    /// The method, in the revisions before 2026-07-28.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
            Self::Level(_) => "logging/setLevel",
        }
    }
}
