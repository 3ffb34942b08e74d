//! Log levels: `logging/setLevel`, and the level in the `_meta` of a modern request.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::ServerName;
use capstan_wire::{Json, object};

use crate::client::Client;
use crate::exchange::answer::Payload;
use crate::gateway::Gateway;
use crate::protocol::fault::Fault;
use crate::protocol::log_level::Level;

/// The log level that each server was set to.
#[derive(Default)]
pub(crate) struct ServerLevels(Mutex<HashMap<ServerName, Level>>);

impl Gateway {
    /// `logging/setLevel`: sets the level of the client, and makes servers at least as verbose.
    pub(crate) fn set_level(
        self: &Arc<Self>,
        client: &Client,
        params: Option<&Json>,
    ) -> Result<Payload, Fault> {
        let word = params.and_then(|params| object::get_string(params, "level"));
        let level = word.as_deref().and_then(Level::parse);
        let level = level.ok_or_else(|| Fault::invalid("`level` is not a known level"))?;
        client.set_level(level);
        self.raise_servers(client, level);
        Ok(Payload::from(Json::empty_object()))
    }

    /// Makes the servers that a client may use at least this verbose, in the background.
    pub(crate) fn raise_servers(self: &Arc<Self>, client: &Client, level: Level) {
        for server in self.shown(&client.view) {
            if !self.shows(&server, &client.caller) || !self.levels.raise(&server, level) {
                continue;
            }
            let gateway = Arc::clone(self);
            tokio::spawn(async move {
                let done = gateway.hub().set_level(&server, level.as_str()).await;
                if let Err(error) = done {
                    tracing::debug!(%server, %error, "a server did not accept the log level");
                }
            });
        }
    }
}

// === impl ServerLevels ===

impl ServerLevels {
    /// Records the log level of a server if it is more verbose than before; returns true if it is.
    fn raise(&self, server: &ServerName, level: Level) -> bool {
        let mut levels = self.levels();
        match levels.get(server) {
            Some(known) if *known <= level => false,
            _ => {
                levels.insert(server.clone(), level);
                true
            }
        }
    }

    /// Forgets the levels of servers that were replaced.
    pub(crate) fn forget(&self, servers: &HashSet<ServerName>) {
        self.levels().retain(|server, _| !servers.contains(server));
    }

    fn levels(&self) -> MutexGuard<'_, HashMap<ServerName, Level>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
