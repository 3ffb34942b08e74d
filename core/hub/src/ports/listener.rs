//! What servers say that belongs to no call.

use std::sync::{Arc, OnceLock};

use capstan_model::ServerName;
use capstan_wire::Json;

use super::Listing;

/// Is told what servers say that belongs to no call.
pub trait Listener: Send + Sync {
    /// A list of the server may have changed.
    fn list_changed(&self, server: &ServerName, listing: Listing);

    /// A resource that somebody subscribed to has changed; the params as the server wrote them.
    fn resource_updated(&self, server: &ServerName, params: &Json);

    /// Something else that the server tells to whom it may concern.
    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>);
}

/// Passes on what servers say to whoever listens; servers are made before the listener is.
#[derive(Default)]
pub struct Changes(OnceLock<Arc<dyn Listener>>);

// === impl Changes ===

impl Changes {
    /// Sets who listens. Only the first does.
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
}
