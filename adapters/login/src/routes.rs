//! The callback of many logins at one address, for a server that many people use.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use capstan_model::Secret;
use tokio::sync::{mpsc, oneshot};

use crate::callback::{Arrival, Brought, Outcome};
use crate::renewal::lock;

/// Leads browsers that come back to the logins that they belong to, by their state.
pub struct CallbackRoutes {
    redirect_uri: String,
    waiting: Mutex<HashMap<String, mpsc::Sender<Arrival>>>,
}

/// Ends the wait of a login, also if that is given up.
struct Waiting<'a> {
    routes: &'a CallbackRoutes,
    state: &'a str,
}

// === impl CallbackRoutes ===

impl CallbackRoutes {
    /// Creates the routes of a callback at this address.
    pub fn new(redirect_uri: String) -> Arc<Self> {
        Arc::new(Self { redirect_uri, waiting: Mutex::default() })
    }

    /// The address, as authorization servers are told.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Brings the query of a browser that came back to its login, and waits for the end of that;
    /// `None` if it belongs to no login that waits.
    pub async fn bring(&self, query: &str) -> Option<Outcome> {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let mut states = pairs.filter(|(key, _)| key == "state");
        let state = states.next()?.1.into_owned();
        let found = lock(&self.waiting).get(&state)?.clone();
        let brought = Brought::read(query, &Secret::new(state))?;
        let (browser, outcome) = oneshot::channel();
        // The first answer counts.
        found.try_send(Arrival { brought, browser }).ok()?;
        Some(outcome.await.unwrap_or(Outcome::Failed))
    }

    pub(crate) async fn arrival(&self, state: &Secret<String>) -> Arrival {
        let (found, mut arrivals) = mpsc::channel(1);
        let state = state.reveal();
        lock(&self.waiting).insert(state.clone(), found);
        let waiting = Waiting { routes: self, state };
        let arrival = arrivals.recv().await;
        drop(waiting);
        match arrival {
            Some(arrival) => arrival,
            // The sender is in the table until this wait ends.
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for CallbackRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackRoutes")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

// === impl Waiting ===

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.routes.waiting).remove(self.state);
    }
}
