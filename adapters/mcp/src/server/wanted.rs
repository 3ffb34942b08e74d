//! What is wanted of a server whatever becomes of its connections: each new one is told again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::ports::Errand;
use tokio::time::timeout;
use tracing::{Instrument, debug};

use crate::session::Session;

/// How long a new connection may be kept from its first request by this.
const SETUP: Duration = Duration::from_secs(1);

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
    /// Takes note of an errand that holds for later connections too.
    pub(crate) fn note(&self, errand: &Errand) {
        match errand {
            Errand::Subscribe(uri) => {
                self.kept().resources.insert(uri.clone());
            }
            Errand::Unsubscribe(uri) => {
                self.kept().resources.remove(uri);
            }
            Errand::Level(level) => self.kept().level = Some(level.clone()),
            Errand::Complete(_) | Errand::Task(..) | Errand::Follow(_) => {}
        }
    }

    /// Tells a new connection. One that takes its time is not waited for.
    pub(crate) async fn tell(&self, session: &Arc<Session>) {
        let errands = self.errands();
        if errands.is_empty() {
            return;
        }
        let session = Arc::clone(session);
        let telling = async move {
            for errand in errands {
                if let Err(error) = session.errand(&errand, None).await {
                    debug!(%error, method = errand.method(), "not taken by the new connection");
                }
            }
        };
        drop(timeout(SETUP, tokio::spawn(telling.in_current_span())).await);
    }

    fn errands(&self) -> Vec<Errand> {
        let kept = self.kept();
        let level = kept.level.clone().map(Errand::Level);
        level.into_iter().chain(kept.resources.iter().cloned().map(Errand::Subscribe)).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
