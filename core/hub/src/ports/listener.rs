//! The port for server messages that belong to no call.

use std::sync::{Arc, OnceLock};

use capstan_model::ServerName;
use capstan_wire::Json;

use super::Listing;
use crate::BackChannel;

/// Receives server messages that belong to no call.
pub trait Listener: Send + Sync {
    /// The server reports that a list has changed.
    fn list_changed(&self, server: &ServerName, listing: Listing);

    /// A list of the server may differ from the one that was read before, after a restart for
    /// example.
    fn list_may_differ(&self, server: &ServerName, listing: Listing);

    /// A subscribed resource has changed. `params` is as the server sent it.
    fn resource_updated(&self, server: &ServerName, params: &Json);

    /// The server sent any other notification.
    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>);

    /// Returns the way to the only client that a question of the server outside of all calls can
    /// mean; `None` if it could mean several, or none.
    fn only_client(&self, server: &ServerName) -> Option<BackChannel>;
}

/// Forwards server messages to a listener that is set later: servers are created before it.
#[derive(Default)]
pub struct Changes(OnceLock<Arc<dyn Listener>>);

// === impl Changes ===

impl Changes {
    /// Sets the listener. Only the first call has an effect.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        drop(self.0.set(listener));
    }
}

impl Listener for Changes {
    fn list_changed(&self, server: &ServerName, listing: Listing) {
        if let Some(listener) = self.0.get() {
            listener.list_changed(server, listing);
        }
    }

    fn list_may_differ(&self, server: &ServerName, listing: Listing) {
        if let Some(listener) = self.0.get() {
            listener.list_may_differ(server, listing);
        }
    }

    fn resource_updated(&self, server: &ServerName, params: &Json) {
        if let Some(listener) = self.0.get() {
            listener.resource_updated(server, params);
        }
    }

    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        if let Some(listener) = self.0.get() {
            listener.told(server, method, params);
        }
    }

    fn only_client(&self, server: &ServerName) -> Option<BackChannel> {
        self.0.get()?.only_client(server)
    }
}
